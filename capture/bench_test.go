package capture

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// benchFile makes a capture of n request packets of 84 bytes over conns
// connections, the small GETs that a busy port is full of.
func benchFile(n, conns int, ng bool) []byte {
	o := orders[0]
	file := pcapHeader(o, magicMicro, 1)
	if ng {
		file = append(section(o), describeInterface(o, 1, 0)...)
	}
	f := request()
	f.payload = "*2\r\n$3\r\nGET\r\n$10\r\nproduct:12\r\n"
	for i := range n {
		f.srcPort = uint16(20000 + i%conns)
		f.seq = uint32(1000 + i/conns*len(f.payload))
		b := f.bytes()
		if ng {
			file = append(file, enhanced(o, 0, uint64(i), uint32(len(b)), string(b))...)
		} else {
			file = append(o.words(file, uint32(i/1e6), uint32(i%1e6), uint32(len(b)), uint32(len(b))), b...)
		}
	}
	return file
}

// BenchmarkRead is the cost of one packet from a file in the page cache: the
// reader alone, with Decode, and with the assembler. Beside it stands
// tcpdump -r FILE -w /dev/null on the same file (see scripts/bench.sh).
func BenchmarkRead(b *testing.B) {
	const packets = 100_000
	for _, name := range []string{"pcap", "pcapng"} {
		file := benchFile(packets, 100, name == "pcapng")
		path := filepath.Join(b.TempDir(), "bench."+name)
		if err := os.WriteFile(path, file, 0o644); err != nil {
			b.Fatal(err)
		}
		for _, stage := range []string{"read", "decode", "assemble"} {
			b.Run(name+"/"+stage, func(b *testing.B) {
				b.SetBytes(int64(len(file)) / packets)
				b.ReportAllocs()
				a := NewAssembler[flowState](AssemblerConfig{}, &countStream{})
				var src Source
				var p Packet
				var s Segment
				for b.Loop() {
					if src == nil {
						var err error
						if src, err = OpenFiles([]string{path}, nil); err != nil {
							b.Fatal(err)
						}
					}
					err := src.Next(&p)
					if err == io.EOF {
						src = nil
						continue
					}
					if err != nil {
						b.Fatal(err)
					}
					if stage == "read" {
						continue
					}
					if Decode(&p, &s) != Decoded {
						b.Fatal("not decoded")
					}
					if stage == "assemble" {
						a.Add(&s)
					}
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	v6 := request()
	v6.v6 = true
	tagged := request()
	tagged.vlans = []uint16{etherQinQ, etherVLAN}
	cooked := request()
	cooked.link = LinkTypeLinuxSLL
	for name, f := range map[string]frame{"ipv4": request(), "ipv6": v6, "qinq": tagged, "sll": cooked} {
		b.Run(name, func(b *testing.B) {
			data := f.bytes()
			p := Packet{Data: data, WireLen: len(data), Link: f.link}
			var s Segment
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if Decode(&p, &s) != Decoded {
					b.Fatal("not decoded")
				}
			}
		})
	}
}

// BenchmarkAssemblerReordered has every pair of segments swapped.
func BenchmarkAssemblerReordered(b *testing.B) {
	a := NewAssembler[flowState](AssemblerConfig{}, &countStream{})
	s := roundRobin(1)[0]
	a.Add(&s)
	size := uint32(len(s.Payload))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i&1 == 0 {
			s.Seq += 2 * size
		} else {
			s.Seq -= size
		}
		if a.Add(&s); i&1 == 1 {
			s.Seq += size
		}
	}
	if st := a.Stats(); st.Gaps+st.Duplicates != 0 {
		b.Fatalf("%+v", *st)
	}
}

// BenchmarkSYNFlood is the cost of a SYN of a connection that never comes.
func BenchmarkSYNFlood(b *testing.B) {
	a := NewAssembler[flowState](AssemblerConfig{}, &countStream{})
	s := syn(1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		mapIPv4(&s.Src, []byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		s.T += 1000
		a.Add(&s)
	}
	if st := a.Stats(); st.Entries != 0 {
		b.Fatalf("%+v", *st)
	}
}
