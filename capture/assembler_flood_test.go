package capture

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

// flood is a stranger's packets around one connection that works: it sends a
// request after every thousand of them, and all of its bytes must come through.
type flood struct {
	t      *testing.T
	a      *Assembler[flowState]
	stream *victimStream
	victim Segment
	sent   int
	heap   uint64
}

const victimPort = 41000

// victimStream watches the connection that works.
type victimStream struct {
	countStream
	got         int64
	opens, ends int
}

func (v *victimStream) Open(f *flowState, m *Meta, syn bool) {
	v.countStream.Open(f, m, syn)
	if m.ClientPort == victimPort {
		f.id = victimPort
		v.opens++
	}
}

func (v *victimStream) Data(f *flowState, m *Meta, b []byte) {
	v.countStream.Data(f, m, b)
	if f.id == victimPort {
		v.got += int64(len(b))
	}
}

func (v *victimStream) End(f *flowState, m *Meta, why EndReason) {
	v.countStream.End(f, m, why)
	if f.id == victimPort {
		v.ends++
	}
}

// floodPackets is a million; the race detector is ten times slower. More than
// the table holds in both cases.
func floodPackets() int {
	if raceEnabled {
		return 400_000
	}
	return 1_000_000
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func newFlood(t *testing.T) *flood {
	f := &flood{t: t, heap: heapInUse(), stream: &victimStream{}, victim: fromClient(1000, 1, "*1\r\n$4\r\nPING\r\n")}
	f.a = NewAssembler[flowState](AssemblerConfig{Seed: 1}, f.stream)
	f.victim.SrcPort, f.victim.T = victimPort, startT
	f.request()
	return f
}

func (f *flood) request() {
	f.a.Add(&f.victim)
	f.victim.Seq += uint32(len(f.victim.Payload))
	f.sent += len(f.victim.Payload)
}

// run sends n packets made by next at a million a second.
func (f *flood) run(n int, next func(i int, s *Segment)) {
	s := fromClient(0, 1, "")
	for i := range n {
		s.Src[12], s.Src[13], s.Src[14], s.Src[15] = 11, byte(i>>16), byte(i>>8), byte(i)
		s.SrcPort = uint16(1024 + i&0x3fff)
		s.T = startT + int64(i)*1000
		next(i, &s)
		f.a.Add(&s)
		if i%1000 == 999 {
			f.victim.T = s.T
			f.request()
		}
		if i%250_000 == 0 {
			f.a.Tick(s.T)
		}
	}
	f.victim.T = s.T
}

// check asserts that the connection that works was read in full and that the
// memory stayed below the bound.
func (f *flood) check(maxHeap uint64) *AssemblerStats {
	f.t.Helper()
	if f.stream.got != int64(f.sent) || f.stream.opens != 1 || f.stream.ends != 0 {
		f.t.Errorf("of the connection that works %d of %d bytes came, opened %d times, ended %d times",
			f.stream.got, f.sent, f.stream.opens, f.stream.ends)
	}
	grown := int64(heapInUse()) - int64(f.heap)
	if grown > int64(maxHeap) {
		f.t.Errorf("the heap grew by %d KiB, want at most %d", grown>>10, maxHeap>>10)
	}
	st := f.a.Stats()
	f.t.Logf("heap +%d KiB, table %d KiB, %d flows, %d evicted", grown>>10, f.tableBytes()>>10, st.Flows, st.Ended[EndEvicted])
	return st
}

func (f *flood) tableBytes() int {
	return len(f.a.table.chunks)*chunkFlows*flowBytes() + 4*len(f.a.table.index)
}

// TestFloodOfSYNs: half-open connections touch a table of fixed size only, and
// a connection that is made amid them is still seen from its start.
func TestFloodOfSYNs(t *testing.T) {
	f := newFlood(t)
	n := floodPackets()
	f.run(n, func(i int, s *Segment) { s.Flags, s.Seq = FlagSYN, uint32(i) })
	st := f.check(1 << 20)
	if st.Syns != uint64(n) || st.Flows != 1 || st.Entries != 1 || st.Ended != [NumEndReasons]uint64{} {
		t.Errorf("%+v", *st)
	}
	again := func(i int, s *Segment) {
		s.Flags, s.Seq = FlagSYN, uint32(i)
		s.Src[12] = 12
		if i%5000 == 0 || i%5000 == 1000 { // SYN, and data a millisecond later
			s.Flags, s.SrcPort, s.Src = FlagSYN, uint16(i/5000), clientAddr
			s.Seq = 77
			if i%5000 == 1000 {
				s.Flags, s.Seq, s.Payload, s.WireLen = FlagACK, 78, []byte("PING\r\n"), 6
			}
		} else {
			s.Payload, s.WireLen, s.Src[10], s.Src[11] = nil, 0, 0xff, 0xff
		}
	}
	f.run(100_000, again)
	if st := f.a.Stats(); st.OpenedSyn != 20 || st.Opened != 21 {
		t.Errorf("%d of %d new connections seen from their start, want 20 of 20", st.OpenedSyn, st.Opened-1)
	}
}

// TestFloodOfConnections: a hundred thousand connections work; then a million others
// send one request each. The table stays within its cap and the flood displaces
// itself.
func TestFloodOfConnections(t *testing.T) {
	f := newFlood(t)
	const workers = 100_000
	worker := fromClient(0, 1, "*1\r\n$4\r\nPING\r\n")
	work := func() {
		for i := range workers {
			worker.Src[12], worker.Src[13], worker.Src[14], worker.Src[15] = 10, 1+byte(i>>16), byte(i>>8), byte(i)
			f.a.Add(&worker)
		}
		worker.Seq += uint32(len(worker.Payload))
	}
	worker.T = startT
	work()
	work()
	n := floodPackets()
	f.run(n, func(i int, s *Segment) { s.Payload, s.WireLen, s.Seq = []byte("PING\r\n"), 6, uint32(i) })
	const most = DefaultMaxFlows * 66
	st := f.check(most + 2<<20)
	if f.tableBytes() > most || f.a.table.made > DefaultMaxFlows {
		t.Errorf("table of %d bytes for %d flows", f.tableBytes(), f.a.table.made)
	}
	if st.Entries > DefaultMaxFlows || st.Opened != uint64(n+workers+1) || st.Ended[EndEvicted] != st.Opened-uint64(st.Entries) {
		t.Errorf("%+v", *st)
	}
	opened := st.Opened
	worker.T = f.victim.T
	work()
	// Whoever was displaced is opened anew.
	if lost := f.a.Stats().Opened - opened; lost > workers/10_000 {
		t.Errorf("the flood displaced %d of %d connections that work", lost, workers)
	}
}

// TestFloodOfOneBytePackets: single bytes, in order, out of order and in new
// connections, cost no more memory than the caps say.
func TestFloodOfOneBytePackets(t *testing.T) {
	f := newFlood(t)
	n := floodPackets()
	one := []byte("x")
	tuple := func(s *Segment, i int) {
		s.Payload, s.WireLen = one, 1
		s.Src[13], s.Src[14], s.Src[15], s.SrcPort = 0, byte(i>>8), byte(i), 5000
	}
	// A byte missing before every one, in more connections than may wait.
	f.run(n, func(i int, s *Segment) { tuple(s, i%20_000); s.Seq = 500 + uint32(i/20_000)*2 })
	st := f.check(DefaultMaxBuffered + 8<<20)
	if st.BufferedBytes > DefaultMaxBuffered || len(f.a.buffer.holes) > maxHoles || st.LimitGaps == 0 || st.Gaps == 0 {
		t.Errorf("with holes: %+v, %d holes", *st, len(f.a.buffer.holes))
	}
	// In order, and each in a connection of its own.
	f.run(n/4, func(i int, s *Segment) { tuple(s, 0); s.Src[12] = 12; s.Seq = uint32(i) })
	f.run(n, func(i int, s *Segment) { s.Payload, s.WireLen = one, 1 })
	st = f.check(DefaultMaxBuffered + DefaultMaxFlows*66 + 8<<20)
	if st.Entries > DefaultMaxFlows {
		t.Errorf("%+v", *st)
	}
}

// TestFloodThenQuiet: what a flood left goes when it is idle, and the table is
// used again instead of growing.
func TestFloodThenQuiet(t *testing.T) {
	f := newFlood(t)
	f.run(300_000, func(i int, s *Segment) { s.Payload, s.WireLen = []byte("PING\r\n"), 6 })
	made := f.a.table.made
	now := f.victim.T + int64(DefaultIdleTimeout+time.Minute)
	f.victim.T = now
	f.request()
	for range 200 { // 50 s of ticks
		now += int64(250 * time.Millisecond)
		f.a.Tick(now)
	}
	if st := f.a.Stats(); st.Flows != 1 || st.Ended[EndIdle] < uint64(made)-2 {
		t.Errorf("after the quiet: %+v", *st)
	}
	if !bytes.Equal(f.victim.Payload, []byte("*1\r\n$4\r\nPING\r\n")) || f.stream.got != int64(f.sent) {
		t.Errorf("the connection that works lost bytes: %d of %d", f.stream.got, f.sent)
	}
}
