package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func testLog(format string) (*slog.Logger, *slog.LevelVar, *bytes.Buffer) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	return newLog(&out, format, level), level, &out
}

// TestRepeatedWarningsAreOneLineWithACount: by kind, and the count comes when
// their time is over.
func TestRepeatedWarningsAreOneLineWithACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, out := testLog("text")
		for range 50 {
			log.Warn("publish failed", "error", errors.New("refused"))
			log.Warn("publish failed", "error", errors.New("timeout"))
			log.Warn("retain failed", "error", errors.New("refused"))
			time.Sleep(100 * time.Millisecond)
		}
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("got %d lines in 5 s; want one of each kind:\n%s", n, out)
		}
		time.Sleep(limitEvery)
		out.Reset()
		log.Info("stopped")
		if got := out.String(); strings.Count(got, `msg="publish failed" suppressed=49 in=10s`) != 2 || !strings.Contains(got, `msg="retain failed" suppressed=49`) ||
			strings.Count(got, "\n") != 4 || !strings.HasSuffix(got, "level=INFO msg=stopped\n") {
			t.Errorf("got %s; want what was suppressed, and the line itself last", got)
		}
		out.Reset()
		log.With("a", 1).Warn("publish failed", "error", errors.New("refused"))
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("after its time a kind is not heard again: %s", out)
		}
	})
}

func TestWarningsAboutDifferentThingsAreAllHeard(t *testing.T) {
	log, _, out := testLog("text")
	for _, name := range []string{"eth0", "eth1", "eth0"} {
		log.Warn("interface is gone", "interface", name, "after", 5)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("got %d lines; want one for each interface:\n%s", n, out)
	}
}

// TestAFloodOfLinesIsBounded: list changes, lines of the HTTP server with
// another address each, and errors with another text each.
func TestAFloodOfLinesIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		line func(log *slog.Logger, i int)
		want int
	}{
		{"list changes", func(log *slog.Logger, i int) { log.Info("key is hot", "key", i) }, 100},
		{"lines of the HTTP server", func(log *slog.Logger, i int) {
			serverLog(log).Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", i)
		}, 1},
		{"errors of many texts", func(log *slog.Logger, i int) { log.Warn("failed", "error", fmt.Sprint(i)) }, maxKinds + 1},
		{"bugs", func(log *slog.Logger, i int) { log.Error("survived a bug") }, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			log, _, out := testLog("text")
			for i := range 10_000 {
				c.line(log, i)
			}
			if n := strings.Count(out.String(), "\n"); n != c.want {
				t.Errorf("10,000 %s gave %d lines; want %d", c.name, n, c.want)
			}
		})
	}
}

func TestNothingIsSuppressedAtTheDebugLevel(t *testing.T) {
	log, level, out := testLog("json")
	level.Set(slog.LevelDebug)
	for range 5 {
		log.Warn("publish failed", "error", "refused")
	}
	n := 0
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil || r["msg"] != "publish failed" || r["time"] == nil {
			t.Errorf("got %v in %s", err, line)
		}
		n++
	}
	if n != 5 {
		t.Errorf("got %d lines; want 5", n)
	}
}

func TestTheLevelChangesWhileTheLogIsInUse(t *testing.T) {
	log, level, out := testLog("text")
	log.Debug("a")
	level.Set(slog.LevelError)
	log.Warn("b")
	level.Set(slog.LevelDebug)
	log.Debug("c")
	if got := out.String(); strings.Contains(got, "msg=a") || strings.Contains(got, "msg=b") || !strings.Contains(got, "msg=c") {
		t.Errorf("got %s; want c alone", got)
	}
}

// TestTheJournalGetsPrioritiesAndNoTime: only when JOURNAL_STREAM names the
// very file that is written to.
func TestTheJournalGetsPrioritiesAndNoTime(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, is := range []bool{true, false} {
			f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			st := info.Sys().(*syscall.Stat_t)
			inode := st.Ino
			if !is {
				inode++
			}
			t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, inode))
			log := newLog(f, format, new(slog.LevelVar))
			log.Info("one", "time", "of an attribute")
			log.With("a", 1).WithGroup("g").Warn("two", "b", 2)
			log.Error("three")
			data, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			if len(lines) != 3 {
				t.Fatalf("got %q; want three lines", lines)
			}
			for i, want := range []string{"<6>", "<4>", "<3>"} {
				hasTime := strings.Contains(lines[i], "time=20") || strings.Contains(lines[i], `"time":"20`)
				if strings.HasPrefix(lines[i], want) != is || hasTime == is {
					t.Errorf("%s, to the journal %v: got %q", format, is, lines[i])
				}
			}
			if !strings.Contains(lines[0], "of an attribute") && format == "text" && !is {
				t.Errorf("an attribute of the name is lost: %q", lines[0])
			}
		}
	}
}
