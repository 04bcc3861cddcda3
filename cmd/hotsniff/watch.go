package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/report"
)

// watchCmd is `hotsniff watch`.
type watchCmd struct {
	Redis      redisFlags `embed:""`
	Format     string     `default:"auto" enum:"auto,table,json" help:"Output format: a table, or a JSON line for each change (${enum}; auto: a table on a terminal, else JSON)."`
	Once       bool       `help:"Print the list of now and exit."`
	NoRetained bool       `name:"no-retained" help:"Do not read the retained lists, which needs rights on keys: wait for the next ones."`
}

const (
	// watchEvery is how often the merged list is looked at: nodes publish at
	// most four times a second.
	watchEvery = 100 * time.Millisecond

	// onceWait is how long --once waits where no list is retained: nodes
	// publish every 5 s.
	onceWait = 6 * time.Second
)

// Run implements the command.
func (c *watchCmd) Run(a *app) error {
	client, err := c.Redis.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	w := hotlist.Watch(a.ctx, client, hotlist.WatchConfig{Channel: c.Redis.Channel, Sharded: c.Redis.Sharded, NoRetained: c.NoRetained})
	defer w.Close()
	if err := begin(a.ctx, client, w); err != nil || a.ctx.Err() != nil {
		return err
	}
	p := c.printer(a, client)
	if c.Once {
		await(a.ctx, w)
		return p.print(w.Hot(), w.Status(), time.Now())
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := p.print(w.Hot(), w.Status(), time.Now()); err != nil {
			return err
		}
		select {
		case <-a.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// begin waits for the first subscription. One that fails is an error: whoever
// typed the address wants to know. Later ones are tried again for ever.
func begin(ctx context.Context, client *actions.Client, w *hotlist.Watcher) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.Ready():
			return nil
		case <-tick.C:
		}
		if s := w.Status(); s.Reconnects > 0 && s.LastError != nil {
			return redisError(client, s.LastError)
		}
	}
}

// await waits until some node's list is known, or none comes.
func await(ctx context.Context, w *hotlist.Watcher) {
	ctx, cancel := context.WithTimeout(ctx, onceWait)
	defer cancel()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for len(w.Status().Nodes) == 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listPrinter prints what changed of the merged list.
type listPrinter interface {
	print(list []*hotlist.Hot, s hotlist.Status, now time.Time) error
}

func (c *watchCmd) printer(a *app, client *actions.Client) listPrinter {
	screen, _ := a.out.(*os.File)
	onTerminal := screen != nil && term.IsTerminal(int(screen.Fd()))
	switch {
	case c.Format == "json" || c.Format == "auto" && !onTerminal:
		return &jsonPrinter{out: a.out, trouble: troublePrinter{a.err, client, nil}}
	case onTerminal && !c.Once:
		return &screenPrinter{out: screen, client: client}
	}
	return &tablePrinter{out: a.out, trouble: troublePrinter{a.err, client, nil}}
}

// jsonPrinter prints a JSON line for each change.
type jsonPrinter struct {
	out     io.Writer
	changes listChanges
	trouble troublePrinter
}

func (p *jsonPrinter) print(list []*hotlist.Hot, s hotlist.Status, now time.Time) error {
	p.trouble.print(s)
	for _, ev := range p.changes.next(list, now) {
		if err := report.WriteJSON(p.out, &ev, ""); err != nil {
			return err
		}
	}
	return nil
}

// listChanges finds the changes between one list and the next.
type listChanges struct {
	known map[string]*hotlist.Hot
}

// next returns the changes since the list before: what left, then what came
// or changed its state, by share.
func (c *listChanges) next(list []*hotlist.Hot, now time.Time) []report.Event {
	current := make(map[string]*hotlist.Hot, len(list))
	for _, h := range list {
		current[h.Key] = h
	}
	var out []report.Event
	for key, h := range c.known {
		if _, has := current[key]; !has {
			out = append(out, hotEvent("gone", h, now))
		}
	}
	slices.SortFunc(out, func(a, b report.Event) int { return strings.Compare(a.Key, b.Key) })
	for _, h := range list {
		if old, had := c.known[h.Key]; had && old.State == h.State {
			continue
		}
		kind := "hot" // pinned as well: the reason tells
		if h.State == hotlist.StateCooling {
			kind = "cooling"
		}
		out = append(out, hotEvent(kind, h, now))
	}
	c.known = current
	return out
}

func hotEvent(kind string, h *hotlist.Hot, now time.Time) report.Event {
	ev := report.Event{
		Schema: report.EventSchema, At: now.UTC(), Event: kind, Port: h.Port, Share: h.Share, ShareLow: h.ShareLow,
		AccessesPerSecond: h.AccessesPerSecond, Nodes: h.Nodes, Action: h.Action.String(), Reason: h.Reason.String(),
		TTLMs: h.TTL.Milliseconds(), Copies: h.Copies,
	}
	ev.Key, ev.KeyBase64 = report.EscapeKey([]byte(h.Key))
	return ev
}

// troublePrinter says on standard error when the connection breaks and when it
// is back.
type troublePrinter struct {
	err    io.Writer
	client *actions.Client
	last   error
}

func (p *troublePrinter) print(s hotlist.Status) {
	switch {
	case s.LastError == nil && p.last != nil:
		fmt.Fprintln(p.err, "hotsniff: redis: back")
	case s.LastError != nil && p.last == nil:
		fmt.Fprintf(p.err, "hotsniff: %v; %s\n", redisError(p.client, s.LastError), consequence(s))
	}
	p.last = s.LastError
}

// consequence says what an error means for the list.
func consequence(s hotlist.Status) string {
	if s.Connected {
		return "the list is complete when each node has published again"
	}
	return "trying again"
}
