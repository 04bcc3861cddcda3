package capture

// client handles a segment from the client.
func (a *Assembler[S]) client(s *Segment, wire uint32, hash uint64) {
	seq := s.Seq
	f, _ := a.table.find(hash)
	if s.Flags&FlagSYN != 0 {
		a.stats.Syns++
		a.rememberSYN(f, hash, seq)
		seq++
	}
	if f == nil {
		if wire == 0 {
			return
		}
		f = a.openForClient(hash, seq, s.DstPort)
	}
	a.cur = f
	f.seen = uint16(a.now >> flowClock)
	if f.hole != 0 {
		a.buffer.hole(f.hole).packets++
	}
	switch {
	case wire == 0:
	case seq == f.next && f.hole == 0 && f.flags&(flowAnchored|flowClosed) == flowAnchored:
		// Nearly every segment comes this way.
		a.deliver(f, s.Payload, wire, s.Ack, a.opensTurn(f, seq, s.Ack))
	case f.flags&flowAnchored == 0:
		a.anchor(f, s, seq, wire)
	default:
		a.clientData(f, piece{seq: seq, b: s.Payload, wire: wire, ack: s.Ack, t: s.T})
	}
	if f.hole != 0 {
		a.giveUpDue(f)
	}
	if s.Flags&(FlagFIN|FlagRST) != 0 && f.flags&flowClosed == 0 {
		a.clientClose(f, seq+wire, s.Flags)
	}
}

// rememberSYN keeps a SYN until data confirms it; the flow that may exist is
// left alone, because a SYN can be late, repeated or forged.
func (a *Assembler[S]) rememberSYN(f *flow[S], hash uint64, isn uint32) {
	known := a.embryos.find(hash)
	live := f != nil && f.flags&flowClosed == 0
	switch {
	case known != nil && known.isn == isn && live:
		return // the same SYN again, from another device or retransmitted
	case known == nil && live && f.flags&flowAnchored != 0 && f.next-(isn+1) < reuseSlack:
		a.embryos.put(hash, isn, a.now, true) // very probably this flow's own SYN
		return
	}
	a.embryos.put(hash, isn, a.now, false)
}

// openForClient makes a flow because of client data at seq.
func (a *Assembler[S]) openForClient(hash uint64, seq uint32, port uint16) *flow[S] {
	e := a.embryos.pending(hash, seq)
	f := a.newFlow(hash, port)
	if e != nil {
		e.when |= 1
		a.open(f, e.isn+1, true)
	} else {
		a.open(f, seq, false)
		f.flags &^= flowAnchored // seq is where the data will say
	}
	return f
}

// newFlow takes a zeroed entry, evicting another flow when the table is full.
func (a *Assembler[S]) newFlow(hash uint64, port uint16) *flow[S] {
	a.sweep(sweepPerOpen)
	if a.table.full() {
		a.evict()
	}
	f, _ := a.table.insert(hash)
	f.port = port
	return f
}

// open starts a flow in its entry, at the client byte next.
func (a *Assembler[S]) open(f *flow[S], next uint32, syn bool) {
	f.next = next
	f.flags = flowUsed | flowAnchored | flowReplies
	a.stats.Flows++
	a.stats.Opened++
	if syn {
		f.flags |= flowStart
		a.stats.OpenedSyn++
	}
	a.cur = f
	a.stream.Open(&f.state, &a.meta, syn)
}

// clientData delivers, buffers or drops the client bytes p, which are not simply
// the next ones.
func (a *Assembler[S]) clientData(f *flow[S], p piece) {
	if !a.belongs(f, p.seq, p.wire) {
		return
	}
	for {
		behind := f.next - p.seq
		switch {
		case int32(behind) >= int32(p.wire):
			a.stats.Duplicates++
			a.stats.DuplicateBytes += uint64(p.wire)
			return
		case int32(behind) >= 0:
			p.turn = behind == 0 && a.opensTurn(f, p.seq, p.ack)
			if behind > 0 {
				a.stats.DuplicateBytes += uint64(behind)
				p.cutFront(behind)
			}
			a.advance(f, p)
			return
		}
		if a.hold(f, &p) {
			return
		}
		a.makeRoom(f)
		if f.flags&flowClosed != 0 {
			return // a FIN that waited took effect
		}
	}
}

// anchor takes the first client data of a flow whose start was not seen. It
// defines where the stream begins.
func (a *Assembler[S]) anchor(f *flow[S], s *Segment, seq, wire uint32) {
	f.flags |= flowAnchored
	f.next = seq
	if wire == 1 {
		// Most likely a keep-alive probe, whose byte is garbage at the place
		// before the next byte (RFC 9293 section 3.8.4).
		f.next++
		a.stats.Duplicates++
		a.stats.DuplicateBytes++
		return
	}
	a.deliver(f, s.Payload, wire, s.Ack, a.opensTurn(f, seq, s.Ack))
}

// belongs reports whether client data at seq is to be taken into f, after
// starting f anew when it is the data of a new connection on the same tuple.
func (a *Assembler[S]) belongs(f *flow[S], seq, wire uint32) bool {
	ahead := int32(seq - f.next)
	if e := a.embryos.pending(f.hash, seq); e != nil {
		e.when |= 1
		a.restart(f, e.isn+1, true)
		return true
	}
	if f.flags&flowClosed != 0 && ahead < 0 && ahead > -seqWindow {
		a.stats.Duplicates++
		a.stats.DuplicateBytes += uint64(wire)
		return false
	}
	if f.flags&flowClosed != 0 || ahead > seqWindow || ahead < -seqWindow {
		a.restart(f, seq, false)
	}
	return true
}

// restart ends the connection in f and opens another in its entry.
func (a *Assembler[S]) restart(f *flow[S], next uint32, syn bool) {
	if f.flags&flowClosed == 0 {
		a.end(f, EndReused)
	}
	*f = flow[S]{hash: f.hash, port: f.port, seen: f.seen}
	a.open(f, next, syn)
}

// opensTurn reports whether client data at seq with this acknowledgement number
// opens a turn (see Meta.Turn).
func (a *Assembler[S]) opensTurn(f *flow[S], seq, ack uint32) bool {
	switch {
	case f.flags&flowStart != 0:
		return true
	case f.flags&flowAckKnown == 0 || int32(ack-f.ack) <= 0:
		return false
	case f.flags&flowTwoWay != 0:
		// After a loss the acknowledgement number may have moved before the
		// lost bytes; only a server that spoke with all of them in hand proves
		// that these are a new turn.
		return f.acked == seq && f.flags&(flowGapped|flowSpoke) != flowGapped
	}
	return f.flags&flowGapped == 0
}

// deliver hands the client bytes at f.next to the stream: b, and what the snap
// length cut behind them.
func (a *Assembler[S]) deliver(f *flow[S], b []byte, wire, ack uint32, turn bool) {
	m := &a.meta
	m.Turn, m.ServerBytes = turn, 0
	if moved := ack - f.ack; f.flags&flowAckKnown == 0 || int32(moved) > 0 {
		if f.flags&flowAckKnown != 0 {
			m.ServerBytes = moved
		}
		f.ack = ack
	}
	const proven = flowProven / flowAckKnown // the second data finds flowAckKnown set
	f.flags = f.flags&^(flowStart|flowGapped) | flowAckKnown | f.flags&flowAckKnown*proven
	f.next += wire
	if len(b) > 0 {
		a.stats.ClientBytes += uint64(len(b))
		a.stream.Data(&f.state, m, b)
	}
	if cut := wire - uint32(len(b)); cut > 0 {
		a.stats.Cuts++
		a.stats.CutBytes += uint64(cut)
		a.stream.Gap(&f.state, m, int64(cut))
	}
}

// clientClose handles a FIN or RST whose place in the stream is seq.
func (a *Assembler[S]) clientClose(f *flow[S], seq uint32, flags uint8) {
	ahead := int32(seq - f.next)
	anchored := f.flags&flowAnchored != 0
	if anchored && (ahead > seqWindow || ahead < -seqWindow) {
		if flags&FlagRST != 0 {
			a.stats.IgnoredResets++
		}
		return
	}
	switch {
	case anchored && ahead != 0 && a.embryos.pending(f.hash, seq) != nil:
		// A connection without data came and went on the same tuple: what lies
		// between the two was never sent.
		a.end(f, EndReused)
	case flags&FlagRST != 0:
		a.end(f, EndRST)
	case !anchored || ahead == 0:
		a.end(f, EndFIN)
		f.next++ // a FIN takes one sequence number
	case ahead > 0:
		a.holdFIN(f, seq)
	}
}

// end gives up what f waits for, tells the stream and leaves the entry closed.
func (a *Assembler[S]) end(f *flow[S], why EndReason) {
	a.cur = f
	if f.hole != 0 {
		h := a.buffer.hole(f.hole)
		fin, finSeq := h.fin, h.finSeq
		h.fin = false
		a.meta.Client, a.meta.ClientPort = h.client, h.clientPort
		for f.hole != 0 {
			a.giveUp(f)
		}
		if fin && int32(finSeq-f.next) > 0 {
			a.lose(f, finSeq)
		}
	}
	a.stats.Flows--
	a.stats.Ended[why]++
	a.meta.Turn, a.meta.ServerBytes = false, 0
	a.stream.End(&f.state, &a.meta, why)
	var zero S
	f.state = zero
	f.flags = flowUsed | flowClosed | flowAnchored
}
