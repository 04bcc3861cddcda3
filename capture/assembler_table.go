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

// evict frees one entry of a full table: the one least worth keeping of a
// sample, and a closed one at once. The sample is random because neighbours tend
// to be of one age.
func (a *Assembler[S]) evict() {
	now := uint16(a.now >> flowClock)
	best, bestRank := -1, 0
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
		if rank := evictRank(f.flags, int16(now-f.seen)); best < 0 || rank > bestRank {
			best, bestRank = slot, rank
		}
	}
	a.expire(a.table.at(best), best, EndEvicted)
}

// evictRank orders flows by how well they can be spared: first those of which
// only the server was seen, then those that sent data once, then the others;
// among equals the one that was silent longest. A flood of connections is made
// of the second kind, so it displaces itself and not the connections that work,
// even when a million of them come within one unit of the clock.
func evictRank(flags flowFlags, age int16) int {
	const kind = 1 << 16 // beyond every age
	rank := int(age)
	switch {
	case flags&flowAnchored == 0:
		rank += 2 * kind
	case flags&flowProven == 0:
		rank += kind
	}
	return rank
}
