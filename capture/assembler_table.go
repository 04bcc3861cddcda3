package capture

// sweep inspects n slots of the flow table and frees what is idle or closed, so
// that no pass over the whole table ever stops the capture.
func (a *Assembler[S]) sweep(n int) {
	now := uint16(a.now >> flowClock)
	for range min(n, a.table.made) {
		slot := a.table.advanceHand()
		f := a.table.at(slot)
		if f.flags&flowUsed == 0 {
			continue
		}
		age := int16(now - f.seen)
		switch {
		case f.flags&flowClosed != 0:
			if age >= lingerUnits || age < -lingerUnits {
				a.table.remove(slot)
			}
		case age >= a.idleUnits:
			a.expire(f, slot, EndIdle)
		}
	}
}

// expire ends and frees a flow that is not the one of the packet in hand.
func (a *Assembler[S]) expire(f *flow[S], slot int, why EndReason) {
	saved, cur := a.meta, a.cur
	a.meta = Meta{T: a.now, Port: f.port}
	a.end(f, why)
	a.meta, a.cur = saved, cur
	a.table.remove(slot)
}

// evict frees one entry of a full table: a closed flow if one is in the sample,
// else a flow that only the server was seen of, else the one that was silent
// longest. The sample is random because neighbours tend to be of one age.
func (a *Assembler[S]) evict() {
	now := uint16(a.now >> flowClock)
	best, bestAge := -1, 0
	for seen := 0; seen < evictSample; {
		slot := a.table.randomSlot()
		f := a.table.at(slot)
		if f.flags&flowUsed == 0 {
			slot = a.table.advanceHand() // nearly all are used; go on until one is
			if f = a.table.at(slot); f.flags&flowUsed == 0 {
				continue
			}
		}
		seen++
		if f.flags&flowClosed != 0 {
			a.table.remove(slot)
			return
		}
		age := int(int16(now - f.seen))
		if f.flags&flowAnchored == 0 {
			age += 1 << 16 // beyond every real age
		}
		if best < 0 || age > bestAge {
			best, bestAge = slot, age
		}
	}
	a.expire(a.table.at(best), best, EndEvicted)
}
