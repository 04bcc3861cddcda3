package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/top"
)

// topFeed is where top gets its samples from.
type topFeed struct {
	top.Sampler
	name  string        // of the source, for the header
	ended chan struct{} // closed when nothing new will come; nil: never
	err   error         // why it ended; read after ended
	file  bool          // it ends because the file ends
	close func()
}

// open begins to look at what the flags name.
func (c *topCmd) open(a *app) (*topFeed, error) {
	if c.URL != "" {
		return c.openURL()
	}
	cfg, err := c.engineConfig(a)
	if err != nil {
		return nil, err
	}
	cfg.Top = c.Top
	masker, err := c.masker(a)
	if err != nil {
		return nil, err
	}
	feed := &topFeed{name: c.Interface, ended: make(chan struct{}), file: c.File != ""}
	src, err := c.source(a, &cfg, feed)
	if err != nil {
		return nil, err
	}
	// A log would tear the screen: the view says that it happened, and close
	// what it was. Neither holds bytes of the wire: a Go stack shows addresses.
	var bug string
	cfg.OnPanic = func(v any, stack []byte) { bug = fmt.Sprintf("%v\n%s", v, stack) }
	engine, err := pipeline.New(cfg, src)
	if err != nil {
		src.Close()
		return nil, err
	}
	engine.SetManual(manualEntries(a.file))
	latest := engine.Latest
	if masker != nil {
		latest = pipeline.MaskLatest(latest, masker)
	}
	feed.Sampler = &top.Engine{Latest: latest, Node: c.node(), Top: c.Top}
	ctx, cancel := context.WithCancel(a.ctx)
	go func() {
		defer close(feed.ended)
		feed.err = engine.Run(ctx)
		if feed.err == nil && ctx.Err() == nil && !feed.file {
			feed.err = errors.New("the capture ended: is the interface gone?")
		}
	}()
	feed.close = sync.OnceFunc(func() {
		cancel()
		<-feed.ended
		src.Close()
		if bug != "" {
			fmt.Fprintf(a.err, "hotsniff: survived a bug; please report it: %s\n", bug)
		}
	})
	return feed, nil
}

// source opens the file or the capture.
func (c *topCmd) source(a *app, cfg *pipeline.Config, feed *topFeed) (capture.Source, error) {
	if c.File == "" {
		src, err := capture.OpenLive(c.captureFlags.config(cfg.Ports))
		if err != nil {
			return nil, liveHint(err)
		}
		return src, nil
	}
	src, err := capture.OpenFiles([]string{c.File}, a.in)
	if err != nil {
		return nil, withHint(err, "hotsniff reads pcap and pcapng files, as written by tcpdump, tshark and dumpcap")
	}
	cfg.Detector.Seed = 1 // a replay gives the same answer every time
	feed.name = filepath.Base(c.File) + " at " + c.Speed
	speed, _ := parseSpeed(c.Speed) // checked
	return newPacedSource(src, speed), nil
}

func (c *topCmd) openURL() (*topFeed, error) {
	var ca []byte
	if c.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(c.CAFile); err != nil {
			return nil, err
		}
	}
	client, err := top.NewClient(c.URL, ca)
	if err != nil {
		return nil, usageError{fmt.Errorf("--url: %w", err)}
	}
	return &topFeed{Sampler: client, name: client.Name(), close: func() {}}, nil
}

// urlHint adds what to do to an error of asking a daemon.
func urlHint(err error) error {
	var status *top.StatusError
	if errors.As(err, &status) && status.Code == http.StatusUnauthorized {
		return withHint(err, "the daemon wants a password: --url https://user:password@host, or better in the variable HOTSNIFF_URL")
	}
	return withHint(err, "'hotsniff run' on that host listens at --web.listen-address, by default on its loopback only")
}
