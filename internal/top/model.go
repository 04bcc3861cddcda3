package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hotsniff/hotsniff/internal/report"
)

// Options say how a Model looks. The zero value is a view of the slow window
// with Unicode, without colours.
type Options struct {
	Source string // what is looked at, as the user named it
	Fast   bool   // begin with the window of 5 s
	ASCII  bool   // draw and print nothing beyond ASCII
	Color  bool   // colours; else only bold, faint and reverse
	Plain  bool   // no control sequences at all
	Still  bool   // one frame on paper: no hints at keys, no cursor
}

// screen is what the Model shows.
type screen uint8

const (
	screenTable screen = iota
	screenDetail
	screenHelp
)

// maxFilter bounds the text of the filter: longer ones find nothing anyway.
const maxFilter = 256

// Model is the state of the view. See doc.go.
type Model struct {
	opts    Options
	glyphs  *glyphs
	history history

	latest, shown *Sample // they differ while the view is paused
	earlier       []total // of requests, for the rate of now
	trouble       string  // why there is no newer sample
	notice        string

	width, height int
	screen        screen
	back          screen // where help goes back to
	fast          bool
	paused        bool
	order         map[keyID]int // frozen; nil: rows follow their figures
	sort          int           // index of columns
	reversed      bool
	filter        string
	typing        bool // the filter is being typed

	selected keyID // the key under the cursor once that was moved
	moved    bool
	cursor   int // its row
	first    int // the first row on the screen
}

// total is how many requests there were at a time.
type total struct {
	t int64 // ns
	n uint64
}

// New returns a Model without a sample.
func New(o Options) *Model {
	m := &Model{opts: o, glyphs: &unicodeGlyphs, fast: o.Fast, sort: sortShare, width: 80, height: 24}
	if o.ASCII {
		m.glyphs = &asciiGlyphs
	}
	return m
}

// add takes a sample over.
func (m *Model) add(s *Sample) {
	m.latest, m.trouble = s, ""
	m.history.add(s.Fast)
	t := s.Slow.To.UnixNano()
	if n := len(m.earlier); n > 0 && (t < m.earlier[n-1].t || s.Requests < m.earlier[n-1].n) {
		m.earlier = m.earlier[:0] // another run of the daemon
	}
	m.earlier = append(m.earlier, total{t, s.Requests})
	// One that is older than the fast window is kept, to span it.
	for len(m.earlier) > 2 && t-m.earlier[1].t >= int64(s.Fast.WindowSeconds*1e9) {
		m.earlier = slices.Delete(m.earlier, 0, 1)
	}
	if len(m.earlier) > maxPoints {
		m.earlier = slices.Delete(m.earlier, 0, 1)
	}
	if !m.paused {
		m.shown = s
	}
}

// report is what is shown: of one of the windows, nil before the first sample.
func (m *Model) report() *report.Report {
	switch {
	case m.shown == nil:
		return nil
	case m.fast:
		return m.shown.Fast
	}
	return m.shown.Slow
}

// requestRate returns the requests a second: of now in the fast window where
// that is known, else of the minute.
func (m *Model) requestRate() float64 {
	if n := len(m.earlier); m.fast && n > 1 && !m.paused {
		if span := m.earlier[n-1].t - m.earlier[0].t; span > 0 {
			return float64(m.earlier[n-1].n-m.earlier[0].n) / (float64(span) / 1e9)
		}
	}
	r := m.shown.Slow
	return float64(r.Requests) / r.Seconds()
}

// rows returns the keys to show in their order. The keys are those of the
// report, which is not changed.
func (m *Model) rows() []*report.Key {
	r := m.report()
	if r == nil {
		return nil
	}
	rows := make([]*report.Key, 0, len(r.Keys))
	for i := range r.Keys {
		if m.matches(&r.Keys[i]) {
			rows = append(rows, &r.Keys[i])
		}
	}
	less := columns[m.sort].order
	slices.SortStableFunc(rows, func(a, b *report.Key) int {
		if c := m.frozen(a, b); c != 0 {
			return c
		}
		c := less(a, b)
		if m.reversed {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(b.Share, a.Share), strings.Compare(a.Key, b.Key), cmp.Compare(a.Port, b.Port))
	})
	return rows
}

// frozen orders keys by the rows they had when the order was frozen; others
// come below, in the order of their figures.
func (m *Model) frozen(a, b *report.Key) int {
	if m.order == nil {
		return 0
	}
	i, hasA := m.order[idOf(a)]
	j, hasB := m.order[idOf(b)]
	switch {
	case hasA && hasB:
		return cmp.Compare(i, j)
	case hasA:
		return -1
	case hasB:
		return 1
	}
	return 0
}

// matches reports whether the filter lets a key through: any case, unless the
// filter has a capital.
func (m *Model) matches(k *report.Key) bool {
	if m.filter == "" {
		return true
	}
	key := k.Key
	if strings.ToLower(m.filter) == m.filter {
		key = strings.ToLower(key)
	}
	return strings.Contains(key, m.filter)
}

// place puts the cursor on its key again after the rows changed, and the
// window of rows around the cursor.
func (m *Model) place() {
	rows := m.rows()
	if m.moved {
		for i, k := range rows {
			if idOf(k) == m.selected {
				m.cursor = i
				break
			}
		}
	}
	m.cursor = max(min(m.cursor, len(rows)-1), 0)
	visible := m.visibleRows()
	m.first = min(m.first, m.cursor, max(len(rows)-visible, 0))
	m.first = max(m.first, m.cursor-visible+1, 0)
}

// move moves the cursor by so many rows.
func (m *Model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	m.cursor = max(min(m.cursor+by, len(rows)-1), 0)
	m.selected, m.moved = idOf(rows[m.cursor]), true
	if m.cursor == 0 && m.screen == screenTable {
		m.moved = false // the top row is whoever is at the top
	}
}
