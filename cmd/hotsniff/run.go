package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/page"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// runCmd is `hotsniff run`.
type runCmd struct {
	detectFlags
	captureFlags
	samplingFlags
	publishFlags
	webFlags
	Top       int    `default:"20" min:"1" max:"200" help:"Keys in metrics and reports."`
	LogFormat string `name:"log.format" default:"text" enum:"text,json" help:"Format of the log (${enum})."`
	KeepCaps  bool   `name:"security.keep-capabilities" help:"Keep all rights of the user who started this. Without it the daemon keeps CAP_NET_RAW alone (and CAP_NET_BIND_SERVICE when it listens below port 1024)."`
	LogLevel  string `name:"log.level" default:"info" enum:"debug,info,warn,error" help:"Least level that is logged (${enum})."`
}

const (
	// eventQueue is how many list changes may wait for the log. The capture
	// loop never waits: what does not fit is counted and said.
	eventQueue = 1024
)

// Run implements the command.
func (c *runCmd) Run(a *app) error {
	if a.confine != nil && !c.KeepCaps {
		if err := a.confine(c.webFlags.lowPorts()); err != nil {
			log, _ := c.logger(a)
			log.Warn("running with more rights than a capture needs", "error", err)
		}
	}
	hangups, stop := hangups()
	defer stop()
	log, level := c.logger(a)
	if err := c.check(a); err != nil {
		return err
	}
	cfg, err := c.engineConfig(a)
	if err != nil {
		return err
	}
	cfg.Top = c.Top
	if cfg.Budget, err = c.samplingFlags.config(a); err != nil {
		return err
	}
	cfg.CPUTime = threadCPUTime
	listeners, err := c.webFlags.listen()
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	live := c.captureFlags.config(cfg.Ports)
	live.OnChange = func(ch capture.InterfaceChange) { logInterface(log, ch) }
	src, err := capture.OpenLive(live)
	if err != nil {
		return liveHint(err)
	}
	defer src.Close()
	d := &daemon{log: log, ports: cfg.Ports.Len(), hangups: hangups, listeners: listeners, webConfig: c.WebConfig, events: make(chan []pipeline.Event, eventQueue), fresh: newNudge()}
	cfg.OnEvents = d.queueEvents
	cfg.OnSnapshot = d.fresh.raise
	cfg.OnPanic = func(v any, stack []byte) {
		// Neither holds bytes of the wire: a Go stack shows addresses.
		log.Error("survived a bug; please report it", "panic", fmt.Sprint(v), "stack", string(stack))
	}
	if d.engine, err = pipeline.New(cfg, src); err != nil {
		return err
	}
	if d.publisher, err = c.publishFlags.publisher(a, c.node(), log); err != nil {
		return err
	}
	if d.publisher == nil {
		d.setManual(manualEntries(a.file))
	} else {
		actions.RouteClientLog(log, d.publisher.Client())
	}
	if err := c.mask(a, d); err != nil {
		return err
	}
	d.monitor = export.NewMonitor(d.engine.Latest)
	d.notify = newNotifier(d.engine.Latest, d.monitor.Stalled, log)
	d.reloader = &reloader{d: d, level: level, a: a, settings: shownSettings(a.k)}
	var gate page.Gate // of all handlers, one after the other
	d.reloader.serve = func(top int, settings map[string]string) {
		d.handler.set(export.NewHandler(export.Options{Latest: d.shown, Monitor: d.monitor, Node: c.node(), Top: top,
			Version: versionText(), Config: settings, Extra: publishMetrics(d.publisher), Publish: publishStats(d.publisher), Pprof: c.Pprof, Reload: d.reloader.reload, Gate: &gate, Log: log}))
	}
	d.reloader.serve(c.Top, d.reloader.settings)
	log.Info("capturing", "interface", c.Interface, "port", c.Port, "threshold", c.Threshold,
		"listen", addresses(listeners), "version", versionText())
	c.webFlags.warnIfOpen(listeners, log)
	err = d.serve(a.ctx)
	logStopped(log, d.engine.Latest())
	return err
}

// logStopped says what was counted up to the end: the last snapshot has the
// packets that were still in the ring, and nobody can ask for it any more.
func logStopped(log *slog.Logger, s *pipeline.Snapshot) {
	if s == nil {
		log.Info("stopped")
		return
	}
	var requests, packets, dropped uint64
	for i := range s.Ports {
		requests += s.Ports[i].Requests
	}
	for i := range s.Capture.Interfaces {
		packets += s.Capture.Interfaces[i].Packets
		dropped += s.Capture.Interfaces[i].Dropped
	}
	log.Info("stopped", "requests", requests, "packets", packets, "dropped", dropped)
}

// daemon is what runs side by side. Each goroutine is started in serve, has
// one job, and ends when the context does.
type daemon struct {
	log       *slog.Logger
	ports     int // server ports that were asked for
	engine    *pipeline.Engine
	publisher *actions.Publisher // nil: nothing is published
	listeners []net.Listener
	webConfig string // file of the exporter toolkit, may be empty
	handler   liveHandler
	monitor   *export.Monitor
	masker    pipeline.Masker           // nil: everything is shown
	shown     func() *pipeline.Snapshot // what metrics, API and page may show
	listed    func() *pipeline.Snapshot // what is published
	reloader  *reloader
	hangups   <-chan os.Signal
	notify    *notifier
	events    chan []pipeline.Event
	fresh     nudge         // a snapshot was stored
	lost      atomic.Uint64 // list changes that did not fit the queue
}

// queueEvents hands list changes to the log without ever waiting for it.
func (d *daemon) queueEvents(batch []pipeline.Event) {
	select {
	case d.events <- slices.Clone(batch):
	default:
		d.lost.Add(uint64(len(batch)))
	}
}

// setManual hands over the pins and bans of the file. Where there is a
// publisher it adds those of Redis, and feed brings all to the engine.
func (d *daemon) setManual(entries []actions.ManualEntry) {
	if d.publisher == nil {
		d.engine.SetManual(entries)
	} else {
		d.publisher.Manual().Configure(entries)
	}
}

// serve runs everything until ctx ends or one part fails.
func (d *daemon) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.capture(ctx) })
	g.Go(d.logEvents)
	g.Go(func() error { return serveWeb(ctx, d.listeners, &d.handler, d.webConfig, d.log) })
	g.Go(func() error { d.monitor.Watch(ctx); return nil })
	g.Go(func() error { boundMemory(ctx, d.ports); return nil })
	g.Go(func() error { d.reloader.onHangup(ctx, d.hangups); return nil })
	g.Go(func() error { d.notify.run(ctx); return nil })
	if d.publisher != nil {
		g.Go(func() error { return d.publisher.Run(ctx) })
		g.Go(func() error { feed(ctx, d.engine, d.listed, d.publisher, d.fresh); return nil })
	}
	return g.Wait()
}

// capture owns everything from packets to snapshots.
func (d *daemon) capture(ctx context.Context) error {
	defer close(d.events)
	// The budget is that of this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.engine.Run(ctx); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return errors.New("the capture ended: is the interface gone?")
	}
	return nil
}

// logEvents writes the list changes.
func (d *daemon) logEvents() error {
	for batch := range d.events {
		for i := range batch {
			ev := batch[i]
			if d.masker != nil {
				ev = ev.Masked(d.masker)
			}
			logEvent(d.log, &ev)
			d.monitor.Announced(&ev)
		}
		if n := d.lost.Swap(0); n > 0 {
			d.log.Warn("list changes came faster than they could be logged", "not_logged", n)
		}
	}
	return nil
}

func logEvent(log *slog.Logger, ev *pipeline.Event) {
	key, _ := report.EscapeKey(ev.Key)
	log.Info("key is "+ev.Kind.String(), "key", report.PrintableKey(key, 0), "port", ev.Port,
		"share", ev.Share, "share_low", ev.ShareLow, "share_high", ev.ShareHigh,
		"accesses_per_second", ev.Rate, "window_seconds", ev.WindowSeconds)
}

// logInterface says that an interface went or came back. It runs on the capture
// goroutine, which then has nothing to capture anyway.
func logInterface(log *slog.Logger, ch capture.InterfaceChange) {
	if ch.Up {
		log.Info("interface is back", "interface", ch.Name, "reopened", ch.Reopened)
		return
	}
	log.Warn("interface is gone or down; waiting for it", "interface", ch.Name, "error", ch.Err)
}

// liveHint adds what to do to an error of opening the capture.
func liveHint(err error) error {
	switch {
	case errors.Is(err, capture.ErrPermission):
		return withHint(err, "capturing needs CAP_NET_RAW: run as root, or once: setcap cap_net_raw+ep $(which hotsniff)")
	case errors.Is(err, capture.ErrNoLive):
		return withHint(err, "build with cgo and libpcap-dev, or read files with 'hotsniff read'")
	}
	return withHint(err, "'ip link' lists the interfaces; --interface any takes all")
}

// logger returns the log, and its level, which a reload may change.
func (c *runCmd) logger(a *app) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.UnmarshalText([]byte(c.LogLevel)) // kong checked the value
	return newLog(a.err, c.LogFormat, level), level
}
