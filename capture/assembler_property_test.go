package capture

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/tcpassembly"
)

// streamByte is the byte of the stream of connection conn at position pos, so
// that any delivered byte can be judged on its own.
func streamByte(conn int, pos uint32) byte { return byte(uint32(conn)*31 + pos*7 + pos>>8) }

// span is a part of a client stream: captured bytes or a gap.
type span struct {
	b   []byte
	gap int64
}

// collector joins the calls of each connection into spans and checks on the way
// that no callback uses a flow that is not open.
type collector struct {
	t     testing.TB
	spans map[uint16][]span
	open  map[uint16]int
	ends  [NumEndReasons]int
}

func newCollector(t testing.TB) *collector {
	return &collector{t: t, spans: map[uint16][]span{}, open: map[uint16]int{}}
}

func (c *collector) Open(f *flowState, m *Meta, _ bool) {
	f.id = uint64(m.ClientPort)
	c.open[m.ClientPort]++
}

func (c *collector) Data(f *flowState, m *Meta, b []byte) {
	if f.id != uint64(m.ClientPort) || c.open[m.ClientPort] != 1 || len(b) == 0 {
		c.t.Errorf("Data of port %d in the flow of %d, open %d, %d bytes", m.ClientPort, f.id, c.open[m.ClientPort], len(b))
	}
	spans := c.spans[m.ClientPort]
	if n := len(spans); n > 0 && spans[n-1].gap == 0 {
		spans[n-1].b = append(spans[n-1].b, b...)
	} else {
		spans = append(spans, span{b: bytes.Clone(b)})
	}
	c.spans[m.ClientPort] = spans
}

func (c *collector) Gap(f *flowState, m *Meta, n int64) {
	if f.id != uint64(m.ClientPort) || n <= 0 {
		c.t.Errorf("Gap of %d in port %d, flow of %d", n, m.ClientPort, f.id)
	}
	spans := c.spans[m.ClientPort]
	if last := len(spans) - 1; last >= 0 && spans[last].gap > 0 {
		spans[last].gap += n
	} else {
		spans = append(spans, span{gap: n})
	}
	c.spans[m.ClientPort] = spans
}

func (c *collector) Reply(*flowState, *Meta, []byte, int) bool { return true }

func (c *collector) End(f *flowState, _ *Meta, why EndReason) {
	c.open[uint16(f.id)]--
	c.ends[why]++
}

// cutStream cuts n bytes of a stream into segments at random places. Some are
// followed by retransmissions that merge, split or repeat earlier ones.
func cutStream(rng *rand.Rand, conn int, isn uint32, n int) []Segment {
	var out []Segment
	segment := func(from, to int) {
		b := make([]byte, to-from)
		for i := range b {
			b[i] = streamByte(conn, uint32(from+i))
		}
		s := fromClient(isn+1+uint32(from), 1, string(b))
		s.SrcPort = uint16(40000 + conn)
		s.T = startT
		out = append(out, s)
	}
	for at := 0; at < n; {
		to := min(n, at+1+rng.IntN(1+rng.IntN(2000)))
		segment(at, to)
		if rng.IntN(5) == 0 {
			from := max(0, at-rng.IntN(3000))
			segment(from, from+1+rng.IntN(to-from))
		}
		at = to
	}
	return out
}

// shuffle moves each segment by at most distance places.
func shuffle(rng *rand.Rand, segments []Segment, distance int) {
	type keyed struct {
		key int
		s   Segment
	}
	order := make([]keyed, len(segments))
	for i, s := range segments {
		order[i] = keyed{i + rng.IntN(distance+1), s}
	}
	slices.SortStableFunc(order, func(a, b keyed) int { return a.key - b.key })
	for i := range order {
		segments[i] = order[i].s
	}
}

// TestAssemblerAnyOrderGivesTheSameBytes: reordering by less than the limit,
// duplicates and any split lose nothing and change nothing.
func TestAssemblerAnyOrderGivesTheSameBytes(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n := 1 + rng.IntN(40000)
		isn := rng.Uint32()
		if seed%3 == 0 {
			isn = -uint32(rng.IntN(n)) // wraps on the way
		}
		segments := cutStream(rng, 3, isn, n)
		shuffle(rng, segments, rng.IntN(30))
		c := newCollector(t)
		a := NewAssembler[flowState](AssemblerConfig{}, c)
		first := syn(isn)
		first.SrcPort = 40003
		a.Add(&first)
		for i := range segments {
			a.Add(&segments[i])
		}
		a.Flush(startT)
		spans := c.spans[40003]
		if len(spans) != 1 || len(spans[0].b) != n {
			t.Fatalf("seed %d: %d spans, want one of %d bytes", seed, len(spans), n)
		}
		checkBytes(t, 3, spans)
		if st := a.Stats(); st.Buffered != 0 || st.Flows != 0 || st.Entries != 0 {
			t.Fatalf("seed %d: left over: %+v", seed, *st)
		}
	}
}

// checkBytes checks that every delivered byte stands where it belongs.
func checkBytes(t *testing.T, conn int, spans []span) (total int64) {
	t.Helper()
	pos := uint32(0)
	for _, sp := range spans {
		for _, b := range sp.b {
			if b != streamByte(conn, pos) {
				t.Fatalf("connection %d: wrong byte at %d", conn, pos)
			}
			pos++
		}
		pos += uint32(sp.gap)
	}
	return int64(pos)
}

// TestAssemblerLossIsAccounted: with packets lost and cut, what is delivered is
// right and, with the gaps, complete up to the last byte seen.
func TestAssemblerLossIsAccounted(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		c := newCollector(t)
		a := NewAssembler[flowState](AssemblerConfig{MaxBuffered: 64 << 10}, c)
		const conns = 5
		var all []Segment
		var seen [conns]int64
		for conn := range conns {
			isn := rng.Uint32()
			first := syn(isn)
			first.SrcPort = uint16(40000 + conn)
			a.Add(&first)
			segments := cutStream(rng, conn, isn, 1+rng.IntN(30000))
			segments = slices.DeleteFunc(segments, func(Segment) bool { return rng.IntN(10) == 0 })
			for i := range segments {
				s := &segments[i]
				seen[conn] = max(seen[conn], int64(s.Seq-isn-1)+int64(s.WireLen))
				if rng.IntN(8) == 0 {
					s.Payload = s.Payload[:rng.IntN(len(s.Payload)+1)]
				}
			}
			all = append(all, segments...)
		}
		shuffle(rng, all, 1+rng.IntN(100))
		for i := range all {
			all[i].T = startT + int64(i)*int64(time.Millisecond)
			a.Add(&all[i])
		}
		a.Flush(startT)
		var data, gaps int64
		for conn := range conns {
			spans := c.spans[uint16(40000+conn)]
			if got := checkBytes(t, conn, spans); got != seen[conn] {
				t.Fatalf("seed %d: connection %d accounts for %d bytes, %d were sent", seed, conn, got, seen[conn])
			}
			for _, sp := range spans {
				data += int64(len(sp.b))
				gaps += sp.gap
			}
		}
		st := a.Stats()
		if uint64(data) != st.ClientBytes || uint64(gaps) != st.GapBytes+st.CutBytes || st.Buffered != 0 {
			t.Fatalf("seed %d: delivered %d, gaps %d, stats %+v", seed, data, gaps, *st)
		}
	}
}

// oracle is tcpassembly's view of the same packets.
type oracle struct{ spans map[uint16][]span }

type oracleStream struct {
	o    *oracle
	port uint16
}

func (o *oracle) New(_, transport gopacket.Flow) tcpassembly.Stream {
	port := transport.Src().Raw()
	return &oracleStream{o, uint16(port[0])<<8 | uint16(port[1])}
}

func (s *oracleStream) Reassembled(parts []tcpassembly.Reassembly) {
	for _, part := range parts {
		spans := s.o.spans[s.port]
		if part.Skip > 0 {
			spans = append(spans, span{gap: int64(part.Skip)})
		}
		if n := len(spans); n > 0 && spans[n-1].gap == 0 {
			spans[n-1].b = append(spans[n-1].b, part.Bytes...)
		} else if len(part.Bytes) > 0 {
			spans = append(spans, span{b: bytes.Clone(part.Bytes)})
		}
		s.o.spans[s.port] = spans
	}
}

func (s *oracleStream) ReassemblyComplete() {}

// TestAssemblerAgreesWithTcpassembly feeds the same damaged streams to both.
// Holes are never filled late here, since the two give up at different times.
func TestAssemblerAgreesWithTcpassembly(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		o := &oracle{spans: map[uint16][]span{}}
		theirs := tcpassembly.NewAssembler(tcpassembly.NewStreamPool(o))
		c := newCollector(t)
		ours := NewAssembler[flowState](AssemblerConfig{}, c)
		const conns = 4
		var all []Segment
		for conn := range conns {
			isn := rng.Uint32()
			first := syn(isn)
			first.SrcPort = uint16(40000 + conn)
			segments := cutStream(rng, conn, isn, 1+rng.IntN(20000))
			// Lose ranges of the stream, whoever carries them.
			for range rng.IntN(4) {
				lost := rng.Uint32N(20000)
				segments = slices.DeleteFunc(segments, func(s Segment) bool {
					from := s.Seq - isn - 1
					return from <= lost+50 && lost <= from+uint32(s.WireLen)
				})
			}
			all = append(append(all, first), segments...)
		}
		for i := range all {
			s := all[i]
			ours.Add(&s)
			feedOracle(theirs, &s)
		}
		ours.Flush(startT)
		theirs.FlushAll()
		for conn := range conns {
			port := uint16(40000 + conn)
			if got, want := describe(c.spans[port]), describe(o.spans[port]); got != want {
				t.Fatalf("seed %d, connection %d:\n got  %s\n want %s", seed, conn, got, want)
			}
		}
	}
}

func describe(spans []span) string {
	var out bytes.Buffer
	for _, sp := range spans {
		fmt.Fprintf(&out, "[gap %d, %d bytes %x, sum %x] ", sp.gap, len(sp.b), sp.b[:min(len(sp.b), 8)], crc32.ChecksumIEEE(sp.b))
	}
	return out.String()
}

func feedOracle(a *tcpassembly.Assembler, s *Segment) {
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(s.SrcPort), DstPort: layers.TCPPort(s.DstPort),
		Seq: s.Seq, Ack: s.Ack, SYN: s.Flags&FlagSYN != 0, FIN: s.Flags&FlagFIN != 0, RST: s.Flags&FlagRST != 0,
		BaseLayer: layers.BaseLayer{Payload: s.Payload},
	}
	tcp.SetInternalPortsForTesting()
	flow := gopacket.NewFlow(layers.EndpointIPv4, s.Src[12:], s.Dst[12:])
	a.AssembleWithTimestamp(flow, tcp, time.Unix(0, s.T))
}

// TestAssemblerMemoryIsBounded: a million half-open connections, a million
// one-byte segments with holes and a million connections with data stay within
// the caps, and the counters tell.
func TestAssemblerMemoryIsBounded(t *testing.T) {
	many := 1_000_000
	if raceEnabled {
		many = 100_000 // ten times slower there
	}
	c := &countStream{}
	a := NewAssembler[flowState](AssemblerConfig{MaxFlows: 50_000, MaxBuffered: 1 << 20}, c)
	s := syn(1)
	for i := range many {
		s.T = startT + int64(i)*1000
		s.Src[12], s.Src[13], s.Src[14], s.Src[15] = byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
		a.Add(&s)
	}
	if st := a.Stats(); st.Entries != 0 || st.Syns != uint64(many) {
		t.Fatalf("after SYNs only: %+v", *st)
	}
	s = fromClient(0, 1, "x")
	for i := range many {
		s.T += 1000
		s.Src[15] = byte(i % 200)
		s.Seq = uint32(i/200) * 2 // a hole before every byte
		a.Add(&s)
	}
	if st := a.Stats(); st.BufferedBytes > 1<<20 || len(a.buffer.pages)*pageBytes > 1<<20 || st.LimitGaps == 0 {
		t.Fatalf("after one-byte segments: %+v", *st)
	}
	s = fromClient(0, 1, "PING\r\n")
	for i := range many {
		s.T += 1000
		s.Src[12], s.Src[13], s.Src[14], s.Src[15] = 1+byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
		a.Add(&s)
	}
	st := a.Stats()
	if st.Entries > 50_000 || a.table.made > 50_000 || st.Ended[EndEvicted] == 0 {
		t.Fatalf("after connections with data: %+v", *st)
	}
	if c.opens-c.ends != st.Flows {
		t.Fatalf("%d opened, %d ended, %d flows", c.opens, c.ends, st.Flows)
	}
	a.Flush(s.T)
	if st := a.Stats(); st.Flows != 0 || st.Entries != 0 || st.Buffered != 0 || c.opens != c.ends {
		t.Fatalf("after the flush: %+v", *st)
	}
}

// countStream counts calls and keeps nothing.
type countStream struct {
	opens, ends, datas int
	bytes, gaps        int64
}

func (c *countStream) Open(*flowState, *Meta, bool) { c.opens++ }
func (c *countStream) Data(f *flowState, _ *Meta, b []byte) {
	c.datas++
	c.bytes += int64(len(b))
	f.bytes += int64(len(b))
}
func (c *countStream) Gap(_ *flowState, _ *Meta, n int64)        { c.gaps += n }
func (c *countStream) Reply(*flowState, *Meta, []byte, int) bool { return true }
func (c *countStream) End(*flowState, *Meta, EndReason)          { c.ends++ }

// TestEvictionTakesTheOldest: when the table is full, flows that are active
// stay.
func TestEvictionTakesTheOldest(t *testing.T) {
	k := &activeStream{ended: map[uint16]bool{}}
	a := NewAssembler[flowState](AssemblerConfig{MaxFlows: 1000}, k)
	now := startT
	send := func(port int) {
		s := fromClient(uint32(now/1e9), 1, "x y")
		s.SrcPort, s.T = uint16(port), now
		a.Add(&s)
	}
	for port := range 1000 {
		send(port)
	}
	for round := range 50 {
		now += 2e9
		for port := range 100 { // these stay active
			s := fromClient(uint32(startT/1e9)+3+uint32(round)*3, 1, "x y")
			s.SrcPort, s.T = uint16(port), now
			a.Add(&s)
		}
		for port := range 10 {
			send(2000 + round*10 + port)
		}
	}
	active, silent := 0, 0
	for port := range k.ended {
		if port < 100 {
			active++
		} else if port < 1000 {
			silent++
		}
	}
	if active != 0 || silent < 450 {
		t.Errorf("evicted %d active and %d silent flows, want 0 and nearly 500", active, silent)
	}
}

type activeStream struct {
	countStream
	ended map[uint16]bool
}

func (k *activeStream) Open(f *flowState, m *Meta, _ bool)     { f.id = uint64(m.ClientPort) }
func (k *activeStream) End(f *flowState, _ *Meta, _ EndReason) { k.ended[uint16(f.id)] = true }

func TestFlowSize(t *testing.T) {
	const want = 64
	if got := flowBytes(); got > want {
		t.Errorf("a flow with 24 bytes of state takes %d bytes, want at most %d", got, want)
	}
}
