package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/report"
)

// Control sequences of a frame, all of them: nothing else that reaches the
// terminal can control it, since keys, names and errors are printed escaped.
const (
	screenClear = "\x1b[2J"  // everything, before the first frame
	frameBegin  = "\x1b[H"   // to the top left
	wrapOff     = "\x1b[?7l" // long lines end at the edge
	wrapOn      = "\x1b[?7h" //
	lineEnd     = "\x1b[K\n" // what stood there before goes
	frameEnd    = "\x1b[J"   // also below
	watchKeyMax = 40         // runes of a key, as in reports
	rowsBeside  = 5          // of a frame: header, more, empty, status, cursor
)

// screenPrinter redraws the table on a terminal whenever it changes.
type screenPrinter struct {
	out    *os.File
	client *actions.Client
	last   string
}

func (p *screenPrinter) print(list []*hotlist.Hot, s hotlist.Status, now time.Time) error {
	rows := len(list)
	if _, height, err := term.GetSize(int(p.out.Fd())); err == nil {
		rows = max(height-rowsBeside, 1)
	}
	text := watchTable(list, now, rows) + watchStatus(p.client, list, s)
	if text == p.last {
		return nil
	}
	first := p.last == ""
	p.last = text
	return writeFrame(p.out, text, first)
}

// writeFrame puts text over what is on the screen, without flicker: nothing is
// cleared that is drawn again.
func writeFrame(w io.Writer, text string, first bool) error {
	var b strings.Builder
	if first {
		b.WriteString(screenClear)
	}
	b.WriteString(frameBegin + wrapOff + strings.ReplaceAll(text, "\n", lineEnd) + frameEnd + wrapOn)
	_, err := io.WriteString(w, b.String())
	return err
}

// tablePrinter prints a table each time that the list changes.
type tablePrinter struct {
	out     io.Writer
	changes listChanges
	trouble troublePrinter
	printed bool
}

func (p *tablePrinter) print(list []*hotlist.Hot, s hotlist.Status, now time.Time) error {
	p.trouble.print(s)
	if len(p.changes.next(list, now)) == 0 && p.printed {
		return nil
	}
	text := watchTable(list, now, len(list)) + watchStatus(p.trouble.client, list, s)
	if p.printed {
		text = "\n" + text
	}
	p.printed = true
	_, err := io.WriteString(p.out, text)
	return err
}

// watchTable draws the list, at most so many rows of it.
func watchTable(list []*hotlist.Hot, now time.Time, rows int) string {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KEY\tSTATE\tSHARE\tNODE SHARE\tPER SECOND\tWRITES\tCLIENTS\tNODES\tLISTED FOR\tACTION\tREASON\tTTL\tCOPIES\t")
	for _, h := range list[:min(rows, len(list))] {
		fmt.Fprintf(tw, "%s\t%v\t%.2f%%\t%.2f%%\t%.1f\t%.0f%%\t%d\t%d\t%s\t%v\t%v\t%v\t%d\t\n",
			report.PrintableKey(h.Key, watchKeyMax), h.State, h.Share*100, h.NodeShare*100, h.AccessesPerSecond,
			h.WriteRatio*100, h.Clients, h.Nodes, age(h.SinceMs, now), h.Action, h.Reason, h.TTL, h.Copies)
	}
	tw.Flush() // into memory: cannot fail
	if more := len(list) - rows; more > 0 {
		fmt.Fprintf(&b, "… %d more\n", more)
	}
	return b.String()
}

// age is how long ago a time of another machine was, whose clock may be ahead.
func age(sinceMs int64, now time.Time) string {
	if sinceMs <= 0 {
		return "-"
	}
	return max(now.Sub(time.UnixMilli(sinceMs)), 0).Truncate(time.Second).String()
}

// watchStatus is what stands below the table: how well the list is known.
func watchStatus(client *actions.Client, list []*hotlist.Hot, s hotlist.Status) string {
	stale := 0
	for i := range s.Nodes {
		if s.Nodes[i].Stale {
			stale++
		}
	}
	text := fmt.Sprintf("\n%d hot keys at %d nodes", len(list), len(s.Nodes))
	if stale > 0 {
		text += fmt.Sprintf(", %d of them silent", stale)
	}
	if len(s.Nodes) > 0 {
		text += fmt.Sprintf("; newest list %v ago", s.Age.Truncate(time.Second))
	}
	if s.LastError != nil {
		text += fmt.Sprintf("; %v, %s", redisError(client, s.LastError), consequence(s))
	}
	return text + "\n"
}
