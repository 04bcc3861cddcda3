//go:build cgo && linux

package capture

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLiveSamplingKeepsItsShare: of many packets 1 in n arrives, in every way in
// which the direction can be restricted, and each says so.
func TestLiveSamplingKeepsItsShare(t *testing.T) {
	const n, packets = 16, 160_000
	for _, tt := range []struct {
		name, device string
		use          socketUse
		direction    Direction
		flags        uint8
	}{
		{"with PACKET_IGNORE_OUTGOING", "hot", socketUse{true, true}, In, FlagACK},
		{"with the inbound filter", "hot", socketUse{true, false}, In, FlagACK},
		{"any device", "any", socketUse{true, true}, In, FlagACK},
		{"any device with the inbound filter", "any", socketUse{true, false}, In, FlagACK},
		{"both directions", "hot", socketUse{true, true}, Both, FlagACK},
		{"a flood of SYNs", "hot", socketUse{true, true}, In, FlagSYN},
	} {
		inNamespace(t, tt.name, func(t *testing.T) {
			addVeth(t)
			const snaplen = 60
			src, err := openLive(LiveConfig{Interface: tt.device, Direction: tt.direction, Snaplen: snaplen, Timeout: 20 * time.Millisecond}, tt.use)
			if err != nil {
				t.Fatal(err)
			}
			if err := src.SetSampleEvery(n); err != nil {
				t.Fatal(err)
			}
			f := request()
			f.flags = tt.flags
			g := newGun(t, "gun", f.bytes())
			g.fire(packets)
			got := readRest(t, src, func(p *Packet) {
				if p.SampleEvery != n || len(p.Data) != snaplen {
					t.Fatalf("packet taken 1 in %d with %d bytes, want 1 in %d with %d", p.SampleEvery, len(p.Data), n, snaplen)
				}
			})
			sigma := math.Sqrt(packets * (1.0 / n) * (1 - 1.0/n))
			if off := float64(got) - packets/n; math.Abs(off) > 5*sigma {
				t.Errorf("kept %d of %d, want %d within %.0f", got, packets, packets/n, 5*sigma)
			}
		})
	}
}

// TestLiveSamplingNeedsTheSocket: without it nothing changes and the caller is
// told.
func TestLiveSamplingNeedsTheSocket(t *testing.T) {
	needCapture(t)
	src, err := openLive(LiveConfig{Interface: "lo"}, socketUse{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := src.SetSampleEvery(2); !errors.Is(err, ErrNoSampling) {
		t.Errorf("got %v, want ErrNoSampling", err)
	}
	if err := src.SetSampleEvery(3); err == nil || errors.Is(err, ErrNoSampling) {
		t.Errorf("1 in 3: %v, want an error of its own", err)
	}
}

// underFire reads src while 100,000 packets a second are sent, calls change 100
// times within about a second, and then reads what is left. It returns how many
// packets were read.
func underFire(t *testing.T, src *follower, g *gun, change func(), each func(p *Packet)) (got int) {
	var stop atomic.Bool
	var sender sync.WaitGroup
	sender.Go(func() { g.fireAt(100_000, &stop) })
	const changes = 100
	var p Packet
	start := time.Now()
	for made := 0; made < changes; {
		err := src.Next(&p)
		if err == nil {
			got++
			each(&p)
		} else if !errors.Is(err, ErrTimeout) {
			t.Error(err)
			break
		}
		if time.Since(start) > time.Duration(made)*time.Second/changes { // also in the middle of a block
			change()
			made++
		}
	}
	stop.Store(true)
	sender.Wait()
	return got + readRest(t, src, each)
}

// TestLiveSamplingChangesLoseNothing changes the filter 100 times under 100,000
// packets a second.
func TestLiveSamplingChangesLoseNothing(t *testing.T) {
	open := func(t *testing.T) (*follower, *livePcap, *gun) {
		addVeth(t)
		src, err := openLive(LiveConfig{Interface: "hot", Timeout: 20 * time.Millisecond}, socketUse{true, true})
		if err != nil {
			t.Fatal(err)
		}
		return src, src.engine.(*livePcap), newGun(t, "gun", request().bytes())
	}
	inNamespace(t, "the same filter: delivered is sent", func(t *testing.T) {
		src, engine, g := open(t)
		got := underFire(t, src, g, func() {
			if err := attachFilter(engine.fd, sampledProgram(engine.program, 1)); err != nil {
				t.Error(err)
			}
		}, func(*Packet) {})
		if want := received(t, "hot"); got != want || got != int(g.sent.Load()) {
			t.Errorf("delivered %d, want the %d that the device received of %d sent", got, want, g.sent.Load())
		}
	})
	inNamespace(t, "another filter: delivered is received", func(t *testing.T) {
		src, engine, g := open(t)
		// The kernel's own count of what the filter let in; libpcap keeps it up
		// to the end of the handle.
		type span struct {
			from, to int64 // the system call
			every    int
		}
		spans := []span{{0, 0, 1}}
		values := []int{2, 4, 1, 8, 64, 16, 1, 1024, 2, 4}
		wrong, estimate, variance, unsure := 0, 0.0, 0.0, 0.0
		got := underFire(t, src, g, func() {
			n := values[len(spans)%len(values)]
			before, from := g.sent.Load(), time.Now().UnixNano()
			if err := src.SetSampleEvery(n); err != nil {
				t.Error(err)
			}
			spans = append(spans, span{from, time.Now().UnixNano(), n})
			unsure += float64(g.sent.Load() - before + gunBatch)
		}, func(p *Packet) {
			n := float64(p.SampleEvery)
			estimate += n
			variance += n * (n - 1)
			for i := len(spans) - 1; i >= 0; i-- {
				if p.T > spans[i].to {
					if p.SampleEvery != spans[i].every && (i == len(spans)-1 || p.T < spans[i+1].from-1000) { // libpcap counts microseconds
						wrong++
					}
					break
				}
			}
		})
		// The kernel's own count of what the filter let in, as of the end.
		if let := engine.last.PacketsReceived; got != let {
			t.Errorf("delivered %d, the filter let in %d", got, let)
		}
		if wrong > 0 {
			t.Errorf("%d of %d packets say another sampling than was in force", wrong, got)
		}
		sent, slack := float64(received(t, "hot")), 5*math.Sqrt(variance)
		if estimate > sent+slack || estimate < sent-slack-unsure {
			t.Errorf("packets stand for %.0f in all, want %.0f within %.0f, less at most %.0f", estimate, sent, slack, unsure)
		}
		if d := src.Stats().Interfaces[0].Dropped; d != 0 {
			t.Errorf("%d dropped", d)
		}
		t.Logf("%.0f sent, %d delivered, estimate %.0f, 5 sigma %.0f, %.0f during changes", sent, got, estimate, slack, unsure)
	})
}
