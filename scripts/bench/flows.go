package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/hotsniff/hotsniff/capture"
)

// flowState is as large as what the daemon keeps inside a flow (pipeline.conn).
type flowState struct{ _ [6]uint32 }

// discard is a Stream that looks at nothing.
type discard struct{ bytes int }

func (*discard) Open(*flowState, *capture.Meta, bool)              {}
func (d *discard) Data(_ *flowState, _ *capture.Meta, b []byte)    { d.bytes += len(b) }
func (*discard) Gap(*flowState, *capture.Meta, int64)              {}
func (*discard) Reply(*flowState, *capture.Meta, []byte, int) bool { return false }
func (*discard) End(*flowState, *capture.Meta, capture.EndReason)  {}

// flowPackets is how many packets a round looks up: 20 ms and more.
const flowPackets = 1 << 20

// flowBench is one flow table with so many connections.
type flowBench struct {
	conns int
	asm   *capture.Assembler[flowState]
	seg   capture.Segment
	next  int
	bytes float64 // a flow
}

var flowPayload = []byte("*2\r\n$3\r\nGET\r\n$10\r\nproduct:12\r\n")

func newFlowBench(conns int) *flowBench {
	f := &flowBench{conns: conns}
	f.asm = capture.NewAssembler[flowState](capture.AssemblerConfig{}, &discard{})
	f.seg = capture.Segment{SrcPort: 1024, DstPort: 6379, Seq: 1, Payload: flowPayload, WireLen: len(flowPayload), Flags: capture.FlagACK, T: 1}
	made := heapBytes() // with what is there whatever the number of flows
	f.add(conns)
	f.bytes = float64(heapBytes()-made) / float64(conns)
	return f
}

// heapBytes returns the memory of live objects.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // finalizers and pools have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// add adds n packets, one a connection in turn.
func (f *flowBench) add(n int) {
	s := &f.seg
	for range n {
		i := f.next
		s.Src[12], s.Src[13], s.Src[14], s.Src[15] = 10, byte(i>>16), byte(i>>8), byte(i)
		s.SrcPort = uint16(1024 + i&0x7fff)
		f.asm.Add(s)
		if f.next++; f.next == f.conns {
			f.next = 0
			s.Seq += uint32(len(flowPayload))
		}
	}
}

// flows measures the flow table alone, on one packet a connection in turn,
// which misses the caches most.
func flows(ctx context.Context, s *settings, t *table) error {
	return onCPU(s.cpus.server, func() error { return flowRounds(ctx, s, t) })
}

func flowRounds(ctx context.Context, s *settings, t *table) error {
	sizes := []int{100, 10_000, 100_000}
	benches := make([]*flowBench, len(sizes))
	for i, n := range sizes {
		benches[i] = newFlowBench(n)
	}
	first, second := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for range s.rounds {
		for _, into := range [][][]float64{first, second} {
			for i, b := range benches {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				begin := threadTime()
				b.add(flowPackets)
				into[i] = append(into[i], float64(threadTime()-begin)/flowPackets)
			}
		}
	}
	for i, b := range benches {
		if st := b.asm.Stats(); st.Flows != b.conns || st.Gaps+st.Duplicates+st.OutOfOrder != 0 {
			return fmt.Errorf("%d connections: %+v", b.conns, *st)
		}
		name := "d. flow table, " + thousands(b.conns) + " connections: "
		t.add(line{what: name + "a packet", unit: "ns", values: means(first[i], second[i]), goal: atMost(40), control: ratios(second[i], first[i])})
		if b.conns >= 10_000 { // the first chunk alone holds 1,024 flows
			t.add(line{what: name + "a connection", unit: "B", values: []float64{b.bytes}, goal: atMost(64)})
		}
	}
	runtime.KeepAlive(benches)
	return nil
}

// thousands writes n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
