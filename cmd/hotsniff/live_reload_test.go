package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// post sends a POST to the daemon and returns the answer.
func (p *daemonProcess) post(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Post(p.url+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// metric returns the value of the one series that begins with name.
func (p *daemonProcess) metric(t *testing.T, name string) float64 {
	t.Helper()
	body, err := p.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, text, _ := strings.Cut(rest, " ")
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s in the metrics", name)
	return 0
}

// TestReloadOnRealTraffic: thresholds, rules, pins, top and the log level
// change while the daemon captures; what is bad changes nothing; by SIGHUP and
// by HTTP.
func TestReloadOnRealTraffic(t *testing.T) {
	redis := live(t)
	file := filepath.Join(t.TempDir(), "h.yml")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("threshold: 0.6\n")
	p := startDaemon(t, redis.Port, "--config.file", file)
	ctx, cancel := context.WithCancel(context.Background())
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 2, Rate: 2000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.3 }, Keys: 1000, Seed: 3}
	loaded := make(chan error, 1)
	go func() { loaded <- load.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-loaded })
	state := func(key string) string {
		if k := keyOf(p.report(t), key); k != nil {
			return k.State
		}
		return ""
	}
	eventually(t, "2,000 requests are counted", func() bool { return p.report(t).Requests >= 2000 })
	if got := state("star"); got != "none" {
		t.Fatalf("star is %q; want it below the threshold of 0.6", got)
	}
	begun := p.report(t).From

	set("threshold: 0.1\n")
	if code, body := p.post(t, "/-/reload"); code != 200 || body != "loaded; changed: threshold\n" {
		t.Errorf("POST /-/reload: got %d, %q", code, body)
	}
	eventually(t, "star is hot by the new threshold", func() bool { return state("star") == "hot" })
	since := *keyOf(p.report(t), "star").Since

	set("threshold: 0.1\ninterface: lo\ntop: 7\nlog:\n  level: debug\npinned: [held]\nrules:\n  - prefix: sta\n    name: stars\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, "the pin holds", func() bool { return state("held") == "pinned" })
	r := p.report(t)
	if k := keyOf(r, "star"); k == nil || k.State != "hot" || !k.Since.Equal(since) || k.Rule != "stars" {
		t.Errorf("got %+v; want star hot since %v with the new rule", k, since)
	}
	if !r.From.Equal(begun) || r.Requests < 2000 || len(r.Keys) != 7 {
		t.Errorf("got %d requests from %v, %d keys; want all of them from %v and 7 keys", r.Requests, r.From, len(r.Keys), begun)
	}
	status, err := p.get("/api/v1/status")
	if err != nil || !strings.Contains(status, `"interface": "any"`) || !strings.Contains(status, `"top": "7"`) {
		t.Errorf("status: %v; want the interface in force and the new top: %s", err, status)
	}
	loadedAt := p.metric(t, "hotsniff_config_last_reload_success_timestamp_seconds")

	for _, bad := range []struct{ text, want string }{
		{"threshold: 0.1\nrules:\n  - prefix: sta\n    ignroe: true\n", `h.yml:4: rules: unknown field "ignroe", did you mean "ignore"?`},
		{"threshold: 7\n", "h.yml:1: threshold: want 0.001 to 1, not 7"},
		{"top: many\nthreshhold: 1\n", `h.yml:2: unknown key "threshhold", did you mean "threshold"?`},
		{"capture:\n  timeout: soon\n", `h.yml:2: capture.timeout: want a duration such as 5s, not "soon"`},
	} {
		set(bad.text)
		if code, body := p.post(t, "/-/reload"); code != 500 || !strings.Contains(body, bad.want) || strings.Count(body, "\n") != 1 {
			t.Errorf("POST /-/reload of %q: got %d, %q; want 500, %q", bad.text, code, body, bad.want)
		}
		if got := p.metric(t, "hotsniff_config_last_reload_successful"); got != 0 {
			t.Errorf("after %q: successful is %v", bad.text, got)
		}
		eventually(t, "the log says "+bad.want, func() bool { return strings.Contains(strings.ReplaceAll(p.logText(), `\"`, `"`), bad.want) })
	}
	lines := strings.Count(p.logText(), "configuration not loaded, the old one stays")
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, "SIGHUP finds the mistake too", func() bool {
		return strings.Count(p.logText(), "configuration not loaded, the old one stays") == lines+1
	})
	if k := keyOf(p.report(t), "star"); k == nil || k.State != "hot" || k.Rule != "stars" || state("held") != "pinned" {
		t.Errorf("got %+v; want the last good configuration", k)
	}
	if got := p.metric(t, "hotsniff_config_last_reload_success_timestamp_seconds"); got != loadedAt {
		t.Errorf("loaded at %v; want %v as before the bad ones", got, loadedAt)
	}

	set("threshold: 0.1\nrules:\n  - exact: star\n    ignore: true\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, "the ignored key and the pin leave", func() bool { return state("star") == "" && state("held") == "" })
	if got := p.metric(t, "hotsniff_config_last_reload_successful"); got != 1 {
		t.Errorf("successful is %v after a good one", got)
	}
	// Not one request was missed over six reloads.
	cancel()
	<-loaded
	loaded <- nil
	want := float64(load.Sent())
	eventually(t, "every request is counted", func() bool { return p.metric(t, "hotsniff_requests_total{") == want })
	if resp, err := http.Get(p.url + "/-/reload"); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET /-/reload: got %v, %v; want 405", resp, err)
	}
	log := p.logText()
	if !strings.Contains(log, `need a restart" settings=interface`) || !strings.Contains(log, `changed="log.level, pinned or banned, rules, top"`) {
		t.Errorf("the log does not tell what changed and what needs a restart:\n%s", log)
	}
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}

// TestHangupWithoutAFileIsSurvived: a SIGHUP must not end the daemon.
func TestHangupWithoutAFileIsSurvived(t *testing.T) {
	redis := live(t)
	p := startDaemon(t, redis.Port)
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, "the log says why", func() bool { return strings.Contains(p.logText(), "no configuration file to load") })
	if code, body := p.post(t, "/-/reload"); code != 500 || !strings.Contains(body, "--config.file") {
		t.Errorf("POST /-/reload: got %d, %q", code, body)
	}
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stopped with %v\n%s", err, p.logText())
	}
}
