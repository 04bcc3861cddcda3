package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const somePackets = "../../testdata/captures/go-redis.pcap"

func TestReadWritesTheReportAsOneFile(t *testing.T) {
	for _, args := range [][]string{{}, {"--window", "60s"}, {"--events"}} {
		file := filepath.Join(t.TempDir(), "report.html")
		code, out, errOut := hotsniff(t, "", append([]string{"read", "--html", file, "--node", "<n>", somePackets}, args...)...)
		if code != 0 || errOut != "" || len(args) == 0 && !strings.Contains(out, "SHARE") {
			t.Fatalf("%v: got %d, %s", args, code, errOut)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<!DOCTYPE html>", "<title>hotsniff · &lt;n&gt;</title>", `"schema":"hotsniff.page/v1"`, "go-redis.pcap", "</html>"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%v: no %s in the file", args, want)
			}
		}
	}
	if code, _, errOut := hotsniff(t, "", "read", "--html", "/nonexistent/x.html", somePackets); code != 1 || !strings.Contains(errOut, "/nonexistent/x.html") {
		t.Errorf("where no file can be: got %d, %s", code, errOut)
	}
}

// TestAnOpenStreamDoesNotDelayTheEnd: who looks at the page does not hold the
// daemon up.
func TestAnOpenStreamDoesNotDelayTheEnd(t *testing.T) {
	listeners, err := (&webFlags{Listen: []string{"127.0.0.1:0"}}).listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := make(chan struct{})
	stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	done := make(chan error, 1)
	go func() { done <- serveWeb(ctx, listeners, stream, "", slog.New(slog.DiscardHandler)) }()
	resp, err := http.Get("http://" + addresses(listeners)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	for range 2 {
		select {
		case <-left:
			left = nil
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			done = nil
		case <-time.After(10 * time.Second):
			t.Fatal("still serving")
		}
	}
}
