package pipeline

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// floodHeap bounds the heap under any flood, garbage included: with the stacks
// and the program itself 128 MiB of memory are far away.
const floodHeap = 80 << 20

// flood is a way to fill what the engine keeps. packet i of n is made by it;
// the hot key's client comes between.
type flood struct {
	name    string
	packets int
	frame   func(b []byte, i int) []byte // the next frame, in b
}

// rawFrame is a frame of a client that sends whatever it likes.
func rawFrame(b []byte, client uint32, port uint16, seq, ack uint32, flags byte, payload string) []byte {
	b = append(b[:0], make([]byte, 54)...)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	b[14], b[23] = 0x45, 6
	binary.BigEndian.PutUint16(b[16:], uint16(40+len(payload)))
	binary.BigEndian.PutUint32(b[26:], 0x0b000000|client)
	copy(b[30:], []byte{10, 0, 0, 1})
	binary.BigEndian.PutUint16(b[34:], port)
	binary.BigEndian.PutUint16(b[36:], 6379)
	binary.BigEndian.PutUint32(b[38:], seq)
	binary.BigEndian.PutUint32(b[42:], ack)
	b[46], b[47] = 5<<4, flags
	return append(b, payload...)
}

var floods = []flood{
	{"a million distinct keys a second", 1_000_000, func(b []byte, i int) []byte {
		payload := fmt.Sprintf("*2\r\n$3\r\nGET\r\n$11\r\nkey:%07d\r\n", i)
		return rawFrame(b, 1, 4000, 1+uint32(i*len(payload)), uint32(i*5), testkit.ACK, payload)
	}},
	{"long keys that are all distinct", 300_000, func(b []byte, i int) []byte {
		payload := fmt.Sprintf("*2\r\n$3\r\nGET\r\n$1200\r\n%01200d\r\n", i)
		return rawFrame(b, 1, 4000, 1+uint32(i*len(payload)), uint32(i*5), testkit.ACK, payload)
	}},
	{"100,000 connections", 300_000, func(b []byte, i int) []byte {
		return rawFrame(b, uint32(i%100_000), 5000, 1+uint32(i/100_000*24), uint32(i/100_000*5), testkit.ACK, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n  "[:24])
	}},
	{"a million connections that never go on", 1_000_000, func(b []byte, i int) []byte {
		return rawFrame(b, uint32(i), 5000, 1, 1, testkit.ACK, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$9999999\r\nx")
	}},
	{"SYNs", 1_000_000, func(b []byte, i int) []byte {
		return rawFrame(b, uint32(i), uint16(i*7), uint32(i)*2654435761, 0, testkit.SYN, "")
	}},
	{"packets of one byte", 1_000_000, func(b []byte, i int) []byte {
		const stream = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
		turn, conn := i/10_000, i%10_000
		return rawFrame(b, uint32(conn), 6000, 1+uint32(turn), uint32(turn), testkit.ACK, stream[turn%len(stream):][:1])
	}},
	{"packets of one byte out of order", 600_000, func(b []byte, i int) []byte {
		turn, conn := i/10_000, i%10_000
		return rawFrame(b, uint32(conn), 7000, 1+uint32(turn)*2, 1, testkit.ACK, "*")
	}},
	{"bytes by chance", 500_000, func(b []byte, i int) []byte {
		h := uint64(i) * 0x9e3779b97f4a7c15
		return rawFrame(b, uint32(h>>50), uint16(8000+h>>60), uint32(h), uint32(h>>20), byte(h>>32), "*1000000\r\n$1000000\r\n"[:h>>40%20])
	}},
}

// TestFloods: whatever arrives, within two seconds of packet time, the heap
// stays within bounds and a key with a tenth of the rate of the flood is found.
func TestFloods(t *testing.T) {
	for _, f := range floods {
		for _, every := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s, N=%d", f.name, every), func(t *testing.T) {
				cfg := Config{}
				cfg.Detector.Seed = 1
				e := newEngine(t, cfg)
				part := 1
				if raceEnabled || testing.Short() {
					part = 8
				}
				star := testkit.NewFlow(netip.MustParseAddrPort("10.9.9.9:999"), serverAddr)
				get := testkit.AppendCommand(nil, "GET", "star")
				var b []byte
				var peak uint64
				packets := f.packets / part
				feed := func(i int, frame []byte) {
					at := int64(1e18) + int64(i)*int64(2e9)/int64(packets)
					e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: at, Link: capture.LinkTypeEthernet, SampleEvery: every}
					e.packet()
				}
				for i := range packets {
					if b = f.frame(b, i); every == 1 || i*7919%every == 0 {
						feed(i, b)
					}
					if i%10 == 0 {
						frame := star.Frame(testkit.ACK|psh, get)
						star.Answered(5)
						if every == 1 || i/10*7919%every == 0 {
							feed(i, frame)
						}
					}
					if i%(packets/20) == 0 {
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						peak = max(peak, m.HeapInuse)
					}
				}
				e.tickPorts(e.clock.now)
				s := e.snapshot(e.clock.now)
				t.Logf("peak heap %d MiB, %d flows", peak>>20, s.Assembler.Flows)
				if peak > floodHeap {
					t.Errorf("the heap had %d MiB; want at most %d", peak>>20, floodHeap>>20)
				}
				state := "unknown"
				for i := range s.Ports[0].Slow.Keys {
					if k := &s.Ports[0].Slow.Keys[i]; string(k.Key) == "star" {
						state = k.State.String()
					}
				}
				if state != "hot" {
					t.Errorf("star is %s", state)
				}
			})
		}
	}
}
