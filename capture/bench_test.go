package capture

import (
	"fmt"
	"testing"
	"unsafe"
)

func flowBytes() int { return int(unsafe.Sizeof(flow[flowState]{})) }

// roundRobin makes one segment for each of n connections; the caller moves Seq.
func roundRobin(n int) []Segment {
	out := make([]Segment, n)
	for i := range out {
		s := fromClient(100, 500, "*2\r\n$3\r\nGET\r\n$10\r\nproduct:12\r\n")
		mapIPv4(&s.Src, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		s.SrcPort = uint16(1024 + i&0x7fff)
		s.T = startT
		out[i] = s
	}
	return out
}

func BenchmarkAssemblerAdd(b *testing.B) {
	for _, conns := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			a := NewAssembler[flowState](AssemblerConfig{}, &countStream{})
			segments := roundRobin(conns)
			for i := range segments {
				a.Add(&segments[i])
			}
			// One template and the varying parts, so that the benchmark walks
			// the flow table and not a table of segments of its own.
			s := segments[0]
			seq, i := uint32(100+len(s.Payload)), 0
			b.SetBytes(int64(len(s.Payload)))
			b.ReportAllocs()
			for b.Loop() {
				mapIPv4(&s.Src, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				s.SrcPort = uint16(1024 + i&0x7fff)
				s.Seq = seq
				a.Add(&s)
				if i++; i == conns {
					i = 0
					seq += uint32(len(s.Payload))
				}
			}
			if st := a.Stats(); st.Flows != conns || st.Gaps+st.Duplicates+st.OutOfOrder != 0 {
				b.Fatalf("%+v", *st)
			}
			bytes := len(a.table.chunks)*chunkFlows*flowBytes() + 4*len(a.table.index)
			b.ReportMetric(float64(bytes)/float64(conns), "B/flow")
		})
	}
}
