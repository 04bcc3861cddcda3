package capture

// server handles a segment from the server.
func (a *Assembler[S]) server(s *Segment, wire uint32, hash uint64) {
	f, _ := a.table.find(hash)
	seq := s.Seq
	if s.Flags&FlagSYN != 0 {
		seq++
		if s.Flags&FlagACK != 0 {
			a.rememberSYN(f, hash, s.Ack-1) // tells as much as the SYN that it answers
		}
	}
	if f == nil {
		if wire == 0 || s.Flags&FlagACK == 0 {
			return
		}
		f = a.openForServer(hash, s)
	}
	if f.flags&flowClosed != 0 {
		return
	}
	a.cur = f
	f.seen = uint16(a.now >> flowClock)
	if s.Flags&FlagACK != 0 {
		a.acknowledge(f, s.Ack, wire > 0)
	}
	if wire > 0 && f.flags&flowReplies != 0 {
		a.reply(f, s, seq, wire)
	}
	if f.hole != 0 {
		a.buffer.hole(f.hole).packets++
		a.giveUpDue(f)
	}
	if s.Flags&FlagRST != 0 && f.flags&flowClosed == 0 {
		a.serverReset(f, seq)
	}
}

// openForServer makes a flow because of server data. What the server
// acknowledges is where the client's next byte will be, if nothing is under way.
func (a *Assembler[S]) openForServer(hash uint64, s *Segment) *flow[S] {
	e := a.embryos.pending(hash, s.Ack)
	f := a.newFlow(hash, s.SrcPort)
	if e != nil {
		e.when |= 1
		a.open(f, e.isn+1, true)
		return f
	}
	a.open(f, s.Ack, false)
	f.flags = f.flags&^flowAnchored | flowAckKnown
	f.ack = s.Seq
	return f
}

// acknowledge notes what the server has received.
func (a *Assembler[S]) acknowledge(f *flow[S], ack uint32, spoke bool) {
	if off := int32(ack - f.next); f.flags&flowAnchored != 0 && (off > seqWindow || off < -seqWindow) {
		return // of another connection on this tuple
	}
	if f.flags&flowTwoWay == 0 || int32(ack-f.acked) > 0 {
		f.acked = ack
		f.flags = f.flags&^flowSpoke | flowTwoWay
	}
	if spoke && ack == f.acked {
		f.flags |= flowSpoke
	}
}

// reply hands server bytes to the stream: in the order seen, without what was
// there before, with the number of those that are missing.
func (a *Assembler[S]) reply(f *flow[S], s *Segment, seq, wire uint32) {
	b := s.Payload
	if f.flags&flowServerSeq == 0 {
		f.flags |= flowServerSeq
		f.snext = seq
	}
	a.meta.Turn, a.meta.ServerBytes = false, 0
	want := true
	switch ahead := int32(seq - f.snext); {
	case ahead > seqWindow || ahead < -seqWindow:
		want = a.stream.Reply(&f.state, &a.meta, nil, 0)
	case ahead > 0:
		want = a.stream.Reply(&f.state, &a.meta, nil, int(ahead))
	case ahead < 0:
		again := uint32(-ahead)
		if again >= wire {
			return
		}
		seq, wire = seq+again, wire-again
		b = b[min(int(again), len(b)):]
	}
	f.snext = seq + wire
	if want && f.flags&flowReplies != 0 {
		want = a.stream.Reply(&f.state, &a.meta, b, int(wire))
	}
	if !want {
		f.flags &^= flowReplies | flowServerSeq
	}
}

// serverReset ends the flow unless the RST is outside the window.
func (a *Assembler[S]) serverReset(f *flow[S], seq uint32) {
	if ahead := int32(seq - f.snext); f.flags&flowServerSeq != 0 && (ahead > seqWindow || ahead < -seqWindow) {
		a.stats.IgnoredResets++
		return
	}
	a.end(f, EndRST)
}
