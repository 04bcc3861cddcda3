package topk

import "time"

// idleCut: shorter idle times are walked through tick by tick.
const idleCut = int64(2 * time.Second)

// turn is called when an access or Advance leaves the current tick: it starts
// the clock, absorbs steps back and closes the ticks that have passed.
func (d *Detector) turn(at int64) {
	at = plausibleTime(at)
	t := at + d.offset
	switch {
	case !d.begun:
		d.begun = true
		d.base, d.start, d.now, t = at, at, at, at
		d.distinctAt = at - int64(sliceNanos)
	case t < d.now-maxBackstep:
		// The clock was set back: go on from where it was. Reports subtract the
		// offset, so they speak the new clock's language.
		d.stats.ClockSteps++
		d.offset += d.now - t
		t = d.now
	}
	if d.t == nil {
		d.open()
	}
	t = d.closeTicks(t)
	if t > d.now {
		d.now = t
	}
	d.setBounds()
}

// setBounds makes Add call turn for times outside [now-maxBackstep, end of tick).
func (d *Detector) setBounds() {
	end := d.base + (d.tick+1)*int64(tickNanos)
	d.floor = end - int64(tickNanos) - maxBackstep
	d.span = uint64(end - d.floor)
}

// Advance rotates the windows and evaluates them up to t. Call it about every
// 250 ms with the time, so that keys cool when no packets come, and once with
// the time of the last packet at the end of a file. It never fails: a clock that
// steps back goes on from where it was, a jump ahead costs a bounded amount of
// work (the windows and the list run empty and the rest is skipped).
func (d *Detector) Advance(t int64) {
	if !d.begun {
		return // an idle port costs nothing
	}
	if uint64(t+d.offset-d.floor) >= d.span {
		d.turn(t)
		return
	}
	if t += d.offset; t > d.now {
		d.now = t
	}
}

// closeTicks evaluates at the end of every tick up to t. It returns t, which is
// earlier when idle time was cut out.
func (d *Detector) closeTicks(t int64) int64 {
	for {
		end := d.base + (d.tick+1)*int64(tickNanos)
		if end > t {
			return t
		}
		if d.win.weight() == 0 && len(d.list) == 0 && t-end > idleCut {
			t -= d.cut(t - end)
			continue
		}
		d.closeTick(end)
	}
}

// closeTick evaluates the windows as they are at the end of the tick, then opens
// the next tick, slice and second.
func (d *Detector) closeTick(end int64) {
	second := (d.tick+1)%ticksPerSec == 0
	if end > d.now {
		d.now = end
	}
	if d.win.weight() > 0 {
		d.evaluateFast(end)
	}
	if second {
		d.evaluateSlow(end)
	}
	if d.tick++; d.tick%ticksPerSlice != 0 {
		return
	}
	// A slice or second without accesses changes no rank.
	sliceUsed := d.win.fast[d.win.fcol].n > 0
	secondUsed := sliceUsed || d.win.slow[d.win.scol].n > 0
	d.stats.add(&d.win.fast[d.win.fcol].tally)
	d.win.closeSlice(d.t)
	if second {
		d.groups.openSecond(d.win.scol)
		if d.clusters != nil {
			d.clusters.forget()
		}
	}
	d.slotAge++
	if d.slotAge == d.slotLen {
		d.closeSlot()
	}
	if sliceUsed {
		d.t.reclaim()
	}
	if second && secondUsed {
		d.rankDetails()
	}
}

// closeSlot opens the next twelfth of the window in sketches and details.
func (d *Detector) closeSlot() {
	d.slotAge = 0
	d.distinct.rotate()
	d.epoch++
	if d.epoch == 0 {
		d.epoch = 1
		for e := range d.t.meta {
			d.t.meta[e].epoch = 0
		}
	}
	d.dslot = (d.dslot + 1) % detailSlots
	d.dturn++
	turn := d.dturn == detailSlots-1 // a generation of clients lasts one window
	if turn {
		d.dturn = 0
		d.dgen ^= 1
	}
	for _, x := range d.details {
		x.slots[d.dslot] = detailSlot{}
		if turn {
			x.clients[d.dgen] = clientSet{}
			x.heaviest[d.dgen] = clientTop{}
		}
	}
}

// cut takes idle time out of the internal clock: the windows and the list are
// empty, so nothing depends on it. This bounds the work of a jump of the clock
// and keeps the clock inside int64 however often it jumps. It returns what it
// cut, whole seconds.
func (d *Detector) cut(idle int64) int64 {
	idle -= idle % int64(time.Second)
	d.offset -= idle
	d.distinct.clear()
	for e := range d.t.meta {
		d.t.meta[e].epoch = 0
		d.t.heat[e] = 0
	}
	for _, x := range d.details {
		if x.entry != 0 {
			x.reset(int(x.entry) - 1)
		}
	}
	return idle
}

// plausibleTime keeps arithmetic on hostile timestamps inside int64: times
// before 1970 and after 2116 are moved to these.
func plausibleTime(t int64) int64 { return min(max(t, 0), 1<<62) }
