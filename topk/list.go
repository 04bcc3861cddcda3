package topk

import "slices"

const (
	coolLevel     = 0.5  // below this part of the threshold a hot key cools
	displaceLevel = 1.25 // a newcomer must be so much larger than the least of a full list
)

// listed is an entry of the hot list. It lives on when the key loses its table
// entry.
type listed struct {
	hash      uint64
	key       []byte
	keyLen    int64
	state     State // StateHot or StateCooling
	cause     Cause
	since     int64 // became hot, internal time
	cooled    int64 // became cooling
	window    Window
	ruleIndex int
	level     float64
}

// findListed returns the list entry of a hash, nil if there is none.
func (d *Detector) findListed(h uint64) *listed {
	for _, l := range d.list {
		if l.hash == h {
			return l
		}
	}
	return nil
}

// qualify makes a key hot, or hot again.
func (d *Detector) qualify(e int, j *judgement, s *scope, end int64, cause Cause, low float64) {
	h := d.t.hash[e]
	l := d.findListed(h)
	if l != nil && l.state == StateHot {
		l.level = max(l.level, j.level)
		return
	}
	if l == nil {
		if m := d.manual[h]; m != nil && m.banned || !d.makeRoom(e, j, s, end) {
			return
		}
		key, n := d.t.keys.get(&d.t.meta[e])
		l = &listed{hash: h, key: slices.Clone(key), keyLen: n}
		d.list = append(d.list, l)
	}
	l.state, l.cause, l.since, l.window = StateHot, cause, end, s.window
	l.ruleIndex, l.level = j.ruleIndex, j.level
	d.t.meta[e].flags &^= flagOverflow
	d.emit(EventHot, l, j, s, end, low)
}

// makeRoom reports whether the list can take entry e, and lets the least entry
// go for a clearly larger one.
func (d *Detector) makeRoom(e int, j *judgement, s *scope, end int64) bool {
	if len(d.list)+d.pinned < d.cfg.MaxHot {
		return true
	}
	var least *listed
	for _, l := range d.list {
		if least == nil || l.state != least.state && l.state == StateCooling || l.state == least.state && l.level < least.level {
			least = l
		}
	}
	m := &d.t.meta[e]
	if m.flags&flagOverflow == 0 {
		m.flags |= flagOverflow
		d.stats.Overflow++
	}
	if least == nil || least.state == StateHot && j.level < displaceLevel*least.level {
		return false
	}
	d.remove(least, s, end)
	return true
}

// review lets listed keys cool and go.
func (d *Detector) review(s *scope, end int64) {
	for i := 0; i < len(d.list); i++ {
		l := d.list[i]
		j := d.judgeListed(l, s)
		l.level = j.level
		switch {
		case l.state == StateHot && j.level < coolLevel && end-l.since >= int64(d.cfg.MinStay):
			l.state, l.cooled = StateCooling, end
			low, _ := j.bounds(&s.all.tally, s.z)
			d.emit(EventCooling, l, &j, s, end, low)
		case l.state == StateCooling && end-l.cooled >= int64(d.cfg.Cooldown):
			d.remove(l, s, end)
			i--
		}
	}
	d.expireManual(end)
}

// judgeListed measures a listed key, which may have no table entry any more.
func (d *Detector) judgeListed(l *listed, s *scope) judgement {
	if d.t != nil {
		if e := d.t.find(l.hash); e >= 0 {
			return d.judge(e, s)
		}
	}
	return judgement{threshold: d.cfg.Threshold, factor: 1, ruleIndex: l.ruleIndex}
}

// remove takes an entry off the list.
func (d *Detector) remove(l *listed, s *scope, end int64) {
	j := d.judgeListed(l, s)
	low, _ := j.bounds(&s.all.tally, s.z)
	d.emit(EventGone, l, &j, s, end, low)
	d.list = slices.DeleteFunc(d.list, func(o *listed) bool { return o == l })
}

func (d *Detector) emit(kind EventKind, l *listed, j *judgement, s *scope, end int64, low float64) {
	_, high := j.bounds(&s.all.tally, s.z)
	ev := Event{
		T: end - d.offset, Kind: kind, Cause: l.cause, Key: slices.Clone(l.key), KeyLen: l.keyLen, Hash: l.hash,
		Since: l.since - d.offset, WindowSeconds: d.windowSeconds(s.window),
		Share: j.share, ShareLow: min(low, j.share), ShareHigh: high, Rate: j.rate,
	}
	if j.rule != nil {
		ev.Rule, ev.Action = j.rule.Name, j.rule.Action
	}
	switch kind {
	case EventHot:
		d.stats.BecameHot++
	case EventCooling:
		d.stats.BecameCooling++
	case EventGone:
		d.stats.BecameGone++
	}
	if len(d.events) == maxEvents {
		d.events = append(d.events[:0], d.events[1:]...)
		d.stats.EventsDropped++
	}
	d.events = append(d.events, ev)
}

// Events appends the list changes since its last call to dst, oldest first, and
// forgets them. At most 4,096 are kept.
func (d *Detector) Events(dst []Event) []Event {
	dst = append(dst, d.events...)
	clear(d.events)
	d.events = d.events[:0]
	return dst
}

// rematch finds the rules of listed keys again after the rules changed, and
// drops the ones that are now ignored.
func (d *Detector) rematch() {
	s := d.scope(WindowSlow)
	for i := 0; i < len(d.list); i++ {
		l := d.list[i]
		l.ruleIndex = d.rules.find(l.key)
		m := d.manual[l.hash]
		if l.ruleIndex >= 0 && d.rules.rules[l.ruleIndex].Ignore || m != nil && m.banned {
			d.remove(l, &s, d.now)
			i--
		}
	}
}
