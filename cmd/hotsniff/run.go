package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// runCmd is `hotsniff run`.
type runCmd struct {
	detectFlags
	captureFlags
	Top       int    `default:"20" help:"Keys in metrics and reports, at most 200."`
	Listen    string `name:"web.listen-address" default:"127.0.0.1:9379" help:"Address of the metrics and the API."`
	LogFormat string `name:"log.format" default:"text" enum:"text,json" help:"Format of the log (${enum})."`
	LogLevel  string `name:"log.level" default:"info" enum:"debug,info,warn,error" help:"Least level that is logged (${enum})."`
}

const (
	maxTop = 200 // series per metric that a scrape may cost

	// stopTimeout bounds the wait for open HTTP requests at the end: the
	// daemon promises to be gone within 2 s.
	stopTimeout = time.Second

	// eventQueue is how many list changes may wait for the log. The capture
	// loop never waits: what does not fit is counted and said.
	eventQueue = 1024
)

// Run implements the command.
func (c *runCmd) Run(a *app) error {
	log := c.logger(a)
	if c.Top < 1 || c.Top > maxTop {
		return usageError{fmt.Errorf("--top: want 1 to %d, not %d", maxTop, c.Top)}
	}
	cfg, err := c.engineConfig(a)
	if err != nil {
		return err
	}
	cfg.Top = c.Top
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return withHint(err, "choose another address with --web.listen-address")
	}
	defer listener.Close()
	src, err := capture.OpenLive(c.captureFlags.config(cfg.Ports))
	if err != nil {
		return liveHint(err)
	}
	defer src.Close()
	events := make(chan []pipeline.Event, eventQueue)
	cfg.OnEvents = func(batch []pipeline.Event) {
		select {
		case events <- append([]pipeline.Event(nil), batch...):
		default:
		}
	}
	engine, err := pipeline.New(cfg, src)
	if err != nil {
		return err
	}
	log.Info("capturing", "interface", c.Interface, "port", c.Port, "threshold", c.Threshold,
		"listen", listener.Addr().String(), "version", versionText())
	err = c.serve(a.ctx, log, engine, listener, events)
	log.Info("stopped")
	return err
}

// serve runs the capture loop, the log of list changes and the HTTP server
// until ctx ends or one of them fails.
func (c *runCmd) serve(ctx context.Context, log *slog.Logger, engine *pipeline.Engine, l net.Listener, events chan []pipeline.Event) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // owns the capture: everything from packets to snapshots
		defer close(events)
		if err := engine.Run(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			return errors.New("the capture ended: is the interface gone?")
		}
		return nil
	})
	g.Go(func() error { // owns the log of list changes
		for batch := range events {
			for i := range batch {
				logEvent(log, &batch[i])
			}
		}
		return nil
	})
	server := &http.Server{
		Handler:           export.NewHandler(engine.Latest, c.node(), c.Top),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	g.Go(func() error { // owns the listener
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error { // ends the server with the rest
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if server.Shutdown(stop) != nil {
			server.Close()
		}
		return nil
	})
	return g.Wait()
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
