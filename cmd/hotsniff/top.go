package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/top"
)

// topCmd is `hotsniff top`.
type topCmd struct {
	detectFlags
	captureFlags
	URL      string         `name:"url" placeholder:"URL" help:"Look at a running daemon instead of capturing: http://host:9379, https://user:password@host:9379."`
	CAFile   string         `name:"ca-file" type:"path" placeholder:"FILE" help:"PEM file of the authorities that are trusted at an https URL (default: the system's)."`
	File     string         `name:"read" type:"path" placeholder:"FILE" help:"Replay a pcap or pcapng file instead of capturing."`
	Speed    string         `default:"1x" help:"Speed of the replay: 4x, 0.5x; max does not wait."`
	Window   string         `default:"60s" help:"Window to begin with: 60s or 5s."`
	Interval time.Duration  `default:"1s" help:"Time between two reports, 250ms at least."`
	Top      int            `default:"100" min:"1" max:"200" help:"Keys to look at."`
	Once     bool           `help:"Print one frame and exit."`
	Wait     *time.Duration `placeholder:"TIME" help:"How long --once looks before it prints. Default: one window (see --window); nothing with --url, where the daemon has looked already."`
	Format   string         `default:"screen" enum:"screen,json,csv" help:"screen, or a report for each interval as a line of JSON or as CSV with a row for each key (${enum})."`
	ASCII    bool           `help:"Use nothing beyond ASCII (default where the locale is not UTF-8)."`
}

// leastInterval is the time between two snapshots: more often is nothing new.
const leastInterval = pipeline.TickEvery

// Run implements the command.
func (c *topCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	screen, _ := a.out.(*os.File)
	if c.Format == "screen" && !c.Once && (screen == nil || !term.IsTerminal(int(screen.Fd()))) {
		return usageError{withHint(errors.New("top: standard output is no terminal"),
			"--once prints one frame, --format json or csv a report for each interval")}
	}
	feed, err := c.open(a)
	if err != nil {
		return err
	}
	defer feed.close()
	switch {
	case c.Once:
		return c.once(a, feed)
	case c.Format == "screen":
		return c.live(a, feed)
	}
	return c.stream(a, feed)
}

// check refuses flags that make no sense.
func (c *topCmd) check() error {
	bad := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case c.URL != "" && c.File != "":
		return bad("--url and --read: choose one")
	case c.Window != "60s" && c.Window != "5s":
		return bad("--window: want 60s or 5s, not %q", c.Window)
	case c.Interval < leastInterval:
		return bad("--interval: want %v or more, not %v", leastInterval, c.Interval)
	}
	if _, err := parseSpeed(c.Speed); err != nil {
		return bad("--speed: %w", err)
	}
	return nil
}

// live shows the view until the user or ctx ends it.
func (c *topCmd) live(a *app, feed *topFeed) error {
	if c.URL != "" {
		// Whoever typed the address wants to know at once.
		if _, err := feed.Sample(a.ctx); err != nil {
			return urlHint(err)
		}
	}
	o := c.options(a, feed)
	// Keys come from the terminal, also where standard input is the file.
	program := tea.NewProgram(top.New(o), tea.WithContext(a.ctx), tea.WithOutput(a.out), tea.WithoutSignalHandler())
	ctx, cancel := context.WithCancel(a.ctx)
	var side sync.WaitGroup
	side.Go(func() { top.Feed(ctx, feed, c.Interval, program.Send) })
	if feed.ended != nil {
		side.Go(func() {
			select {
			case <-ctx.Done():
			case <-feed.ended:
				c.sendEnd(feed, program)
			}
		})
	}
	_, err := program.Run()
	cancel()
	side.Wait()
	feed.close()
	if errors.Is(err, tea.ErrProgramKilled) && a.ctx.Err() != nil {
		err = nil // asked to end
	}
	if err == nil && feed.ended != nil && !feed.file {
		err = feed.err
	}
	return err
}

// sendEnd tells the view that nothing new will come. The end of a capture ends
// the view as well.
func (c *topCmd) sendEnd(feed *topFeed, program *tea.Program) {
	if !feed.file {
		program.Quit()
		return
	}
	text := "end of the file"
	if feed.err != nil {
		text += ": " + feed.err.Error()
	}
	program.Send(top.NoticeMsg{Text: text})
}

// options say how the view looks on this terminal.
func (c *topCmd) options(a *app, feed *topFeed) top.Options {
	screen, _ := a.out.(*os.File)
	plain := screen == nil || !term.IsTerminal(int(screen.Fd())) || os.Getenv("TERM") == "dumb"
	return top.Options{Source: feed.name, Fast: c.Window == "5s", ASCII: c.ASCII || !localeIsUTF8(),
		Color: os.Getenv("NO_COLOR") == "" && !plain, Plain: plain}
}

// localeIsUTF8 looks at the variables in the order that the C library does. A
// terminal that none is set for is one of today.
func localeIsUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}
