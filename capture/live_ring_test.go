//go:build cgo && linux

package capture

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestLiveRingRidesOutAStall sends what comes at 500,000 packets a second in
// 100 ms while nobody reads. The defaults hold all of it; a ring that is too
// small counts what it lost.
func TestLiveRingRidesOutAStall(t *testing.T) {
	const packets = 50_000
	for _, tt := range []struct {
		name          string
		ring, snaplen int
		payload       int // with 54 bytes of headers
		fits          bool
	}{
		{"small requests, defaults", DefaultRingBytes, DefaultSnaplen, 119, true},
		{"requests of 500 bytes, defaults", DefaultRingBytes, DefaultSnaplen, 446, true},
		{"small requests, whole packets", DefaultRingBytes, 256 << 10, 119, true},
		{"full segments, cut at 512 bytes", DefaultRingBytes, 512, 1446, true},
		{"small requests, a small ring", 4 << 20, DefaultSnaplen, 119, false},
	} {
		inNamespace(t, tt.name, func(t *testing.T) {
			addVeth(t)
			src, err := OpenLive(LiveConfig{Interface: "hot", RingBytes: tt.ring, Snaplen: tt.snaplen})
			if err != nil {
				t.Fatal(err)
			}
			var p Packet
			if err := src.Next(&p); !errors.Is(err, ErrTimeout) { // the reader has begun, and stalls
				t.Fatal(err)
			}
			f := request()
			f.payload = strings.Repeat("k", tt.payload)
			g := newGun(t, "gun", f.bytes())
			start := time.Now()
			g.fire(packets)
			took := time.Since(start)
			if got := received(t, "hot"); got != packets {
				t.Fatalf("the device received %d of %d packets", got, packets)
			}
			got := readRest(t, src, nil)
			dropped := int(src.Stats().Interfaces[0].Dropped)
			if got+dropped != packets || tt.fits && dropped != 0 {
				t.Errorf("%d delivered and %d dropped of %d", got, dropped, packets)
			}
			if !tt.fits && dropped == 0 {
				t.Error("nothing dropped: this case tests nothing")
			}
			t.Logf("%d packets within %v, %.0f a second: %d dropped", packets, took, packets/took.Seconds(), dropped)
		})
	}
}
