package topk

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// Snapshot returns the view over everything counted so far, with Config.Top keys.
func (c *Counter) Snapshot() *Snapshot { return c.SnapshotTop(c.cfg.Top) }

// SnapshotTop returns the view with the n largest keys. State is judged once,
// over the whole input: hot when the Wilson lower bound of the share reaches the
// threshold, probable when only the share does.
func (c *Counter) SnapshotTop(n int) *Snapshot {
	s := &Snapshot{
		T: c.to, From: c.from, Whole: true, SampleEvery: int(c.weight), EventEvery: 1, Z: c.cfg.SlowZ,
		Accesses: c.all.w, SampledAccesses: c.all.n, RequestBytes: c.request, ReplyBytes: c.reply,
		Distinct: uint64(c.n), DistinctExact: c.stats.Evicted == 0, Counters: c.stats,
	}
	if !s.DistinctExact {
		s.Distinct = max(c.sketch.Estimate(), s.Distinct)
	}
	for _, i := range c.top(n) {
		s.Keys = append(s.Keys, c.keyStat(c.entry(i)))
	}
	slices.SortFunc(s.Keys, CompareKeys)
	for i := range s.Keys {
		if s.Keys[i].State == StateHot {
			s.Hot++
		}
	}
	s.Groups = c.groupStats()
	return s
}

// seconds is the time the input covers, at least one slice.
func (c *Counter) seconds() float64 {
	return float64(max(c.to-c.from, int64(sliceNanos))) / 1e9
}

// top returns the entries of the n most accessed keys that are not ignored.
func (c *Counter) top(n int) []int {
	var h rankHistogram
	shown := func(e *counterEntry) bool {
		r := c.rules.Find(c.arena.get(e.key))
		return r == nil || !r.Ignore
	}
	clamp := func(e *counterEntry) uint32 { return uint32(min(e.count, math.MaxUint32)) }
	for i := range c.n {
		if e := c.entry(i); shown(e) {
			h.add(clamp(e))
		}
	}
	floor := h.floor(n)
	var rows []int
	for i := range c.n {
		if e := c.entry(i); clamp(e) >= floor && shown(e) {
			rows = append(rows, i)
		}
	}
	slices.SortFunc(rows, func(x, y int) int {
		a, b := c.entry(x), c.entry(y)
		return cmp.Or(cmp.Compare(b.count, a.count), bytes.Compare(c.arena.get(a.key), c.arena.get(b.key)), cmp.Compare(a.hash, b.hash))
	})
	return rows[:min(n, len(rows))]
}

func (c *Counter) keyStat(e *counterEntry) KeyStat {
	key := c.arena.get(e.key)
	k := KeyStat{
		Key: slices.Clone(key), KeyLen: int64(e.keyLen), Truncated: int64(e.keyLen) > int64(len(key)), Hash: e.hash,
		Accesses: e.count, AccessesError: e.errors, Writes: e.writes, Reads: e.count - e.writes,
		RequestBytes: e.request, ReplyBytes: e.reply, ReplyBytesEstimated: e.flags&counterEstimated != 0,
		Rate: float64(e.count) / c.seconds(), Detailed: true,
	}
	est := estimateShare(e.count, c.squares(e.count), min(e.count+e.errors, c.all.w), &c.all)
	k.Share, k.SampledAccesses = est.share, est.sampled
	k.ShareLow, k.ShareHigh = est.bounds(&c.all, c.cfg.SlowZ)
	if all := c.request + c.reply; all > 0 {
		k.BytesShare = min(float64(e.request+e.reply)/float64(all), 1)
	}
	c.addExtraTo(&k, e)
	r := c.rules.Find(key)
	k.setRule(r)
	k.State, k.Cause = c.state(&k, &est, r)
	return k
}

// squares is the sum of squared weights behind a count, at the mean weight.
func (c *Counter) squares(count uint64) uint64 {
	return uint64(float64(count) * float64(c.all.q) / float64(max(c.all.w, 1)))
}

// addExtraTo fills in commands and clients.
func (c *Counter) addExtraTo(k *KeyStat, e *counterEntry) {
	if e.extra == 0 {
		k.Extrapolated = e.flags&counterPartial != 0
		k.Commands = []CommandCount{{e.command, e.count}}
		k.Clients, k.TopClient, k.TopClientShare = 1, e.client, 1
		return
	}
	x := c.extras.at(e.extra)
	seen := uint64(0)
	for _, n := range x.commands {
		seen += n
	}
	scale := 1.0
	if seen < e.count {
		k.Extrapolated = true
		scale = float64(e.count) / float64(seen)
	}
	for i, id := range x.ids[:x.ncmd] {
		k.Commands = append(k.Commands, CommandCount{id, round(float64(x.commands[i]) * scale)})
	}
	sortCommands(k.Commands)
	k.OtherCommands = round(float64(x.commands[maxCommands]) * scale)
	k.Clients = x.clients()
	k.TopClient, k.TopClientShare = heaviestClient(&x.top, &clientTop{})
}

// state judges a key against its rule.
func (c *Counter) state(k *KeyStat, est *estimate, r *Rule) (State, Cause) {
	threshold, factor := c.cfg.Threshold, 1.0
	if r != nil {
		if r.Share > 0 {
			threshold = r.Share
		}
		switch r.Kind {
		case KindRead:
			factor = float64(k.Reads) / float64(max(k.Accesses, 1))
		case KindWrite:
			factor = float64(k.Writes) / float64(max(k.Accesses, 1))
		}
		if r.BytesShare > 0 && est.sampled >= float64(c.cfg.MinSampled) && k.BytesShare >= r.BytesShare {
			return StateHot, CauseBytes
		}
		if k.Rate*factor < r.MinRate {
			return StateNone, CauseShare
		}
	}
	if est.sampled*factor < float64(c.cfg.MinSampled) || est.share*factor < threshold {
		return StateNone, CauseShare
	}
	if low, _ := wilson(est.share*factor, est.n, c.cfg.SlowZ); low >= threshold {
		return StateHot, CauseShare
	}
	return StateProbable, CauseShare
}

// countEvicted keeps the accesses of a key that goes for its group.
func (c *Counter) countEvicted(e *counterEntry) {
	if len(c.evicted) == 0 {
		return
	}
	if g := c.groupOf(e); g >= 0 {
		c.evicted[g] += e.count
	}
}

func (c *Counter) groupOf(e *counterEntry) int {
	if i := c.rules.find(c.arena.get(e.key)); i >= 0 {
		return int(c.rules.group[i])
	}
	return -1
}

func (c *Counter) groupStats() []GroupStat {
	if len(c.evicted) == 0 {
		return nil
	}
	counts := slices.Clone(c.evicted)
	for i := range c.n {
		if e := c.entry(i); c.groupOf(e) >= 0 {
			counts[c.groupOf(e)] += e.count
		}
	}
	out := make([]GroupStat, len(counts))
	for i, n := range counts {
		out[i] = GroupStat{Name: c.rules.groups[i], Accesses: n, Rate: float64(n) / c.seconds()}
		if c.all.w > 0 {
			out[i].Share = float64(n) / float64(c.all.w)
		}
	}
	return out
}
