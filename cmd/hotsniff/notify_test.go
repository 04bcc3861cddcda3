package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/topk"
)

// manager is the service manager's end of the notification socket.
type manager struct {
	conn *net.UnixConn
	mu   sync.Mutex
	said []string // each line of each datagram
}

// listenAsManager points NOTIFY_SOCKET at a socket of the test.
func listenAsManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	m := &manager{conn: conn}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.said = append(m.said, strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return r == '\n' })...)
			m.mu.Unlock()
		}
	}()
	return m
}

// index is where the first line with the prefix is, or -1.
func (m *manager) index(prefix string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.IndexFunc(m.said, func(line string) bool { return strings.HasPrefix(line, prefix) })
}

func (m *manager) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.said, "\n")
}

func TestTheDaemonTellsTheServiceManager(t *testing.T) {
	if !testkit.CanCapture() {
		t.Skip("capturing needs CAP_NET_RAW: run as root")
	}
	m := listenAsManager(t)
	t.Setenv("WATCHDOG_USEC", "600000")
	p := startDaemon(t, 6399, "--interface", "lo")
	eventually(t, "READY, WATCHDOG and a status", func() bool {
		return m.index("READY=1") >= 0 && m.index("WATCHDOG=1") > m.index("READY=1") && m.index("STATUS=0 hot keys") >= 0
	})
	if _, err := p.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("stop: %v", err)
	}
	eventually(t, "STOPPING", func() bool { return m.index("STOPPING=1") >= 0 })
	if m.index("READY=1") > m.index("STOPPING=1") {
		t.Errorf("got the states out of order:\n%s", m.text())
	}
}

func TestNothingIsReadyWhenTheCaptureCannotBeOpened(t *testing.T) {
	m := listenAsManager(t)
	code := run(context.Background(), []string{"run", "--interface", "no-such-if", "--web.listen-address", "127.0.0.1:0"},
		stdio{strings.NewReader(""), io.Discard, io.Discard})
	if code != exitFailure {
		t.Errorf("exit code: got %d; want %d", code, exitFailure)
	}
	// Datagrams come in order: when this one is here, all before it are.
	c, err := net.Dial("unixgram", m.conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("END"))
	eventually(t, "END", func() bool { return m.index("END") >= 0 })
	if m.text() != "END" {
		t.Errorf("got %q; want nothing", m.text())
	}
}

// TestAHangingLoopGivesNoSignOfLife: the watchdog hangs on progress, not on
// the process being there.
func TestAHangingLoopGivesNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var latest atomic.Pointer[pipeline.Snapshot]
		var hangs atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		monitor := export.NewMonitor(latest.Load)
		go monitor.Watch(ctx)
		go func() {
			for ctx.Err() == nil {
				if !hangs.Load() {
					latest.Store(&pipeline.Snapshot{T: time.Now().UnixNano()})
				}
				time.Sleep(pipeline.TickEvery)
			}
		}()
		var mu sync.Mutex
		var signs int
		var last string
		n := &notifier{latest: latest.Load, stalled: monitor.Stalled, watchdog: 30 * time.Second, send: func(state string) {
			mu.Lock()
			defer mu.Unlock()
			if state == "WATCHDOG=1" {
				signs++
			} else {
				last = state
			}
		}}
		go n.run(ctx)
		counted := func() int { mu.Lock(); defer mu.Unlock(); return signs }

		time.Sleep(5 * time.Minute)
		if got := counted(); got < 28 || got > 30 {
			t.Errorf("5 minutes of progress: got %d signs of life; want one each 10 s", got)
		}
		hangs.Store(true)
		time.Sleep(20 * time.Second) // the monitor waits for 10 s
		before := counted()
		time.Sleep(5 * time.Minute)
		if got := counted() - before; got != 0 {
			t.Errorf("a loop that hangs: got %d signs of life; want none", got)
		}
		mu.Lock()
		if !strings.HasPrefix(last, "STATUS=the capture loop has made no progress for 3") {
			t.Errorf("a loop that hangs: got %q", last)
		}
		mu.Unlock()
		hangs.Store(false)
		time.Sleep(30 * time.Second)
		if counted() == before {
			t.Error("a loop that goes on gives no sign of life")
		}
		cancel()
		time.Sleep(time.Second) // all have looked at ctx
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(last, "STOPPING=1") {
			t.Errorf("at the end: got %q; want STOPPING=1", last)
		}
	})
}

func TestStatusText(t *testing.T) {
	at := func(sec int64, requests uint64, hot, every int) *pipeline.Snapshot {
		return &pipeline.Snapshot{T: sec * 1e9, Ports: []pipeline.PortSnapshot{
			{Port: 6379, Requests: requests, Slow: &topk.Snapshot{Hot: hot, SampleEvery: every, EventEvery: 1}}}}
	}
	n := &notifier{stalled: func() (time.Duration, bool) { return 0, false }}
	for _, c := range []struct {
		name        string
		before, now *pipeline.Snapshot
		want        string
	}{
		{"nothing was seen", nil, nil, "capturing, no packet yet"},
		{"the first snapshot has no rate", nil, at(10, 100, 0, 1), "0 hot keys"},
		{"requests in between", at(10, 100, 0, 1), at(15, 1100, 1, 1), "1 hot key, 200 requests/s"},
		{"a port is new", &pipeline.Snapshot{T: 5e9}, at(10, 500, 3, 1), "3 hot keys, 100 requests/s"},
		{"sampled", at(10, 100, 0, 4), at(11, 350, 2, 4), "2 hot keys, 250 requests/s, 1 of 4 sampled"},
		{"no time went by", at(10, 100, 2, 1), at(10, 100, 2, 1), "2 hot keys"},
	} {
		if got := n.status(c.before, c.now); got != c.want {
			t.Errorf("%s: got %q; want %q", c.name, got, c.want)
		}
	}
}

func TestReloadIsTold(t *testing.T) {
	m := listenAsManager(t)
	n := &notifier{send: notifySystemd(slog.New(slog.DiscardHandler))}
	done := n.reloading()
	done()
	eventually(t, "READY after RELOADING", func() bool { return m.index("READY=1") >= 0 })
	if m.index("RELOADING=1") != 0 || m.index("MONOTONIC_USEC=") != 1 || m.index("READY=1") != 2 {
		t.Errorf("got\n%s\nwant RELOADING=1, MONOTONIC_USEC, READY=1", m.text())
	}
}

func TestABrokenSocketIsSaidOnce(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	var log strings.Builder
	send := notifySystemd(slog.New(slog.NewTextHandler(&log, nil)))
	send("READY=1")
	send("READY=1")
	if got := strings.Count(log.String(), "cannot be told"); got != 1 {
		t.Errorf("got %d lines; want 1:\n%s", got, log.String())
	}
}
