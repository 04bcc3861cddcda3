package actions

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
)

// trouble turns any number of failures into one log line when they begin, one
// for each new kind among them, and one when they are over.
type trouble struct {
	log    *slog.Logger
	redact *redactor
	what   string

	now   Result // ResultOK when all is well
	seen  [NumResults]bool
	since time.Time
	count int
}

func (t *trouble) begin(res Result, err error) {
	if t.now == ResultOK {
		t.since = time.Now()
	}
	t.now = res
	t.count++
	if t.seen[res] {
		return
	}
	t.seen[res] = true
	attrs := []any{"result", res.String(), "error", t.redact.clean(err.Error())}
	if h := res.hint(); h != "" {
		attrs = append(attrs, "hint", h)
	}
	t.log.Warn(t.what+" failed", attrs...)
}

func (t *trouble) over() {
	if t.now == ResultOK {
		return
	}
	t.log.Info(t.what+" works again", "failures", t.count, "after", time.Since(t.since).Round(time.Millisecond))
	t.now, t.count, t.seen = ResultOK, 0, [NumResults]bool{}
}

// members is what makes two lists differ for a subscriber at once; figures
// may wait for the interval.
type members map[memberID]member

type memberID struct {
	key  string
	port uint16
}

// member leaves the number of copies out: it moves with the rate, and a change
// of it is in no hurry.
type member struct {
	state  hotlist.State
	action hotlist.Action
}

func membersOf(l *hotlist.List) members {
	m := make(members, len(l.Entries))
	for i := range l.Entries {
		e := &l.Entries[i]
		m[memberID{e.Key, e.Port}] = member{e.State, e.Action}
	}
	return m
}

// equal reports whether l has exactly these members. A nil set, of which
// nothing is known, equals no list.
func (m members) equal(l *hotlist.List) bool {
	if m == nil || len(m) != len(l.Entries) {
		return false
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if had, ok := m[memberID{e.Key, e.Port}]; !ok || had != (member{e.State, e.Action}) {
			return false
		}
	}
	return true
}

func zMember(expiry time.Time, node string) redis.Z {
	return redis.Z{Score: float64(expiry.UnixMilli()), Member: node}
}
