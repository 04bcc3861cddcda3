package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/top"
)

// once prints one frame, or one report.
func (c *topCmd) once(a *app, feed *topFeed) error {
	last, model, err := c.watch(a, feed)
	if err != nil {
		return err
	}
	if c.Format != "screen" {
		return c.printer(a.out)(c.shown(last))
	}
	width, height := 80, 24
	if screen, ok := a.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(screen.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
	}
	// One line is left to the prompt.
	_, err = fmt.Fprintln(a.out, top.Render(model, width, height-1))
	return err
}

// watch looks for as long as --once does, and returns what there is then.
func (c *topCmd) watch(a *app, feed *topFeed) (*top.Sample, *top.Model, error) {
	o := c.options(a, feed)
	o.Still = true
	model := top.New(o)
	var last *top.Sample
	look := func() error {
		s, err := feed.Sample(a.ctx)
		if err == nil {
			last = s
			model.Update(top.SampleMsg{Sample: s})
		}
		if errors.Is(err, top.ErrNothing) {
			return nil
		}
		return err
	}
	end := time.NewTimer(c.wait())
	defer end.Stop()
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return nil, nil, errors.New("interrupted")
		case <-tick.C:
			if err := look(); err != nil {
				return nil, nil, urlHint(err)
			}
			continue
		case <-feed.ended: // nil with --url: never
			if feed.err != nil {
				return nil, nil, feed.err
			}
		case <-end.C:
		}
		if err := look(); err != nil {
			return nil, nil, urlHint(err)
		}
		if last == nil {
			last = &top.Sample{Slow: &report.Report{}, Fast: &report.Report{}}
		}
		return last, model, nil
	}
}

// wait is how long --once looks.
func (c *topCmd) wait() time.Duration {
	switch {
	case c.Wait != nil:
		return max(*c.Wait, 0)
	case c.URL != "":
		return 0
	case c.Window == "5s":
		return 5 * time.Second
	}
	return pipeline.Window
}

// stream prints a report for each interval.
func (c *topCmd) stream(a *app, feed *topFeed) error {
	print := c.printer(a.out)
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-a.ctx.Done():
			return nil
		case <-feed.ended:
			ended = true
			if feed.err != nil && !feed.file {
				return feed.err
			}
		case <-tick.C:
		}
		s, err := feed.Sample(a.ctx)
		switch {
		case errors.Is(err, top.ErrNothing):
			continue
		case a.ctx.Err() != nil:
			return nil
		case err != nil:
			return urlHint(err)
		}
		if err := print(c.shown(s)); err != nil {
			return err
		}
	}
	return feed.err
}

func (c *topCmd) shown(s *top.Sample) *report.Report {
	if c.Window == "5s" {
		return s.Fast
	}
	return s.Slow
}

// printer returns what prints a report in the format.
func (c *topCmd) printer(w io.Writer) func(*report.Report) error {
	if c.Format == "csv" {
		return report.NewCSVWriter(w).Write
	}
	return func(r *report.Report) error { return report.WriteJSON(w, r, "") }
}
