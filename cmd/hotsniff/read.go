package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/page"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
)

// readCmd is `hotsniff read`.
type readCmd struct {
	detectFlags
	Files  []string `arg:"" help:"pcap or pcapng files; - is standard input. Several files are merged by time."`
	Format string   `default:"table" enum:"table,json,csv" help:"Output format (${enum})."`
	Top    int      `default:"20" help:"Number of keys to print; 0 prints every key."`
	Window string   `default:"all" help:"all: the whole input is one window. 60s: report the last minute, found with the daemon's detector."`
	Events bool     `help:"Print every change of the hot list as a JSON line with packet time, instead of the report."`
	HTML   string   `name:"html" type:"path" placeholder:"FILE" help:"Also write the report to FILE as one HTML page that needs nothing else, for attaching to an incident."`
}

// Help is the long help: it says the limits.
func (readCmd) Help() string {
	return `Counts are exact for up to 1,000,000 distinct keys (--window all); beyond that the
rarest keys give way and every count is printed with its bound. Memory grows with the
keys: about 150 MB for a million keys of 30 bytes, never more than 420 MB.`
}

// Run implements the command.
func (c *readCmd) Run(a *app) error {
	cfg, err := c.engineConfig(a)
	if err != nil {
		return err
	}
	if cfg.Top = c.Top; c.Top <= 0 {
		cfg.Top = pipeline.AllKeys
	}
	if cfg.Whole, err = c.whole(); err != nil {
		return err
	}
	masker, err := c.masker(a)
	if err != nil {
		return err
	}
	// A replay gives the same answer every time.
	cfg.Detector.Seed = 1
	src, err := capture.OpenFiles(c.Files, a.in)
	if err != nil {
		return withHint(err, "hotsniff reads pcap and pcapng files, as written by tcpdump, tshark and dumpcap")
	}
	defer src.Close()
	if c.Events {
		cfg.Whole, cfg.OnEvents = false, c.printEvents(a.out, masker)
	}
	engine, err := pipeline.New(cfg, withProgress(src, a.err))
	if err != nil {
		return err
	}
	damage := engine.Run(a.ctx)
	if s := engine.Latest(); damage == nil || s.Started != 0 {
		if masker != nil {
			s = s.Masked(masker)
		}
		if err := c.report(a.out, s); err != nil {
			return err
		}
	}
	if damage == nil && a.ctx.Err() != nil {
		return errors.New("interrupted: what was read until then was counted")
	}
	if damage == nil {
		return nil
	}
	return withHint(damage, "what stands before that byte was counted")
}

// whole reports whether the whole input is one window.
func (c *readCmd) whole() (bool, error) {
	if c.Window == "all" {
		return true, nil
	}
	d, err := time.ParseDuration(c.Window)
	if err != nil || d != pipeline.Window {
		return false, usageError{fmt.Errorf("--window: want all or %v, not %q", pipeline.Window, c.Window)}
	}
	return false, nil
}

// report writes what was counted, to w and to the file of --html.
func (c *readCmd) report(w io.Writer, s *pipeline.Snapshot) error {
	r := s.Report(c.node(), max(c.Top, 0))
	if c.HTML != "" {
		var b bytes.Buffer
		if err := page.WriteFile(&b, r, versionText()); err != nil {
			return err
		}
		if err := os.WriteFile(c.HTML, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if c.Events {
		return nil // they have been printed
	}
	switch c.Format {
	case "json":
		return r.WriteJSON(w)
	case "csv":
		return r.WriteCSV(w)
	}
	return r.WriteTable(w)
}

// printEvents returns a function that prints list changes as JSON lines.
func (c *readCmd) printEvents(w io.Writer, m pipeline.Masker) func([]pipeline.Event) {
	node := c.node()
	return func(events []pipeline.Event) {
		for _, ev := range events {
			if m != nil {
				ev = ev.Masked(m)
			}
			report.WriteJSON(w, ev.Report(node), "")
		}
	}
}

// progressMinBytes is the size of input from which a progress bar is worth
// the room: smaller ones are done before it could be read.
const progressMinBytes = 64 << 20

// withProgress shows how far src is on standard error, where that is a
// terminal and the input is large.
func withProgress(src capture.Source, stderr io.Writer) capture.Source {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || src.Stats().FileSize < progressMinBytes {
		return src
	}
	bar := progressbar.NewOptions64(src.Stats().FileSize,
		progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	return &progressSource{Source: src, bar: bar}
}

// progressSource draws a bar while packets go by.
type progressSource struct {
	capture.Source
	bar *progressbar.ProgressBar
	n   int
}

// progressEvery is how many packets go by between two looks at the position.
const progressEvery = 1 << 16

// Next implements capture.Source.
func (s *progressSource) Next(p *capture.Packet) error {
	if s.n++; s.n%progressEvery == 0 {
		s.bar.Set64(s.Stats().FileBytes)
	}
	err := s.Source.Next(p)
	if err == io.EOF {
		s.bar.Finish()
	}
	return err
}
