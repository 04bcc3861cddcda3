package doctor

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// observed notes n requests a millisecond apart, each copies times, gap apart;
// they are read lag after their stamp.
func observed(n, copies int, gap, lag time.Duration) *observer {
	o := &observer{}
	now := time.Now()
	from, to := netip.MustParseAddrPort("10.0.0.1:50000"), netip.MustParseAddrPort("10.0.0.2:6379")
	for i := range n {
		at := now.Add(time.Duration(i) * time.Millisecond)
		for c := range copies {
			stamp := at.Add(time.Duration(c) * gap)
			data := testkit.AppendSegment(nil, from, to, uint32(1000+i*10), 0, testkit.ACK, []byte("PING\r\n"))
			o.note(&capture.Packet{Data: data, WireLen: len(data), T: stamp.UnixNano(), Link: capture.LinkTypeEthernet}, stamp.Add(lag))
		}
	}
	return o
}

func TestDuplicates(t *testing.T) {
	sys := t.TempDir()
	for _, dir := range []string{"class/net/br0/bridge", "class/net/veth1/brport", "class/net/eth0"} {
		if err := os.MkdirAll(filepath.Join(sys, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	expectFinding(t, "once", duplicates(observed(1000, 1, 0, 0), sys), OK, "0 of 1000", "")
	expectFinding(t, "on two devices", duplicates(observed(1000, 2, 20*time.Microsecond, 0), sys), Warning, "50 % of the segments came twice: they cross several devices (br0, veth1)", "--interface")
	expectFinding(t, "sent again", duplicates(observed(1000, 2, 250*time.Millisecond, 0), sys), OK, "0 of 2000", "")
	expectFinding(t, "too few to tell", duplicates(observed(5, 2, 0, 0), sys), OK, "5 of 10", "")
	expectFinding(t, "nothing", duplicates(&observer{}, sys), OK, "0 of 0", "")
}

func TestClock(t *testing.T) {
	expectFinding(t, "nothing", clock(&observer{}), OK, "no packet", "")
	expectFinding(t, "right", clock(observed(10, 1, 0, 30*time.Millisecond)), OK, "30ms old", "")
	expectFinding(t, "ahead", clock(observed(10, 1, 0, -3*time.Second)), Warning, "3s in the future", "clock")
	expectFinding(t, "behind", clock(observed(10, 1, 0, time.Minute)), Warning, "1m0s in the past", "clock")
	set := observed(10, 1, 0, 0)
	set.lastT += time.Hour
	expectFinding(t, "set", clock(set), Warning, "set by 1h0m", "clock")
}

// snapshot is one with these counters.
func snapshot(requests, packets, opened, tls, dropped uint64) *pipeline.Snapshot {
	s := &pipeline.Snapshot{Ports: []pipeline.PortSnapshot{{Port: 6379, Requests: requests}}}
	s.Verdicts[capture.Decoded] = packets
	s.Assembler.Opened, s.Decoder.Encrypted = opened, tls
	s.Capture.Interfaces = []capture.InterfaceStats{{Name: "any", Dropped: dropped}}
	return s
}

func TestTrafficAndEncryption(t *testing.T) {
	replication := snapshot(0, 9, 1, 0, 0)
	replication.Decoder.Replication = 1
	for _, c := range []struct {
		name         string
		s            *pipeline.Snapshot
		traffic, tls Status
		found        string
	}{
		{"requests", snapshot(70, 60, 5, 0, 0), OK, OK, "70 requests of 5 connections"},
		{"requests and drops", snapshot(70, 60, 5, 0, 3), Warning, OK, "dropped 3"},
		{"some TLS", snapshot(70, 60, 5, 2, 0), OK, Warning, "70 requests"},
		{"all TLS", snapshot(0, 60, 5, 5, 0), Failure, Failure, "60 packets"},
		{"no request", snapshot(0, 60, 5, 0, 0), Warning, OK, "none of which begins a request"},
		{"replication", replication, Warning, OK, "replication"},
		{"nothing", snapshot(0, 0, 0, 0, 0), Warning, OK, "nothing arrived"},
	} {
		expectFinding(t, c.name, traffic(c.s, capture.LiveConfig{}, time.Second), c.traffic, c.found, "")
		expectFinding(t, c.name, encryption(c.s), c.tls, "", "")
	}
	if f := traffic(snapshot(0, 0, 0, 0, 0), capture.LiveConfig{Direction: capture.Out}, time.Second); f.Fix == traffic(snapshot(0, 0, 0, 0, 0), capture.LiveConfig{}, time.Second).Fix {
		t.Error("the advice does not depend on the direction")
	}
}
