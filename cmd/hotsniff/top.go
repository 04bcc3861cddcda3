package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/report"
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
	Top      int            `default:"100" help:"Keys to look at, at most 200."`
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
	case c.Top < 1 || c.Top > maxTop:
		return bad("--top: want 1 to %d, not %d", maxTop, c.Top)
	}
	if _, err := parseSpeed(c.Speed); err != nil {
		return bad("--speed: %w", err)
	}
	return nil
}

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
	feed.Sampler = &top.Engine{Latest: engine.Latest, Node: c.node(), Top: c.Top}
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
	if errors.As(err, &status) && status.Code == 401 {
		return withHint(err, "the daemon wants a password: --url https://user:password@host, or better in the variable HOTSNIFF_URL")
	}
	return withHint(err, "'hotsniff run' on that host listens at --web.listen-address, by default on its loopback only")
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
