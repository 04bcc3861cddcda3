package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/hotsniff/hotsniff/internal/pipeline"
)

// statusEvery is how often the service manager gets a new status text: rates
// are averages over it.
const statusEvery = 5 * time.Second

// notifier tells the service manager what the daemon does (sd_notify(3)).
// Without one, NOTIFY_SOCKET is not set and nothing is sent. reloading may be
// called by another goroutine than run.
type notifier struct {
	latest   func() *pipeline.Snapshot
	stalled  func() (time.Duration, bool) // of the capture loop
	watchdog time.Duration                // the manager's patience, 0 when it does not watch
	send     func(state string)
}

// newNotifier reads the environment that the service manager has set.
func newNotifier(latest func() *pipeline.Snapshot, stalled func() (time.Duration, bool), log *slog.Logger) *notifier {
	watchdog, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not understood and gets no answer", "error", err)
	}
	return &notifier{latest: latest, stalled: stalled, watchdog: watchdog, send: notifySystemd(log)}
}

// notifySystemd returns what sends a state to the service manager. A failure
// is said once: a socket that is broken stays so.
func notifySystemd(log *slog.Logger) func(state string) {
	var once sync.Once
	return func(state string) {
		if _, err := sd.SdNotify(false, state); err != nil {
			once.Do(func() { log.Warn("the service manager cannot be told", "error", err) })
		}
	}
}

// run says that the daemon is ready, then its status and, as long as the
// capture loop makes progress, that it lives. A loop that hangs goes without
// the sign of life, and the manager starts the daemon anew. It ends with ctx
// and says so.
func (n *notifier) run(ctx context.Context) {
	n.send(sd.SdNotifyReady + "\nSTATUS=capturing")
	defer n.send(sd.SdNotifyStopping + "\nSTATUS=stopping")
	status := time.NewTicker(statusEvery)
	defer status.Stop()
	var alive <-chan time.Time
	if n.watchdog > 0 {
		// A third, so that one sign that comes late is no death.
		tick := time.NewTicker(max(n.watchdog/3, time.Millisecond))
		defer tick.Stop()
		alive = tick.C
	}
	var before *pipeline.Snapshot
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive:
			if _, hangs := n.stalled(); !hangs {
				n.send(sd.SdNotifyWatchdog)
			}
		case <-status.C:
			now := n.latest()
			n.send("STATUS=" + n.status(before, now))
			before = now
		}
	}
}

// reloading tells the manager that the configuration is read again, and the
// function it returns that this is over.
func (n *notifier) reloading() (done func()) {
	n.send(sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec())
	return func() { n.send(sd.SdNotifyReady) }
}

// status is one line about the time between two snapshots, either of which may
// be nil. It names no key: everybody may read a unit's status.
func (n *notifier) status(before, now *pipeline.Snapshot) string {
	if since, hangs := n.stalled(); hangs {
		return fmt.Sprintf("the capture loop has made no progress for %d s", int(since.Seconds()))
	}
	if now == nil {
		return "capturing, no packet yet"
	}
	var requests uint64
	hot, every := 0, 1
	for i := range now.Ports {
		p := &now.Ports[i]
		requests += p.Requests
		hot += p.Slow.Hot
		every = max(every, p.Slow.SampleEvery*p.Slow.EventEvery)
	}
	text := fmt.Sprintf("%d hot keys", hot)
	if hot == 1 {
		text = "1 hot key"
	}
	if before != nil && now.T > before.T {
		for i := range before.Ports {
			requests -= before.Ports[i].Requests
		}
		text += fmt.Sprintf(", %.0f requests/s", float64(requests)*1e9/float64(now.T-before.T))
	}
	if every > 1 {
		text += fmt.Sprintf(", 1 of %d sampled", every)
	}
	return text
}
