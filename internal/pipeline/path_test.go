package pipeline

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// packets is a source of packets in memory, without end.
type packets struct {
	all  []capture.Packet
	next int
}

func (s *packets) Next(p *capture.Packet) error {
	if s.next == len(s.all) {
		return io.EOF
	}
	*p = s.all[s.next]
	s.next++
	return nil
}
func (s *packets) Stats() capture.Stats { return capture.Stats{} }
func (s *packets) Stop()                {}
func (s *packets) Close() error         { return nil }

// client is a connection whose requests go straight into an engine.
type client struct {
	e    *Engine
	flow *testkit.Flow
	t    int64
}

func newClient(e *Engine, port uint16) *client {
	c := &client{e: e, t: 1e18, flow: testkit.NewFlow(
		netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), port), netip.MustParseAddrPort("10.0.0.1:6379"))}
	c.send(testkit.SYN, nil)
	return c
}

// send feeds one frame, a microsecond after the last.
func (c *client) send(flags byte, payload []byte) {
	c.t += 1000
	frame := c.flow.Frame(flags, payload)
	c.e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: c.t, Link: capture.LinkTypeEthernet}
	c.e.packet()
	c.flow.Answered(5)
}

func newEngine(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := New(cfg, &packets{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// requests are small requests of several kinds, as bytes of one segment each.
func requests() [][]byte {
	var all [][]byte
	for i := range 100 {
		key := fmt.Sprintf("product:%04d", i)
		all = append(all, testkit.AppendCommand(nil, "GET", key), testkit.AppendCommand(nil, "SET", key, "some value of a few bytes"),
			testkit.AppendCommand(nil, "MGET", key, "product:1", "product:2"), testkit.AppendCommand(nil, "HGET", key, "field"))
	}
	return all
}

// TestNoAllocationFromPacketToAccess is the promise of the hot path: for known
// flows and tracked keys nothing is allocated, with and without windows.
func TestNoAllocationFromPacketToAccess(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			e := newEngine(t, Config{Whole: whole})
			c, all := newClient(e, 50000), requests()
			for range 3 { // keys are tracked from their second access on
				for _, b := range all {
					c.send(testkit.ACK, b)
				}
			}
			before := e.ports[6379].accesses
			// A tick may allocate: it makes a snapshot. Keep it out.
			e.nextTick = c.t + 3600e9
			allocs := testing.AllocsPerRun(100, func() {
				for _, b := range all {
					c.send(testkit.ACK, b)
				}
			})
			if allocs != 0 {
				t.Errorf("got %v allocations for %d packets; want 0", allocs, len(all))
			}
			if got := e.ports[6379].accesses - before; got != 101*600 {
				t.Errorf("got %d accesses; want %d", got, 101*600)
			}
		})
	}
}

// BenchmarkPathPacket is the whole path from the packet in hand to the counted
// access, one small request a packet.
func BenchmarkPathPacket(b *testing.B) {
	for _, whole := range []bool{false, true} {
		b.Run(fmt.Sprintf("whole=%v", whole), func(b *testing.B) {
			e := newEngine(b, Config{Whole: whole})
			c, all := newClient(e, 50000), requests()
			e.nextTick = c.t + 3600e9
			b.SetBytes(int64(len(all[0]) + 54))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.send(testkit.ACK, all[i%len(all)])
			}
		})
	}
}

// writeTraffic writes a pcap file of n small requests over 20 connections.
func writeTraffic(b *testing.B, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "traffic.pcap")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	w := testkit.NewPcapWriter(file)
	all, flows := requests(), make([]*testkit.Flow, 20)
	for i := range flows {
		flows[i] = testkit.NewFlow(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(50000+i)), netip.MustParseAddrPort("10.0.0.1:6379"))
		w.Write(0, flows[i].Frame(testkit.SYN, nil))
	}
	for i := range n {
		w.Write(int64(i)*1000, flows[i%len(flows)].Frame(testkit.ACK, all[i%len(all)]))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkPathFile is the whole path from a capture file of small requests.
func BenchmarkPathFile(b *testing.B) {
	const n = 200_000
	path := writeTraffic(b, n)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		src, err := capture.OpenFiles([]string{path}, nil)
		if err != nil {
			b.Fatal(err)
		}
		e := newEngine(b, Config{Whole: true})
		e.src = src
		if err := e.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		if got := e.Latest().Report("", 1).Requests; got != n {
			b.Fatalf("got %d requests; want %d", got, n)
		}
		src.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/packet")
	b.ReportMetric(0, "ns/op")
}
