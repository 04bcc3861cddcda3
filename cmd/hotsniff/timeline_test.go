package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// timelineFile writes a capture of four minutes at 14.4 accesses a second over
// many keys: config:global has 6 % all the time, promo:banner 30 % of the second
// minute. It is the same at every call. renamed are old and new names of keys.
func timelineFile(t *testing.T, renamed ...string) string {
	t.Helper()
	const interval, seconds = 69_444_444, 240
	names := strings.NewReplacer(renamed...)
	rng := rand.New(rand.NewPCG(1, 2))
	server := netip.MustParseAddrPort("10.0.0.1:6379")
	var flows []*testkit.Flow
	for i := range 6 {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}), uint16(40000+i))
		flows = append(flows, testkit.NewFlow(client, server))
	}
	var file bytes.Buffer
	w := testkit.NewPcapWriter(&file)
	const start = int64(1_700_000_000e9)
	for i, f := range flows {
		w.Write(start+int64(i), f.Frame(testkit.SYN, nil))
	}
	for at := int64(interval); at < seconds*1e9; at += interval {
		key, promo := fmt.Sprintf("k:%d", rng.IntN(3000)), 0.0
		if at >= 60e9 && at < 120e9 {
			promo = 0.3
		}
		switch x := rng.Float64(); {
		case x < 0.06:
			key = "config:global"
		case x < 0.06+promo:
			key = "promo:banner"
		}
		f := flows[rng.IntN(len(flows))]
		w.Write(start+at, f.Frame(testkit.ACK, testkit.AppendCommand(nil, "GET", names.Replace(key))))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "timeline.pcap")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
