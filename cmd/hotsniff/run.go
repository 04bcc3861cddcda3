package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/export"
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
	Top       int    `default:"20" help:"Keys in metrics and reports, at most 200."`
	LogFormat string `name:"log.format" default:"text" enum:"text,json" help:"Format of the log (${enum})."`
	LogLevel  string `name:"log.level" default:"info" enum:"debug,info,warn,error" help:"Least level that is logged (${enum})."`
}

const (
	maxTop = 200 // series per metric that a scrape may cost

	// eventQueue is how many list changes may wait for the log. The capture
	// loop never waits: what does not fit is counted and said.
	eventQueue = 1024
)

// Run implements the command.
func (c *runCmd) Run(a *app, k *kong.Context) error {
	log := c.logger(a)
	if c.Top < 1 || c.Top > maxTop {
		return usageError{fmt.Errorf("--top: want 1 to %d, not %d", maxTop, c.Top)}
	}
	cfg, err := c.engineConfig(a)
	if err != nil {
		return err
	}
	cfg.Top = c.Top
	if cfg.Budget, err = c.samplingFlags.config(); err != nil {
		return err
	}
	cfg.CPUTime = threadCPUTime
	listeners, err := c.webFlags.listen()
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	src, err := capture.OpenLive(c.captureFlags.config(cfg.Ports))
	if err != nil {
		return liveHint(err)
	}
	defer src.Close()
	d := &daemon{log: log, listeners: listeners, webConfig: c.WebConfig, events: make(chan []pipeline.Event, eventQueue), fresh: newNudge()}
	cfg.OnEvents = d.queueEvents
	cfg.OnSnapshot = d.fresh.raise
	cfg.OnPanic = func(v any, stack []byte) {
		// Neither holds bytes of the wire: a Go stack shows addresses.
		log.Error("survived a bug; please report it", "panic", fmt.Sprint(v), "stack", string(stack))
	}
	if d.engine, err = pipeline.New(cfg, src); err != nil {
		return err
	}
	if d.publisher, err = c.publishFlags.publisher(c.node(), a.file, log); err != nil {
		return err
	}
	if d.publisher == nil { // else feed hands these and those of Redis over
		d.engine.SetManual(manualEntries(a.file))
	}
	if err := c.mask(a, d); err != nil {
		return err
	}
	d.monitor = export.NewMonitor(d.engine.Latest)
	d.handler = export.NewHandler(export.Options{Latest: d.shown, Monitor: d.monitor, Node: c.node(), Top: c.Top,
		Version: versionText(), Config: shownSettings(k), Extra: publishMetrics(d.publisher), Pprof: c.Pprof, Log: log})
	log.Info("capturing", "interface", c.Interface, "port", c.Port, "threshold", c.Threshold,
		"listen", addresses(listeners), "version", versionText())
	c.webFlags.warnIfOpen(listeners, log)
	err = d.serve(a.ctx)
	log.Info("stopped")
	return err
}

// daemon is what runs side by side. Each goroutine is started in serve, has
// one job, and ends when the context does.
type daemon struct {
	log       *slog.Logger
	engine    *pipeline.Engine
	publisher *actions.Publisher // nil: nothing is published
	listeners []net.Listener
	webConfig string // file of the exporter toolkit, may be empty
	handler   http.Handler
	monitor   *export.Monitor
	masker    pipeline.Masker           // nil: everything is shown
	shown     func() *pipeline.Snapshot // what metrics, API and page may show
	listed    func() *pipeline.Snapshot // what is published
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

// serve runs everything until ctx ends or one part fails.
func (d *daemon) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.capture(ctx) })
	g.Go(d.logEvents)
	g.Go(func() error { return serveWeb(ctx, d.listeners, d.handler, d.webConfig, d.log) })
	g.Go(func() error { d.monitor.Watch(ctx); return nil })
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

func (c *runCmd) logger(a *app) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(c.LogLevel)) // kong checked the value
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.err, opts))
}
