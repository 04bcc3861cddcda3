package topk

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// Snapshot returns the view over the slow window with Config.Top keys. It
// allocates, and costs about 1 ms more once a second for the distinct keys.
func (d *Detector) Snapshot() *Snapshot { return d.SnapshotWindow(WindowSlow, d.cfg.Top) }

// SnapshotWindow returns the view over one of the windows, with the n largest
// keys beside the listed ones. Details, groups and distinct keys are always of
// the slow window; in the fast one they are scaled to the accesses of the key.
func (d *Detector) SnapshotWindow(w Window, n int) *Snapshot {
	s := d.scope(w)
	s.z = d.cfg.SlowZ
	snap := &Snapshot{
		T: d.now - d.offset, From: d.from(w) - d.offset, WindowSeconds: d.windowSeconds(w),
		SampleEvery: int(d.kernel), EventEvery: d.sampler.Every(), Z: s.z,
		Accesses: s.all.w, SampledAccesses: s.all.n, RequestBytes: s.all.request, ReplyBytes: s.all.reply,
		Counters: d.stats,
	}
	snap.Counters.add(&d.win.fast[d.win.fcol].tally)
	if d.t != nil {
		snap.Distinct, snap.DistinctExact = d.countDistinct()
		for _, e := range d.top(w, n) {
			snap.Keys = append(snap.Keys, d.entryStat(e, &s))
		}
	}
	d.addListed(snap, &s)
	slices.SortFunc(snap.Keys, CompareKeys)
	for i := range snap.Keys {
		switch snap.Keys[i].State {
		case StateHot, StateCooling, StatePinned:
			snap.Hot++
		}
	}
	for _, m := range d.manual {
		if m.banned {
			snap.Banned++
		}
	}
	snap.Groups = d.groupStats(&s)
	return snap
}

func (d *Detector) windowSeconds(w Window) int {
	if w == WindowFast {
		return d.win.fastN / slicesPerSec
	}
	return d.win.slowN
}

// top returns the entries of the n largest reportable keys of the window.
func (d *Detector) top(w Window, n int) []int {
	t := d.t
	count := func(e int) uint32 {
		if t.meta[e].flags&flagKey == 0 || d.ignored(e) {
			return 0
		}
		if w == WindowFast {
			own, _ := d.win.ownFast(t, e)
			return own
		}
		return t.own(e)
	}
	var h rankHistogram
	for e := range t.total {
		if c := count(e); c > 0 {
			h.add(c)
		}
	}
	floor := max(h.floor(n), 1)
	type row struct {
		count uint32
		e     int
	}
	var rows []row
	for e := range t.total {
		if c := count(e); c >= floor {
			rows = append(rows, row{c, e})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		if c := cmp.Compare(b.count, a.count); c != 0 {
			return c
		}
		x, _ := t.keys.get(&t.meta[a.e])
		y, _ := t.keys.get(&t.meta[b.e])
		return cmp.Or(bytes.Compare(x, y), cmp.Compare(t.hash[a.e], t.hash[b.e]))
	})
	out := make([]int, 0, min(n, len(rows)))
	for i := range rows[:min(n, len(rows))] {
		out = append(out, rows[i].e)
	}
	return out
}

// ignored reports whether a rule hides the key of entry e, which has its text.
func (d *Detector) ignored(e int) bool {
	if d.rules == nil {
		return false
	}
	m := &d.t.meta[e]
	if m.rule == ruleUnknown {
		key, _ := d.t.keys.get(m)
		d.matchRule(m, key)
	}
	return m.rule >= ruleFirst && d.rules.rules[m.rule-ruleFirst].Ignore
}

// entryStat fills in a key that has an entry and its text.
func (d *Detector) entryStat(e int, s *scope) KeyStat {
	key, n := d.t.keys.get(&d.t.meta[e])
	return d.keyStat(e, s, key, n)
}

// keyStat fills in a key that has an entry.
func (d *Detector) keyStat(e int, s *scope, key []byte, n int64) KeyStat {
	m := &d.t.meta[e]
	k := KeyStat{Key: slices.Clone(key), KeyLen: n, Truncated: n > int64(len(key)), Hash: d.t.hash[e]}
	j := d.judge(e, s)
	k.Accesses, k.AccessesError = j.own, j.upper-min(j.upper, j.own)
	k.SampledAccesses, k.Rate, k.Share = j.sampled, j.rate, j.share
	k.ShareLow, k.ShareHigh = j.bounds(&s.all.tally, s.z)
	k.Reads = k.Accesses
	if j.level >= 1 && j.sampled >= float64(d.cfg.MinSampled) {
		k.State = StateProbable
	}
	k.setRule(j.rule)
	if m.detail != 0 {
		d.addDetail(&k, d.detail(m.detail), s)
	}
	k.History = d.history(e)
	d.setState(&k)
	return k
}

func (k *KeyStat) setRule(r *Rule) {
	if r == nil {
		return
	}
	k.Rule, k.Group = r.Name, cmp.Or(r.Group, r.Name)
	k.Action, k.TTL, k.Copies = r.Action, r.TTL, r.Copies
}

func (d *Detector) addDetail(k *KeyStat, x *detail, s *scope) {
	var sum detailSum
	k.Extrapolated = x.sum(k.Accesses, d.dslot, &sum)
	if sum.accesses == 0 && k.Accesses > 0 {
		return // given too recently to have seen anything
	}
	k.Detailed = true
	k.Writes = min(round(sum.writes), k.Accesses)
	k.Reads = k.Accesses - k.Writes
	k.RequestBytes, k.ReplyBytes = round(sum.request), round(sum.reply)
	k.ReplyBytesEstimated = sum.estimated
	if all := s.all.request + s.all.reply; all > 0 {
		k.BytesShare = min((sum.request+sum.reply)/float64(all), 1)
	}
	for i, id := range x.ids[:x.ncmd] {
		if c := round(sum.commands[i]); c > 0 {
			k.Commands = append(k.Commands, CommandCount{id, c})
		}
	}
	sortCommands(k.Commands)
	k.OtherCommands = round(sum.commands[maxCommands])
	var few bool
	if k.Clients, few = fewClients(&x.heaviest[0], &x.heaviest[1]); !few {
		k.Clients = countClients(&x.clients[0], &x.clients[1])
	}
	k.TopClient, k.TopClientShare = heaviestClient(&x.heaviest[0], &x.heaviest[1])
}

func sortCommands(c []CommandCount) {
	slices.SortFunc(c, func(a, b CommandCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Command, b.Command))
	})
}

func round(f float64) uint64 { return uint64(math.Round(max(f, 0))) }

// history returns the counts per second of the slow window.
func (d *Detector) history(e int) []uint32 {
	out := make([]uint32, d.win.slowN)
	d.win.cells(d.t, e, WindowSlow, func(_ *column, age int, own uint32) {
		out[len(out)-1-age] = own
	})
	return out
}

// setState applies the list and the manual entries.
func (d *Detector) setState(k *KeyStat) {
	if l := d.findListed(k.Hash); l != nil {
		k.State, k.Cause, k.Since = l.state, l.cause, l.since-d.offset
	}
	switch m := d.manual[k.Hash]; {
	case m == nil:
	case m.banned:
		k.State, k.Since = StateBanned, 0
	default:
		if k.State != StateHot && k.State != StateCooling {
			k.Cause = CauseManual
		}
		k.State = StatePinned
	}
}
