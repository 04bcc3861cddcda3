package capture

import (
	"testing"
	"time"
)

// seqByte is the client byte at an absolute sequence number, the same in every
// connection, so that any delivered byte can be judged.
func seqByte(seq uint32) byte { return byte(seq*7 + seq>>8*13) }

// judge checks every call of an Assembler.
type judge struct {
	t     *testing.T
	a     *Assembler[flowState]
	opens int
	ends  int
	bytes uint64
	gaps  uint64
}

const (
	judgeOpen  = 1 << iota // Open was called
	judgeKnown             // bytes is the next sequence number
)

func (j *judge) Open(f *flowState, m *Meta, _ bool) {
	if *f != (flowState{}) {
		j.t.Fatalf("Open with state %+v", *f)
	}
	f.id = judgeOpen
	j.opens++
}

func (j *judge) Data(f *flowState, m *Meta, b []byte) {
	if f.id&judgeOpen == 0 || len(b) == 0 {
		j.t.Fatalf("Data of %d bytes in state %+v", len(b), *f)
	}
	j.bytes += uint64(len(b))
	if f.id&judgeKnown != 0 {
		for i, c := range b {
			if c != seqByte(uint32(f.bytes)+uint32(i)) {
				j.t.Fatalf("wrong byte %d of %d at %d", i, len(b), uint32(f.bytes))
			}
		}
		f.bytes += int64(len(b))
	}
}

func (j *judge) Gap(f *flowState, m *Meta, n int64) {
	if f.id&judgeOpen == 0 || n <= 0 || n > seqWindow {
		j.t.Fatalf("Gap of %d in state %+v", n, *f)
	}
	j.gaps += uint64(n)
	f.bytes += n
	if f.id&judgeKnown == 0 {
		f.bytes = 0
	}
}

func (j *judge) Reply(f *flowState, m *Meta, b []byte, wire int) bool {
	if f.id&judgeOpen == 0 || wire < len(b) || wire < 0 {
		j.t.Fatalf("Reply %d of %d in state %+v", len(b), wire, *f)
	}
	return wire%5 != 0
}

func (j *judge) End(f *flowState, _ *Meta, why EndReason) {
	if f.id&judgeOpen == 0 {
		j.t.Fatal("End without Open")
	}
	*f = flowState{}
	j.ends++
}

// settle notes the position of the flow that the packet in hand used, now that
// everything it caused is done.
func (j *judge) settle() {
	f := j.a.cur
	if f == nil || f.state.id&judgeOpen == 0 || f.flags&flowAnchored == 0 {
		return
	}
	if f.state.id&judgeKnown != 0 && uint32(f.state.bytes) != f.next {
		j.t.Fatalf("told up to %d, the flow is at %d", uint32(f.state.bytes), f.next)
	}
	f.state.id |= judgeKnown
	f.state.bytes = int64(f.next)
}

// FuzzAssembler makes segments out of 8 bytes each: kind, connection, sequence
// offset (2), length (2), captured, wait.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0, 30, 0, 9, 0, 0, 0, 0, 0, 10, 0, 20, 0, 0})
	f.Add([]byte{0, 0, 1, 0, 0, 5, 0, 0, 0, 0, 2, 0, 0, 5, 0, 255, 1, 0, 2, 5, 9, 9, 0, 0, 2, 0, 2, 5, 0, 0, 0, 0})
	f.Add([]byte("a few bytes that make segments of all kinds, out of order, reset and closed"))
	f.Add([]byte{4, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 8, 0, 0, 0, 0, 1, 4, 0, 16, 0, 3, 0, 8, 1, 0, 9, 0, 3, 0, 0, 16, 1, 0, 3, 0, 3, 0, 200})
	f.Fuzz(runScript)
}

// runScript runs one fuzz input.
func runScript(t *testing.T, script []byte) {
	j := &judge{t: t}
	a := newAssembler[flowState](AssemblerConfig{MaxFlows: 3, MaxBuffered: 8 * pageBytes, Seed: 1}, j, 1)
	j.a = a
	now := startT
	for ; len(script) >= 8; script = script[8:] {
		op := script[:8]
		now += int64(op[7]) * int64(4*time.Millisecond)
		if op[0] == 255 {
			a.Tick(now)
			continue
		}
		offset := uint32(op[2])<<8 | uint32(op[3])
		size := int(op[4]&0x0f)<<8 | int(op[5])
		seq := uint32(0xfffff000) + offset // the sequence numbers wrap in between
		if op[4]&0x10 != 0 {
			seq += 1 << 30 // far away
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = seqByte(seq + uint32(i))
		}
		s := fromClient(seq, uint32(op[6])*16, string(b))
		if op[0]&1 != 0 {
			s = fromServer(uint32(op[6])*16, seq, string(b))
		}
		s.Flags |= op[0] >> 2 & (FlagFIN | FlagRST)
		if op[0]&0x20 != 0 {
			s.Flags = s.Flags&^FlagACK | FlagSYN
			s.Seq--
		}
		if op[0]&0x40 != 0 {
			s.Payload = s.Payload[:len(s.Payload)/2]
		}
		if op[0]&1 == 0 {
			s.SrcPort += uint16(op[1] % 5)
		} else {
			s.DstPort += uint16(op[1] % 5)
		}
		s.T = now
		a.cur = nil
		a.Add(&s)
		j.settle()
		checkAssembler(t, a)
	}
	a.Flush(now)
	st := a.Stats()
	if j.opens != j.ends || st.Flows != 0 || st.Entries != 0 || st.Buffered != 0 {
		t.Fatalf("%d opened, %d ended, %+v", j.opens, j.ends, *st)
	}
	if j.bytes != st.ClientBytes || j.gaps != st.GapBytes+st.CutBytes {
		t.Fatalf("%d bytes and %d in gaps, counted %+v", j.bytes, j.gaps, *st)
	}
}

// checkAssembler checks the inner bookkeeping.
func checkAssembler(t *testing.T, a *Assembler[flowState]) {
	t.Helper()
	open, used, pages, holes := 0, 0, 0, 0
	for slot := range a.table.made {
		f := a.table.at(slot)
		if f.flags&flowUsed == 0 {
			continue
		}
		used++
		if found, at := a.table.find(f.hash); found != f || at != slot {
			t.Fatal("a flow cannot be found")
		}
		if f.flags&flowClosed == 0 {
			open++
		}
		if f.hole == 0 {
			continue
		}
		holes++
		h := a.buffer.hole(f.hole)
		if h.slot != slot || h.head == 0 && !h.fin {
			t.Fatalf("hole %+v of slot %d", *h, slot)
		}
		n, at := 0, f.next
		for i := h.head; i != 0; i = a.buffer.page(i).next {
			g := a.buffer.page(i)
			if int32(g.seq-at) < 0 || n == 0 && g.seq == f.next {
				t.Fatalf("page at %d, expected behind %d", g.seq, at)
			}
			at = g.end()
			n++
			if g.next == 0 && h.tail != i {
				t.Fatal("the tail is not the last page")
			}
		}
		if n != h.count || n > maxFlowPages {
			t.Fatalf("%d pages, counted %d", n, h.count)
		}
		pages += n
	}
	listed := 0
	for i := a.buffer.first; i != 0; i = a.buffer.hole(i).next {
		listed++
	}
	if st := a.Stats(); open != st.Flows || used != a.table.used || used > a.table.max || pages != a.buffer.inUse ||
		pages > a.buffer.maxPages || holes != listed {
		t.Fatalf("%d open, %d used, %d pages, %d holes, %d listed, %+v", open, used, pages, holes, listed, *st)
	}
}

func TestAssemblerDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	a := NewAssembler[flowState](AssemblerConfig{}, &countStream{})
	segments := roundRobin(100)
	add := func() {
		for i := range segments {
			a.Add(&segments[i])
			segments[i].Seq += uint32(len(segments[i].Payload))
		}
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations for 100 segments in order", n)
	}
	swapped := func() { // every pair out of order
		for i := range segments {
			s := segments[i]
			s.Seq += uint32(len(s.Payload))
			a.Add(&s)
			a.Add(&segments[i])
			segments[i].Seq += 2 * uint32(len(s.Payload))
		}
	}
	swapped()
	if n := testing.AllocsPerRun(100, swapped); n != 0 {
		t.Errorf("%v allocations for 200 segments out of order", n)
	}
	if st := a.Stats(); st.Gaps != 0 || st.Duplicates != 0 || st.OutOfOrder == 0 {
		t.Errorf("stats %+v", *st)
	}
}
