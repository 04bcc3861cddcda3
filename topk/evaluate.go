package topk

import (
	"math"
	"time"
)

const (
	// fastSettle is how much traffic must have been seen before the fast rule
	// speaks: the first packets are one pipeline of one client.
	fastSettle = int64(time.Second)
	// slowSettle is the same for the slow rule.
	slowSettle = int64(5 * time.Second)
	// stealsPerTick bounds how many details change hands outside the ranking.
	stealsPerTick = 8
)

// evaluateFast looks for keys that become hot, by the fast window.
func (d *Detector) evaluateFast(end int64) {
	if end-d.start < fastSettle {
		return
	}
	s := d.scope(WindowFast)
	if s.effective() < d.cfg.FastRate*s.secs {
		return
	}
	t := d.t
	cut := d.candidateCut(s.all.w)
	filling := &t.fast[d.win.fcol]
	steals := 0
	for e := range t.fastTotal {
		if c := t.fastTotal[e] + filling[e]; c >= cut {
			steals += d.consider(e, &s, end, steals < stealsPerTick)
		}
	}
}

// evaluateSlow looks for keys that become hot by the slow window, and lets the
// listed ones cool and go.
func (d *Detector) evaluateSlow(end int64) {
	s := d.scope(WindowSlow)
	// With few accesses, ten thousand tries a week at 1 % each list every key near
	// the threshold. The first window after the start is a handful of tries.
	if full := end-d.start >= int64(d.cfg.Window); full && s.effective() < float64(d.cfg.FewSampled) {
		s.z, s.strict = d.cfg.FewZ, true
	}
	if d.win.weight() > 0 && end-d.start >= slowSettle {
		cut := d.candidateCut(s.all.w)
		steals := 0
		for e, c := range d.t.total {
			if c >= cut {
				steals += d.consider(e, &s, end, steals < stealsPerTick)
			}
		}
		if d.rules != nil && d.rules.bytes {
			d.considerBytes(&s, end)
		}
	}
	d.review(&s, end)
}

// candidateCut is the count from which a key is looked at: half of the least
// threshold, where its details must start. Never 0.
func (d *Detector) candidateCut(w uint64) uint32 {
	share := d.cfg.Threshold
	if d.rules != nil {
		share = min(share, d.rules.share)
	}
	return uint32(max(math.Ceil(share/2*float64(w)), 1))
}

// consider measures entry e and lists it if it qualifies. It returns 1 when it
// moved a detail to the entry.
func (d *Detector) consider(e int, s *scope, end int64, maySteal bool) int {
	t := d.t
	m := &t.meta[e]
	if m.flags&flagKey == 0 {
		return 0
	}
	moved := 0
	if m.detail == 0 && (d.takeDetail(e) || maySteal && d.stealDetail(e)) {
		moved = 1
	}
	j := d.judge(e, s)
	if j.rule != nil && j.rule.Ignore || j.sampled < float64(d.cfg.MinSampled) {
		return moved
	}
	low := s.low(&j)
	if low >= j.threshold && j.rateOK() && d.spread(e, s.window) {
		d.qualify(e, &j, s, end, CauseShare, low)
	}
	return moved
}

// spread reports whether a tenth of the key's accesses lie outside its largest
// slice (fast) or second (slow): one pipeline on a quiet port makes no key hot.
func (d *Detector) spread(e int, w Window) bool {
	if l := d.findListed(d.t.hash[e]); l != nil && l.state == StateHot {
		return true // nothing to decide
	}
	all, largest := uint64(0), uint64(0)
	d.win.cells(d.t, e, w, func(_ *column, _ int, own uint32) {
		all += uint64(own)
		largest = max(largest, uint64(own))
	})
	return 10*(all-largest) >= all
}

// considerBytes lists keys by their share of the bytes, where rules ask for it.
// Byte counts of single accesses vary too much for a binomial bound, so the
// share is lowered by z standard errors of the number of accesses.
func (d *Detector) considerBytes(s *scope, end int64) {
	for _, x := range d.details {
		e := int(x.entry) - 1
		if e < 0 || d.t.meta[e].flags&flagKey == 0 {
			continue
		}
		j := d.judge(e, s)
		if j.rule == nil || j.rule.Ignore || j.rule.BytesShare == 0 || j.sampled < float64(d.cfg.MinSampled) {
			continue
		}
		if j.bytes*(1-s.z/math.Sqrt(j.sampled)) >= j.rule.BytesShare && d.spread(e, s.window) {
			d.qualify(e, &j, s, end, CauseBytes, j.share)
		}
	}
}
