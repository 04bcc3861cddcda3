package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The log of the daemon: what starts, stops, is reloaded, comes on the list and
// leaves it, breaks and works again.
//
//	slog.Logger -> limiter -> journal (only under systemd) -> text or JSON -> stderr
//
// Nothing on the data path logs. What may come often, failures above all, is
// limited, so that neither a broken Redis nor a hostile client fills a disk.

const (
	// limitEvery is the time for which the budgets below hold.
	limitEvery = 10 * time.Second

	// maxKinds bounds the kinds of line that are told apart within limitEvery.
	// The program has some thirty; errors with a changing text use up the rest.
	maxKinds = 128

	// maxNameBytes is as much of an attribute as tells two lines apart.
	maxNameBytes = 256
)

// budget is how many lines of one kind may come within limitEvery. A full list
// may change altogether; an error is the answer to an operator, or a bug.
func budget(l slog.Level) int {
	switch {
	case l >= slog.LevelError:
		return 10
	case l >= slog.LevelWarn:
		return 1
	default:
		return 100
	}
}

// newLog returns a log that writes to w. At the debug level nothing is limited:
// someone looks for something.
func newLog(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	under := journald(w)
	if under {
		opts.ReplaceAttr = withoutTime
	}
	var line bytes.Buffer // of the journal handler
	out := w
	if under {
		out = &line
	}
	var h slog.Handler = slog.NewTextHandler(out, opts)
	if format == "json" {
		h = slog.NewJSONHandler(out, opts)
	}
	if under {
		h = &journal{h, &journalLine{buf: &line, w: w}}
	}
	return slog.New(&limiter{h, &limits{level: level, kinds: map[string]*kind{}}})
}

// journald reports whether w is a stream to the journal, which systemd says by
// device and inode in JOURNAL_STREAM (systemd.exec(5)).
func journald(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// withoutTime leaves the time to the journal, which has its own.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}

// journal puts the priority before each line, as sd-daemon(3) wants it.
type journal struct {
	slog.Handler // writes into line.buf
	line         *journalLine
}

type journalLine struct {
	mu  sync.Mutex
	buf *bytes.Buffer
	w   io.Writer
}

// Handle implements slog.Handler.
func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	j.line.mu.Lock()
	defer j.line.mu.Unlock()
	j.line.buf.Reset()
	j.line.buf.WriteString(priority(r.Level))
	if err := j.Handler.Handle(ctx, r); err != nil {
		return err
	}
	_, err := j.line.w.Write(j.line.buf.Bytes())
	return err
}

// WithAttrs implements slog.Handler.
func (j *journal) WithAttrs(a []slog.Attr) slog.Handler {
	return &journal{j.Handler.WithAttrs(a), j.line}
}

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(name string) slog.Handler {
	return &journal{j.Handler.WithGroup(name), j.line}
}

// priority is the syslog priority of a level.
func priority(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "<3>"
	case l >= slog.LevelWarn:
		return "<4>"
	case l >= slog.LevelInfo:
		return "<6>"
	default:
		return "<7>"
	}
}

// limiter lets a budget of lines of each kind through and says how many more
// there were.
type limiter struct {
	slog.Handler
	limits *limits
}

// limits is shared by a limiter and those derived from it.
type limits struct {
	level slog.Leveler
	mu    sync.Mutex
	kinds map[string]*kind // of the last limitEvery
}

// kind is what lines have in common of which the first tell it all.
type kind struct {
	begin      time.Time
	level      slog.Level
	message    string
	lines      int
	suppressed int
}

// Handle implements slog.Handler.
func (l *limiter) Handle(ctx context.Context, r slog.Record) error {
	if l.limits.level.Level() <= slog.LevelDebug {
		return l.Handler.Handle(ctx, r)
	}
	over, ok := l.limits.take(&r)
	for _, k := range over {
		said := slog.NewRecord(r.Time, k.level, k.message, 0)
		said.Add("suppressed", k.suppressed, "in", limitEvery.String())
		l.Handler.Handle(ctx, said)
	}
	if !ok {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// take reports whether a line may go out, and which kinds' time is over with
// lines that did not.
func (l *limits) take(r *slog.Record) (over []*kind, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, k := range l.kinds {
		if r.Time.Sub(k.begin) >= limitEvery {
			delete(l.kinds, id)
			if k.suppressed > 0 {
				over = append(over, k)
			}
		}
	}
	id := kindOf(r)
	k := l.kinds[id]
	if k == nil && len(l.kinds) >= maxKinds {
		id = r.Level.String() // all others together
		k = l.kinds[id]
	}
	if k == nil {
		k = &kind{begin: r.Time, level: r.Level, message: r.Message}
		l.kinds[id] = k
	}
	if k.lines >= budget(r.Level) {
		k.suppressed++
		return over, false
	}
	k.lines++
	return over, true
}

// kindOf tells lines apart by their message and what they name: an error, an
// interface, a setting. Numbers are measurements, text is quoted from outside.
func kindOf(r *slog.Record) string {
	id := r.Level.String() + " " + r.Message
	if r.Level < slog.LevelWarn {
		return id
	}
	r.Attrs(func(a slog.Attr) bool {
		if k := a.Value.Kind(); (k == slog.KindString || k == slog.KindAny) && a.Key != "text" && a.Key != "stack" {
			text := a.Value.String()
			id += " " + text[:min(len(text), maxNameBytes)]
		}
		return true
	})
	return id
}

// WithAttrs implements slog.Handler.
func (l *limiter) WithAttrs(a []slog.Attr) slog.Handler {
	return &limiter{l.Handler.WithAttrs(a), l.limits}
}

// WithGroup implements slog.Handler.
func (l *limiter) WithGroup(name string) slog.Handler {
	return &limiter{l.Handler.WithGroup(name), l.limits}
}

// serverLog is the log of an HTTP server, whose lines hold addresses of clients:
// they are attributes here, so that all are of one kind.
func serverLog(l *slog.Logger) *log.Logger { return log.New(serverLines{l}, "", 0) }

type serverLines struct{ log *slog.Logger }

// Write implements io.Writer.
func (s serverLines) Write(line []byte) (int, error) {
	s.log.Warn("trouble with an HTTP client", "text", strings.TrimSpace(string(line)))
	return len(line), nil
}
