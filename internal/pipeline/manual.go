package pipeline

import (
	"math"
	"slices"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/topk"
)

// manualSet is an immutable set of pins and bans, handed from any goroutine to
// the one of Run.
type manualSet struct {
	entries []actions.ManualEntry
}

// pin is what a snapshot knows of a pinned key beside its figures.
type pin struct {
	since int64 // packet time at which it began to hold
	rule  actions.Rule
}

// manual is the part of the engine that takes pins and bans in. Run's
// goroutine owns all but next.
type manual struct {
	set   *manualSet
	until int64 // packet time at which an entry begins or ends, 0 for never
	held  []topk.Manual
	bans  int
	pins  map[string]pin // shared with snapshots: replaced, never changed
}

// maxBanRoom is how many banned keys a snapshot makes up for. More of them
// among the largest keys make it shorter: what stands behind is small.
const maxBanRoom = 64

// SetManual replaces the pins and bans. It never blocks; the engine takes them
// in at its next tick, for ports that it meets later too. At most
// topk.MaxManual that hold at a time count. Any goroutine.
func (e *Engine) SetManual(entries []actions.ManualEntry) {
	e.manualNext.Store(&manualSet{slices.Clone(entries)})
}

// takeManual brings the detectors up to date with the pins and bans that hold
// at t. Called once a tick: it costs one atomic load unless something changed.
func (e *Engine) takeManual(t int64) {
	m, set := &e.manual, e.manualNext.Load()
	if set == m.set && (m.until == 0 || t < m.until) {
		return
	}
	m.set = set
	m.hold(t)
	for _, p := range e.active {
		m.apply(p)
	}
}

// hold works out which entries hold at t.
func (m *manual) hold(t int64) {
	before := m.pins
	m.held, m.bans, m.until, m.pins = nil, 0, 0, map[string]pin{}
	for i := range m.set.entries {
		x := &m.set.entries[i]
		from, until := packetTime(x.FromMs), packetTime(x.UntilMs)
		for _, at := range [...]int64{from, until} {
			if at > t && (m.until == 0 || at < m.until) {
				m.until = at
			}
		}
		if t < from || until != 0 && t >= until {
			continue
		}
		m.held = append(m.held, topk.Manual{Key: []byte(x.Key), Banned: x.Op == actions.OpBan})
		if x.Op == actions.OpBan {
			m.bans++
			continue
		}
		since := from
		if old, had := before[x.Key]; had && since == 0 {
			since = old.since
		} else if since == 0 {
			since = t
		}
		m.pins[x.Key] = pin{since: since, rule: x.Rule}
	}
}

// packetTime turns unix milliseconds, which anybody may have written, into
// packet time; what is too far away stays as far as it can be told.
func packetTime(ms int64) int64 { return min(ms, math.MaxInt64/1_000_000) * 1e6 }

// apply hands what holds to the detector of a port.
func (m *manual) apply(p *port) {
	if p.detector != nil {
		p.detector.SetManual(m.held)
	}
}

// judge leaves banned keys out of a window's snapshot and says since when keys
// are pinned.
func (m *manual) judge(s *topk.Snapshot, top int) {
	if len(m.held) == 0 {
		return
	}
	for i := range s.Keys {
		if k := &s.Keys[i]; k.State == topk.StatePinned && k.Since == 0 {
			k.Since = m.pins[string(k.Key)].since
		}
	}
	if m.bans > 0 {
		s.Keys = slices.DeleteFunc(s.Keys, func(k topk.KeyStat) bool { return k.State == topk.StateBanned })
		s.Keys = TopKeys(s.Keys, max(top, s.Hot))
	}
}

// room is how many keys to ask a detector for, so that top are left without
// the banned ones.
func (m *manual) room(top int) int { return top + min(m.bans, maxBanRoom) }
