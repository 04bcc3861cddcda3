package topk

import "time"

// judgement is a key measured against its rule in one window.
type judgement struct {
	estimate
	rule      *Rule
	ruleIndex int
	threshold float64
	factor    float64 // part of the accesses the rule counts (Kind)
	rate      float64 // accesses/s in the window, all kinds
	bytes     float64 // share of the bytes, only where a rule asks for it
	level     float64 // estimate / threshold, the larger of accesses and bytes
}

// scope is one window at the moment of evaluation.
type scope struct {
	window Window
	all    column
	flat   bool    // every access has the same weight
	secs   float64 // time covered
	z      float64
	strict bool // correct the bound: the rule is tried all day long
}

func (d *Detector) scope(w Window) scope {
	s := scope{window: w, z: d.cfg.SlowZ}
	if w == WindowFast {
		s.all, s.z, s.strict = d.win.fastTally(), d.cfg.FastZ, true
	} else {
		s.all = d.win.slowTally()
	}
	s.flat = s.all.uniform()
	s.secs = float64(max(d.now-d.from(w), int64(sliceNanos))) / 1e9
	return s
}

// effective is the size of an unweighted sample as informative as the window.
func (s *scope) effective() float64 {
	if s.all.q == 0 {
		return 0
	}
	return float64(s.all.w) * float64(s.all.w) / (float64(s.all.q) + float64(s.all.extra))
}

// from is when the window began, internal time.
func (d *Detector) from(w Window) int64 {
	if w == WindowFast {
		slice := d.base + d.tick/ticksPerSlice*int64(sliceNanos)
		return max(d.start, slice-int64(d.win.fastN-1)*int64(sliceNanos))
	}
	second := d.base + d.tick/ticksPerSec*int64(time.Second)
	return max(d.start, second-int64(d.win.slowN-1)*int64(time.Second))
}

// low is the lower bound of what counts of the key's share.
func (s *scope) low(j *judgement) float64 {
	if s.strict {
		return strictLow(j.share*j.factor, j.n, s.z)
	}
	low, _ := wilson(j.share*j.factor, j.n, s.z)
	return low
}

func (j *judgement) rateOK() bool {
	return j.rule == nil || j.rate*j.factor >= j.rule.MinRate
}

// judge measures the key of entry e in the window of s.
func (d *Detector) judge(e int, s *scope) judgement {
	t := d.t
	own, upper := uint64(0), uint64(0)
	if s.window == WindowFast {
		n, exact := d.win.ownFast(t, e)
		own, upper = uint64(n), uint64(n)
		if !exact {
			upper += t.foreign(e)
		}
	} else {
		own = uint64(t.own(e))
		upper = own
		if d.win.slice/slicesPerSec-t.meta[e].born/slicesPerSec < uint32(d.win.slowN) {
			upper += t.foreign(e)
		}
	}
	squares := uint64(0)
	switch {
	case s.all.n == 0:
	case s.flat:
		squares = own * (s.all.w / s.all.n)
	default:
		squares = d.win.ownSquares(t, e, s.window)
	}
	j := judgement{estimate: estimateShare(own, squares, min(upper, s.all.w), &s.all.tally), factor: 1}
	if s.all.extra > 0 {
		j.cluster(d.variance(e, s.window, j.share), &s.all.tally)
	}
	j.rate = float64(own) / s.secs
	d.applyRule(&j, e, s)
	return j
}

// applyRule fills in what depends on the rule of the key.
func (d *Detector) applyRule(j *judgement, e int, s *scope) {
	j.threshold, j.ruleIndex = d.cfg.Threshold, -1
	m := &d.t.meta[e]
	if d.rules != nil && m.flags&flagKey != 0 {
		if m.rule == ruleUnknown {
			key, _ := d.t.keys.get(m)
			d.matchRule(m, key)
		}
		if m.rule >= ruleFirst {
			j.ruleIndex = int(m.rule) - ruleFirst
			j.rule = &d.rules.rules[j.ruleIndex]
		}
	}
	r := j.rule
	if r == nil {
		j.level = j.share / j.threshold
		return
	}
	if r.Share > 0 {
		j.threshold = r.Share
	}
	if r.Kind != KindAny || r.BytesShare > 0 {
		d.applyDetail(j, e, s)
	}
	j.level = j.share * j.factor / j.threshold
	if r.MinRate > 0 {
		j.level = min(j.level, j.rate*j.factor/r.MinRate)
	}
	if r.BytesShare > 0 {
		j.level = max(j.level, j.bytes/r.BytesShare)
	}
}

// applyDetail computes the part of reads or writes and the share of the bytes.
// A key without a detail has neither yet, so such a rule does not fire.
func (d *Detector) applyDetail(j *judgement, e int, s *scope) {
	n := d.t.meta[e].detail
	if n == 0 {
		j.factor = 0
		if j.rule.Kind == KindAny {
			j.factor = 1
		}
		return
	}
	var sum detailSum
	d.detail(n).sum(j.own, d.dslot, &sum)
	if sum.accesses > 0 {
		switch j.rule.Kind {
		case KindWrite:
			j.factor = sum.writes / sum.accesses
		case KindRead:
			j.factor = 1 - sum.writes/sum.accesses
		}
	}
	if all := s.all.request + s.all.reply; all > 0 {
		j.bytes = min((sum.request+sum.reply)/float64(all), 1)
	}
}

// foreign is how many accesses of the slow window the set of e counted for keys
// that had their entry taken. What a key had before it got its present entry is
// among these: cells stay until they leave the window. (The count of the entry
// it took over is no bound in a sliding window: that may have shrunk since the
// key was crowded out.)
func (t *table) foreign(e int) uint64 {
	set := e &^ (ways - 1)
	n := uint64(0)
	for _, c := range t.inherited[set : set+ways] {
		n += uint64(c)
	}
	return n
}
