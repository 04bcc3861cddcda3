package actions

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

func TestClientLogGoesToSlogWithoutPasswords(t *testing.T) {
	var b logBuffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := Connect(Connection{URL: "redis://127.0.0.1:1", PasswordFile: passwordFile(t, "s3cret")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.credentials(context.Background()); err != nil {
		t.Fatal(err)
	}
	clientLog{log, c.redact}.Printf(context.Background(), "unknown command %s", "HELLO 3 AUTH u s3cret")
	if got := b.String(); strings.Contains(got, "s3cret") || !strings.Contains(got, "HELLO 3 AUTH u [password]") {
		t.Errorf("logged %s", got)
	}

	RouteClientLog(log, c)
	defer logging.Enable()
	_ = c.Ping(context.Background())
	if got := b.String(); !strings.Contains(got, "level=DEBUG") || !strings.Contains(got, "refused") {
		t.Errorf("logged %s", got)
	}
}

func TestTroubleIsLoggedOnce(t *testing.T) {
	var b logBuffer
	tr := trouble{log: slog.New(slog.NewTextHandler(&b, nil)), redact: &redactor{}, what: "x"}
	for range 3 {
		for range 5 {
			tr.begin(ResultTimeout, context.DeadlineExceeded)
			tr.begin(ResultDenied, context.Canceled)
		}
		tr.over()
		tr.over()
	}
	for want, n := range map[string]int{"result=timeout": 3, "result=denied": 3, "hint=": 3, "works again": 3, "failures=10": 3} {
		if got := strings.Count(b.String(), want); got != n {
			t.Errorf("%q is logged %d times, want %d", want, got, n)
		}
	}
}
