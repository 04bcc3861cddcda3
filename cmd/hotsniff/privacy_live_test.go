package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestNoSurfaceShowsAClearName drives a key with a person's name and number to
// the list and looks for it on every surface, in each mode.
func TestNoSurfaceShowsAClearName(t *testing.T) {
	secret := write(t, "privacy.key", strings.Repeat("k", 32))
	rewrite := write(t, "rewrite.yml", "privacy:\n  keys: pattern\n  rewrite:\n    - match: 'user:\\w+'\n      to: 'user:*'\n")
	const key = "user:alice:47114711"
	for _, mode := range []struct {
		name, shown string
		flags       []string
		listed      string // on the channel; "" for none
	}{
		{"pattern", "user:alice:*", []string{"--privacy.keys=pattern"}, key},
		{"rewrite", "user:*:*", []string{"--config.file=" + rewrite, "--publish.masked"}, "user:*:*"},
		{"hash", "#", []string{"--privacy.keys=hash", "--privacy.key-file=" + secret}, key},
		{"truncate", "user:a…", []string{"--privacy.keys=truncate", "--privacy.keep=6"}, key},
		{"deny", "(hidden)", []string{"--privacy.deny=other,user:*"}, ""},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			server := live(t)
			flags := append([]string{"--publish.redis-url", "redis://" + server.Addr(), "--node", "n1", "--log.level=debug"}, mode.flags...)
			p := startDaemon(t, server.Port, flags...)
			load(t, server, key)
			eventually(t, "the key is on the list", func() bool {
				body, err := p.get("/api/v1/hotkeys")
				return err == nil && strings.Contains(body, mode.shown) && strings.Contains(p.logText(), "key is hot")
			})
			clear := "47114711"
			for _, path := range []string{"/metrics", "/api/v1/hotkeys", "/api/v1/hotkeys?window=5s", "/api/v1/status", "/"} {
				body, err := p.get(path)
				if err != nil {
					t.Error(err)
				}
				noSecret(t, path, body, []string{clear})
				if !strings.Contains(body, mode.shown) && !strings.Contains(path, "status") && path != "/" {
					t.Errorf("%s does not show %q", path, mode.shown)
				}
			}
			eventually(t, "the list is retained", func() bool {
				names, err := listed(t, server)
				return err == nil && names == mode.listed
			})
			p.stop(t, syscall.SIGTERM)
			noSecret(t, "the log", p.logText(), []string{clear})
		})
	}
}

// listed returns the names on the retained list.
func listed(t *testing.T, server *testkit.Redis) (names string, err error) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer c.Close()
	text, err := c.Get(t.Context(), "hotsniff:list:n1").Bytes()
	if err != nil {
		return "", err
	}
	l, err := hotlist.Decode(text)
	if err != nil {
		return "", err
	}
	for _, e := range l.Entries {
		names += e.Key
	}
	return names, nil
}

// load makes key hot for a few seconds.
func load(t *testing.T, server *testkit.Redis, key string) {
	t.Helper()
	w := &testkit.Workload{Addr: server.Addr(), Conns: 2, Rate: 500, HotKey: key,
		Share: func(time.Duration) float64 { return 0.9 }, Keys: 1000, Seed: 1}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestReadMasksReportAndEvents(t *testing.T) {
	file := timelineFile(t)
	for _, args := range [][]string{{"--format=json"}, {"--format=csv"}, {"--format=table"}, {"--events"}} {
		code, out, errOut := hotsniff(t, "", append([]string{"read", "--privacy.keys=truncate", "--privacy.keep=3", file}, args...)...)
		if code != 0 || errOut != "" {
			t.Fatalf("%v: got %d, %q", args, code, errOut)
		}
		if strings.Contains(out, "config:") || !strings.Contains(out, "con") {
			t.Errorf("%v shows the clear name, or nothing:\n%.300s", args, out)
		}
	}
}

func TestTopMasks(t *testing.T) {
	file := timelineFile(t)
	for _, args := range [][]string{{"--once"}, {"--format=json"}, {"--format=csv"}} {
		code, out, errOut := hotsniff(t, "", append([]string{"top", "--read", file, "--speed=max", "--privacy.keys=truncate", "--privacy.keep=3"}, args...)...)
		if code != 0 || errOut != "" {
			t.Fatalf("%v: got %d, %q", args, code, errOut)
		}
		if strings.Contains(out, "config:") || !strings.Contains(out, "con…") {
			t.Errorf("%v shows the clear name, or nothing:\n%.300s", args, out)
		}
	}
}

func TestPrivacyMistakesAreUsage(t *testing.T) {
	file := timelineFile(t)
	short := write(t, "short.key", "x")
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--privacy.keys=hash"}, exitUsage, "hotsniff: --privacy.keys=hash needs --privacy.key-file\n"},
		{[]string{"--privacy.keys=hash", "--privacy.key-file=" + short}, exitUsage, "hotsniff: --privacy.keys=hash: the key file needs at least 16 bytes, it has 1\n"},
		{[]string{"--privacy.keys=hash", "--privacy.key-file=/nonexistent"}, exitFailure, "hotsniff: open /nonexistent: no such file or directory\n"},
		{[]string{"--privacy.keys=truncate", "--privacy.keep=0"}, exitUsage, "hotsniff: --privacy.keep: want 1 to 128, not 0\n"},
	} {
		code, out, errOut := hotsniff(t, "", append([]string{"read", file}, c.flags...)...)
		if code != c.code || out != "" || !strings.HasPrefix(errOut, c.want) {
			t.Errorf("%v: got %d, %q, %q; want %d, %q", c.flags, code, out, errOut, c.code, c.want)
		}
	}
}
