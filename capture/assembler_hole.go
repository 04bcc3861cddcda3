package capture

// hold buffers p, which lies ahead of f.next. It returns false when a limit is
// in the way; then makeRoom and try again.
func (a *Assembler[S]) hold(f *flow[S], p *piece) bool {
	h := a.holeOf(f)
	if h == nil {
		return false
	}
	if f.flags&flowTwoWay != 0 {
		last := f.ack
		if h.tail != 0 {
			last = a.buffer.page(h.tail).ack
		}
		// What the server acknowledges moves on while p waits, so the proof of
		// a turn must be taken now.
		p.turn = f.acked == p.seq && f.flags&flowSpoke != 0 && int32(p.ack-last) > 0
	}
	if !a.buffer.insert(h, *p, f.next) {
		return false
	}
	a.stats.OutOfOrder++
	return true
}

// holdFIN remembers a FIN whose place is ahead of f.next.
func (a *Assembler[S]) holdFIN(f *flow[S], seq uint32) {
	h := a.holeOf(f)
	if h == nil {
		a.makeRoom(f)
		if h = a.holeOf(f); h == nil {
			return
		}
	}
	if !h.fin {
		h.fin, h.finSeq = true, seq
	}
}

// holeOf returns the hole of f, made if need be, or nil when there are too many.
func (a *Assembler[S]) holeOf(f *flow[S]) *hole {
	if f.hole == 0 {
		f.hole = a.buffer.newHole()
		if f.hole == 0 {
			return nil
		}
		h := a.buffer.hole(f.hole)
		h.client, h.clientPort = a.meta.Client, a.meta.ClientPort
		h.baseT = a.now
		_, h.slot = a.table.find(f.hash)
	}
	return a.buffer.hole(f.hole)
}

// makeRoom gives up a hole because a limit is reached: the one of f when f has
// its share of pages, else the oldest of all.
func (a *Assembler[S]) makeRoom(f *flow[S]) {
	a.stats.LimitGaps++
	if f.hole != 0 && a.buffer.hole(f.hole).count >= maxFlowPages {
		a.giveUp(f)
		return
	}
	oldest := a.table.at(a.buffer.hole(a.buffer.first).slot)
	a.elsewhere(oldest, a.giveUp)
	a.cur = f
}

// elsewhere runs do on a flow with a hole that is not the one of the packet in
// hand.
func (a *Assembler[S]) elsewhere(f *flow[S], do func(*flow[S])) {
	saved := a.meta
	h := a.buffer.hole(f.hole)
	a.meta = Meta{T: a.now, Client: h.client, ClientPort: h.clientPort, Port: f.port}
	a.cur = f
	do(f)
	a.meta = saved
}

// advance delivers p, which starts at f.next, and what waited for it. Buffered
// bytes win over those of p: the first copy counts.
func (a *Assembler[S]) advance(f *flow[S], p piece) {
	for f.hole != 0 && p.wire > 0 {
		h := a.buffer.hole(f.hole)
		h.base, h.baseT = h.packets, a.now
		if h.head == 0 {
			break
		}
		room := a.buffer.page(h.head).seq - f.next
		if p.wire < room {
			break
		}
		part := p.first(room)
		a.deliver(f, part.b, part.wire, part.ack, part.turn)
		before := f.next
		p.cutFront(room)
		a.drain(f)
		if f.flags&flowClosed != 0 {
			return
		}
		over := min(f.next-before, p.wire)
		a.stats.DuplicateBytes += uint64(over)
		p.cutFront(over)
	}
	if p.wire > 0 {
		a.deliver(f, p.b, p.wire, p.ack, p.turn)
		if f.hole != 0 {
			a.drain(f)
		}
	}
}

// drain delivers the buffered bytes that have become in order and drops the
// hole when nothing waits any more.
func (a *Assembler[S]) drain(f *flow[S]) {
	h := a.buffer.hole(f.hole)
	for h.head != 0 && a.buffer.page(h.head).seq == f.next {
		i := a.buffer.popHead(h)
		g := a.buffer.page(i)
		turn := g.turn
		if f.flags&flowTwoWay == 0 {
			turn = a.opensTurn(f, g.seq, g.ack)
		}
		a.deliver(f, a.buffer.data(i)[:g.n], uint32(g.n)+g.cut, g.ack, turn)
		a.buffer.release(i)
	}
	fin := h.fin && h.finSeq == f.next
	if waits := h.head != 0 || h.fin && int32(h.finSeq-f.next) > 0; waits && !fin {
		return
	}
	a.buffer.freeHoleAt(f.hole)
	f.hole = 0
	if fin {
		a.end(f, EndFIN)
		f.next++
	}
}

// giveUp declares the bytes before the first waiting ones lost and delivers the
// rest up to the next hole. f must have a hole.
func (a *Assembler[S]) giveUp(f *flow[S]) {
	h := a.buffer.hole(f.hole)
	to := h.finSeq
	if h.head != 0 {
		to = a.buffer.page(h.head).seq
	} else if !h.fin {
		to = f.next
	}
	if to != f.next {
		a.lose(f, to)
	}
	a.drain(f)
}

// lose reports the bytes up to sequence number to as lost.
func (a *Assembler[S]) lose(f *flow[S], to uint32) {
	lost := to - f.next
	f.next = to
	f.flags = f.flags&^flowStart | flowGapped
	a.stats.Gaps++
	a.stats.GapBytes += uint64(lost)
	a.meta.Turn, a.meta.ServerBytes = false, 0
	a.stream.Gap(&f.state, &a.meta, int64(lost))
}

// giveUpDue gives up the holes of f that have waited long enough.
func (a *Assembler[S]) giveUpDue(f *flow[S]) {
	for f.hole != 0 && a.due(f) {
		a.giveUp(f)
	}
}

// due reports whether the first hole of f has waited long enough. The wait
// begins when the first bytes behind the hole came, and again when the missing
// bytes began to come.
func (a *Assembler[S]) due(f *flow[S]) bool {
	h := a.buffer.hole(f.hole)
	packets, t := h.base, h.baseT
	if h.head != 0 {
		g := a.buffer.page(h.head)
		packets, t = max(packets, g.packets), max(t, g.t)
	}
	packets, waited := h.packets-packets, a.now-t
	switch {
	case f.flags&flowTwoWay == 0:
		return packets >= oneWayPackets || waited >= oneWayWait
	case int32(f.acked-f.next) > 0:
		return packets >= ackedPackets || waited >= ackedWait
	}
	return waited >= unackedWait
}

// checkHoles looks through all flows that wait, at most every holeCheckEvery.
func (a *Assembler[S]) checkHoles() {
	if waited := a.now - a.checked; waited >= 0 && waited < holeCheckEvery {
		return
	}
	a.checked = a.now
	for i := a.buffer.first; i != 0; {
		h := a.buffer.hole(i)
		i = h.next
		f := a.table.at(h.slot)
		if a.due(f) {
			a.elsewhere(f, a.giveUpDue)
		}
	}
}
