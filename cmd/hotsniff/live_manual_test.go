package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// watchProcess is a running `hotsniff watch` on a pipe.
type watchProcess struct {
	cmd  *exec.Cmd
	done chan error

	mu     sync.Mutex
	events []report.Event
	bad    string // a line that is no event
}

func startWatch(t *testing.T, flags ...string) *watchProcess {
	t.Helper()
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	p := &watchProcess{cmd: exec.Command(bin, append([]string{"watch"}, flags...)...), done: make(chan error, 1)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			var ev report.Event
			err := json.Unmarshal(s.Bytes(), &ev)
			p.mu.Lock()
			if p.events = append(p.events, ev); err != nil || ev.Schema != report.EventSchema {
				p.bad = s.Text()
			}
			p.mu.Unlock()
		}
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// last returns the newest event of a key.
func (p *watchProcess) last(key string) (last report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ev := range p.events {
		if ev.Key == key {
			last = ev
		}
	}
	return last
}

// ok runs a command in this process that has to succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := hotsniff(t, "", args...)
	if code != 0 || errOut != "" {
		t.Fatalf("%v: got %d, %q", args, code, errOut)
	}
	return out
}

// TestWatchPinAndBanEndToEnd: a real server, a daemon that captures and
// publishes, a subscriber on a pipe, and a person who pins and bans.
func TestWatchPinAndBanEndToEnd(t *testing.T) {
	redis := live(t)
	url := "redis://" + redis.Addr()
	file := write(t, "h.yml", "pinned: [\"from:file\"]\nbanned: [\"plain:1\"]\n")
	p := startDaemon(t, redis.Port, "--publish.redis-url", url, "--node", "n1", "--config.file", file, "--top", "200")
	w := startWatch(t, "--redis-url", url)
	ctx, cancel := context.WithCancel(context.Background())
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 2, Rate: 1000, HotKey: "star",
		Share: func(time.Duration) float64 { return 0.5 }, Keys: 1000, Seed: 1}
	loaded := make(chan error, 1)
	go func() { loaded <- load.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-loaded })

	state := func(key string) string {
		if k := keyOf(p.report(t), key); k != nil {
			return k.State
		}
		return ""
	}
	eventually(t, "star is hot in the API", func() bool { return state("star") == "hot" })
	eventually(t, "star is hot for the subscriber", func() bool { return w.last("star").Event == "hot" })
	eventually(t, "the file's pin is in the API", func() bool { return state("from:file") == "pinned" })
	eventually(t, "the file's pin is on the list", func() bool { return w.last("from:file").Reason == "manual" })
	if ev := w.last("star"); ev.Port != uint16(redis.Port) || ev.Share < 0.2 || ev.ShareLow <= 0 || ev.ShareLow > ev.Share || ev.Nodes != 1 || ev.Action == "" {
		t.Errorf("got %+v", ev)
	}

	if out := ok(t, "pin", "sale", "--redis-url", url, "--ttl", "1h", "--action", "replicate"); !strings.HasPrefix(out, "sale is pinned from ") {
		t.Errorf("pin: got %q", out)
	}
	eventually(t, "the pin is in the API", func() bool { return state("sale") == "pinned" })
	eventually(t, "the pin is on the list", func() bool { ev := w.last("sale"); return ev.Event == "hot" && ev.Action == "replicate" })
	ok(t, "pin", "tomorrow", "--redis-url", url, "--from", time.Now().Add(24*time.Hour).Format(time.RFC3339))

	if out := ok(t, "ban", "star", "--redis-url", url); !strings.HasPrefix(out, "star is banned until ") {
		t.Errorf("ban: got %q", out)
	}
	eventually(t, "the banned key leaves the API", func() bool { return state("star") == "" })
	eventually(t, "the banned key leaves the list", func() bool { return w.last("star").Event == "gone" })
	metrics, err := p.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{`key="star"`, `key="plain:1"`, `key="tomorrow"`} {
		if strings.Contains(metrics, gone) {
			t.Errorf("%s is in the metrics", gone)
		}
	}
	for _, want := range []string{`hotsniff_key_hot{key="sale",`, `hotsniff_publish_total{result="ok"}`, `hotsniff_publish_duration_seconds_bucket{le="+Inf"}`,
		"hotsniff_publish_receivers 2", "hotsniff_manual_entries 5"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	table := ok(t, "watch", "--redis-url", url, "--once", "--format", "table")
	if !strings.Contains(table, "sale ") || strings.Contains(table, "star ") || !strings.Contains(table, " at 1 nodes") {
		t.Errorf("watch --once: got\n%s", table)
	}

	ok(t, "unpin", "sale", "--redis-url", url)
	ok(t, "unpin", "star", "--redis-url", url)
	eventually(t, "the pin is gone", func() bool { return state("sale") == "" && w.last("sale").Event == "gone" })
	eventually(t, "the key is hot again", func() bool { return state("star") == "hot" && w.last("star").Event == "hot" })
	if out := ok(t, "unpin", "sale", "--redis-url", url); out != "sale was neither pinned nor banned\n" {
		t.Errorf("unpin: got %q", out)
	}

	w.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-w.done:
		if err != nil || w.bad != "" {
			t.Errorf("watch ended with %v after SIGINT; bad line %q", err, w.bad)
		}
	case <-time.After(10 * time.Second):
		t.Error("watch still runs 10 s after SIGINT")
	}
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("the daemon stopped with %v\n%s", err, p.logText())
	}
	if once := ok(t, "watch", "--redis-url", url, "--once"); once != "" {
		t.Errorf("got %q after the daemon ended; want an empty list", once)
	}
}

// TestPasswordsComeFromFiles: the daemon, pin and watch at a server that wants
// a password.
func TestPasswordsComeFromFiles(t *testing.T) {
	redis := live(t)
	if got, err := testkit.Ask(redis.Addr(), "CONFIG", "SET", "requirepass", "S3cret-file"); err != nil || got != "+OK" {
		t.Fatal(got, err)
	}
	url, file := "redis://"+redis.Addr(), write(t, "redis-password", "S3cret-file\n")
	p := startDaemon(t, redis.Port, "--publish.redis-url", url, "--publish.password-file", file, "--node", "n1", "--log.level", "debug")
	for _, args := range [][]string{{"pin", "k"}, {"watch", "--once"}} {
		code, out, errOut := hotsniff(t, "", append(args, "--redis-url", url)...)
		if code != 1 || out != "" || !strings.Contains(errOut, "NOAUTH") || !strings.Contains(errOut, "hint: check --username and --password-file") {
			t.Errorf("%v without a password: got %d, %q, %q", args, code, out, errOut)
		}
	}
	ok(t, "pin", "k", "--redis-url", url, "--password-file", file)
	t.Setenv("CREDENTIALS_DIRECTORY", strings.TrimSuffix(file, "/redis-password"))
	eventually(t, "the pin is on the retained list", func() bool {
		return strings.Contains(ok(t, "watch", "--redis-url", url, "--once"), `"key":"k"`)
	})
	p.stop(t, syscall.SIGTERM)
	noSecret(t, "the log", p.logText(), []string{"S3cret-file"})
}
