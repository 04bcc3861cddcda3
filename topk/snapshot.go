package topk

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"
)

// HistorySeconds is how many one-second counts KeyStat.History has at most.
const HistorySeconds = maxSlowSeconds

// Counters are totals since the Detector or Counter was made.
type Counters struct {
	Seen          uint64 // accesses handed to Add
	Sampled       uint64 // counted
	Accesses      uint64 // counted, scaled to the full traffic
	Evicted       uint64 // keys that lost their entry with accesses in the window
	Saturated     uint64 // accesses beyond 2^32 in one window, not counted
	ClockSteps    uint64 // times the clock was set back by more than 2 s
	Overflow      uint64 // keys that qualified while the list was full
	BecameHot     uint64
	BecameCooling uint64
	BecameGone    uint64
	EventsDropped uint64
}

// Snapshot is one finished view. It owns all it holds and never changes.
type Snapshot struct {
	T             int64 // packet time of the view
	From          int64 // begin of the window
	WindowSeconds int   // 0: the whole input is the window (Counter)
	Whole         bool  // made by a Counter
	SampleEvery   int   // kernel sampling in force
	EventEvery    int   // event sampling in force; both multiply
	Z             float64

	Accesses        uint64 // in the window, scaled
	SampledAccesses uint64
	RequestBytes    uint64 // scaled
	ReplyBytes      uint64
	Distinct        uint64
	DistinctExact   bool // counted, not estimated

	// Keys has the top keys of the window and every listed or pinned key, sorted
	// by accesses, then key.
	Keys   []KeyStat
	Groups []GroupStat // in the order of the rules
	Hot    int         // keys listed as hot, cooling or pinned
	Banned int

	Counters Counters
}

// KeyStat is one key of a Snapshot. Counts are of its window and scaled to the
// full traffic.
type KeyStat struct {
	Key       []byte
	KeyLen    int64 // full length
	Truncated bool  // Key is a prefix; Hash tells keys with the same prefix apart
	Hash      uint64

	State State
	Cause Cause
	Since int64 // when it became hot; 0 if it is not listed

	Share, ShareLow, ShareHigh float64 // bounds at Snapshot.Z
	// Accesses were surely of this key; AccessesError is how many more it may
	// have had while it was not tracked.
	Accesses, AccessesError uint64
	SampledAccesses         float64 // effective number of accesses behind Share
	Rate                    float64 // accesses per second

	// Writes are the accesses by commands that may change the key, Reads all others.
	Reads, Writes       uint64
	RequestBytes        uint64
	ReplyBytes          uint64
	ReplyBytesEstimated bool    // some were shared out over several requests
	BytesShare          float64 // of request and reply bytes of the port
	Commands            []CommandCount
	OtherCommands       uint64 // beyond the 16 told apart per key
	// Detailed says that reads, writes, bytes, commands and clients were
	// followed; Extrapolated that they were not followed for all accesses of the
	// window and are scaled up.
	Detailed, Extrapolated bool

	Clients        int // distinct client addresses, in one to two windows
	TopClient      [16]byte
	TopClientShare float64 // surely its part of the key's accesses

	Rule, Group, Action string
	TTL                 time.Duration
	Copies              int

	History []uint32 // accesses per second, oldest first; the last second is filling
}

// CommandCount is how often one command accessed a key.
type CommandCount struct {
	Command uint16
	Count   uint64
}

// GroupStat is the share of all keys of one rule group.
type GroupStat struct {
	Name     string
	Share    float64
	Accesses uint64
	Rate     float64
}

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
	if d.t != nil {
		snap.Distinct, snap.DistinctExact = d.countDistinct()
		for _, e := range d.top(w, n) {
			snap.Keys = append(snap.Keys, d.entryStat(e, &s))
		}
	}
	d.addListed(snap, &s)
	slices.SortFunc(snap.Keys, compareKeys)
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

func compareKeys(a, b KeyStat) int {
	return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Hash, b.Hash))
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

// addListed appends the listed and pinned keys that are not there yet.
func (d *Detector) addListed(snap *Snapshot, s *scope) {
	have := make(map[uint64]bool, len(snap.Keys))
	for i := range snap.Keys {
		have[snap.Keys[i].Hash] = true
	}
	add := func(h uint64, key []byte, keyLen int64) {
		if !have[h] {
			have[h] = true
			snap.Keys = append(snap.Keys, d.listedStat(h, key, keyLen, s))
		}
	}
	for _, l := range d.list {
		add(l.hash, l.key, l.keyLen)
	}
	for h, m := range d.manual {
		if !m.banned {
			add(h, m.key, int64(len(m.key)))
		}
	}
}

// listedStat fills in a listed key, which may have lost its entry.
func (d *Detector) listedStat(h uint64, key []byte, keyLen int64, s *scope) KeyStat {
	k := KeyStat{Key: slices.Clone(key), KeyLen: keyLen, Truncated: keyLen > int64(len(key)), Hash: h}
	if d.t != nil {
		if e := d.t.find(h); e >= 0 {
			return d.keyStat(e, s, key, keyLen)
		}
		k.AccessesError = min(d.t.foreign(int(h%sets)*ways), s.all.w)
	}
	est := estimateShare(0, 0, k.AccessesError, &s.all.tally)
	k.ShareLow, k.ShareHigh = est.bounds(&s.all.tally, s.z)
	k.setRule(d.rules.Find(key))
	d.setState(&k)
	return k
}

func (d *Detector) groupStats(s *scope) []GroupStat {
	if !d.groups.on {
		return nil
	}
	all := d.win.slowTally()
	out := make([]GroupStat, d.groups.n)
	for i, name := range d.rules.groups {
		n := d.groups.sum(i, d.win.slowN)
		out[i] = GroupStat{Name: name, Accesses: n}
		if all.w > 0 {
			out[i].Share = min(float64(n)/float64(all.w), 1)
		}
		out[i].Rate = float64(n) / (float64(max(d.now-d.from(WindowSlow), int64(sliceNanos))) / 1e9)
	}
	return out
}

// countDistinct counts the keys with accesses in the slow window: exactly while
// no key was crowded out or passed over, else by the sketches, once a second.
func (d *Detector) countDistinct() (n uint64, exact bool) {
	window := int64(d.win.slowN) * int64(time.Second)
	if (d.stats.Evicted == 0 || d.now-d.evictedAt > window) && (d.skippedAt == 0 || d.now-d.skippedAt > window) {
		for e := range d.t.total {
			if d.t.total[e] > 0 {
				n++
			}
		}
		return n, true
	}
	if !d.distinctOK || d.now-d.distinctAt >= int64(time.Second) {
		d.distinctOK, d.distinctAt = true, d.now
		d.distinctN = d.distinct.estimate(d.oldestSlot())
	}
	return d.distinctN, false
}

// oldestSlot is the part of the oldest sketch that is in the window.
func (d *Detector) oldestSlot() float64 {
	filling := float64(d.slotAge) + float64(d.tick%ticksPerSlice)/float64(ticksPerSlice)
	window := float64(d.win.slowN * slicesPerSec)
	return (window - float64(detailSlots-2)*float64(d.slotLen) - filling) / float64(d.slotLen)
}
