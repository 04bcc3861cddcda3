package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

const (
	mss = 1448
	psh = 0x08
)

// wire sends the writes of clients as segments of at most mss bytes, of which
// the kernel keeps one in every.
type wire struct {
	e     *Engine
	rng   *rand.Rand
	t     int64
	every int
	flows []*testkit.Flow
	sent  map[string]int // accesses by key
	all   int
	calls int // requests
}

func newWire(t testing.TB, seed uint64, conns, every int) *wire {
	cfg := Config{Top: AllKeys}
	cfg.Detector.Seed = seed + 1
	w := &wire{e: newEngine(t, cfg), rng: rand.New(rand.NewPCG(seed, 9)), t: 1_700_000_000e9, every: every, sent: map[string]int{}}
	for i := range conns {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 14), 7}), uint16(20000+i&(1<<14-1)))
		w.flows = append(w.flows, testkit.NewFlow(client, serverAddr))
	}
	return w
}

// write sends b on a connection and lets the server answer it.
func (w *wire) write(conn int, b []byte) {
	f := w.flows[conn]
	for len(b) > 0 {
		n, flags := min(len(b), mss), byte(testkit.ACK)
		if n == len(b) {
			flags |= psh
		}
		part := b[:n]
		b = b[n:]
		if w.every > 1 && w.rng.IntN(w.every) != 0 {
			f.Skip(uint32(n))
		} else {
			frame := f.Frame(flags, part)
			w.e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: w.t, Link: capture.LinkTypeEthernet, SampleEvery: w.every}
			w.e.packet()
		}
	}
	f.Answered(5)
}

func (w *wire) command(b []byte, args ...string) []byte {
	w.calls++
	keys := args[1:2]
	if args[0] == "MGET" {
		keys = args[1:]
	}
	for _, k := range keys {
		w.sent[k]++
		w.all++
	}
	return testkit.AppendCommand(b, args...)
}

func (w *wire) report() *report.Report {
	w.e.finish()
	return w.e.Latest().Report("", 0)
}

// drawShare draws a key: hot has 26 % and warm 4 %.
func drawShare(rng *rand.Rand) string {
	switch u := rng.Float64(); {
	case u < 0.26:
		return "hot"
	case u < 0.30:
		return "warm"
	}
	return fmt.Sprint("item:", rng.IntN(2000))
}

// thinLoads are ways in which clients write; turn returns one write.
var thinLoads = []struct {
	name  string
	turns int
	turn  func(w *wire) []byte
}{
	{"one GET a write", 30_000, func(w *wire) []byte { return w.command(nil, "GET", drawShare(w.rng)) }},
	{"pipelines of 16", 3000, func(w *wire) []byte {
		var b []byte
		for range 16 {
			b = w.command(b, "GET", drawShare(w.rng))
		}
		return b
	}},
	{"pipelines of 16 for one key", 6000, func(w *wire) []byte {
		var b []byte
		k := drawShare(w.rng)
		for range 16 {
			b = w.command(b, "INCR", k)
		}
		return b
	}},
	{"values of 100 bytes, pipelines of 16", 3000, func(w *wire) []byte {
		var b []byte
		for range 16 {
			b = w.command(b, "SET", drawShare(w.rng), values[:100])
		}
		return b
	}},
	{"values of 10 kB", 10_000, func(w *wire) []byte { return w.command(nil, "SET", drawShare(w.rng), values[:10_000]) }},
	{"values of 10 kB among small requests, pipelines of 16", 3000, func(w *wire) []byte {
		var b []byte
		for range 16 {
			if k := drawShare(w.rng); k == "hot" || w.rng.IntN(4) > 0 {
				b = w.command(b, "GET", k)
			} else {
				b = w.command(b, "SET", k, values[:10_000])
			}
		}
		return b
	}},
	{"values of 1 MB", 800, func(w *wire) []byte {
		return w.command(nil, "SET", drawShare(w.rng), values)
	}},
	{"MGET of 100 keys", 1500, func(w *wire) []byte {
		args := []string{"MGET"}
		for range 100 {
			args = append(args, drawShare(w.rng))
		}
		return w.command(nil, args...)
	}},
	{"MGET of 200 keys and single GETs", 8000, func(w *wire) []byte {
		if w.rng.IntN(20) > 0 {
			return w.command(nil, "GET", drawShare(w.rng))
		}
		args := []string{"MGET"}
		for range 200 {
			args = append(args, drawShare(w.rng))
		}
		return w.command(nil, args...)
	}},
}

// values is what clients store.
var values = strings.Repeat("v", 1_000_000)

// TestSharesAreThoseOfAllPackets: with one packet in 16, the intervals hold the
// shares of what was sent, and counts are right where heads can be seen.
func TestSharesAreThoseOfAllPackets(t *testing.T) {
	runs := 3
	if raceEnabled || testing.Short() {
		runs = 1
	}
	for _, load := range thinLoads {
		for _, conns := range []int{10, 10_000} {
			t.Run(fmt.Sprintf("%s, %d connections", load.name, conns), func(t *testing.T) {
				outside, tests, counted := 0, 0, 0.0
				for seed := range runs {
					w := newWire(t, uint64(seed), conns, 16)
					for i := range load.turns {
						w.t = 1_700_000_000e9 + int64(i)*20e9/int64(load.turns)
						w.write(w.rng.IntN(conns), load.turn(w))
					}
					r := w.report()
					counted += float64(r.Accesses) / float64(w.all) / float64(runs)
					for _, key := range []string{"hot", "warm"} {
						truth := float64(w.sent[key]) / float64(w.all)
						for i := range r.Keys {
							if k := &r.Keys[i]; k.Key == key {
								tests++
								if truth < k.ShareLow || truth > k.ShareHigh {
									outside++
									t.Logf("%s: true %.4f, got %.4f [%.4f, %.4f]", key, truth, k.Share, k.ShareLow, k.ShareHigh)
								}
							}
						}
					}
					for i := range r.Keys {
						if w.sent[r.Keys[i].Key] == 0 {
							t.Fatalf("key %q was never sent", r.Keys[i].Key)
						}
					}
				}
				t.Logf("accesses: %.3f of those sent; coverage %.3f", counted, coverageOf(t, load.turn, conns))
				if outside > 1 || tests < runs {
					t.Errorf("%d of %d shares outside their interval", outside, tests)
				}
			})
		}
	}
}

func coverageOf(t *testing.T, turn func(w *wire) []byte, conns int) float64 {
	w := newWire(t, 99, conns, 4)
	for range 100 {
		w.t += 1e6
		w.write(w.rng.IntN(conns), turn(w))
	}
	w.report()
	return w.e.Latest().Sampling.Coverage
}

// TestCountsAreScaled: requests, accesses and commands grow by N and stay whole.
func TestCountsAreScaled(t *testing.T) {
	w := newWire(t, 1, 100, 16)
	for range 40_000 {
		w.t += 250_000
		w.write(w.rng.IntN(100), w.command(nil, "GET", drawShare(w.rng)))
	}
	r := w.report()
	p := &w.e.Latest().Ports[0]
	if p.Requests%16 != 0 || p.Requests != p.Accesses || r.Commands["GET"] != p.Requests || r.Requests != p.Requests {
		t.Errorf("%d requests, %d accesses, %v", p.Requests, p.Accesses, r.Commands)
	}
	if sd := math.Sqrt(40_000 * 15); math.Abs(float64(p.Requests)-40_000) > 4*sd {
		t.Errorf("%d requests; want 40,000 within %.0f", p.Requests, 4*sd)
	}
	if r.SampledAccesses*16 != r.Accesses || w.e.Latest().Ports[0].Slow.SampleEvery != 16 {
		t.Errorf("%d sampled of %d, 1 in %d", r.SampledAccesses, r.Accesses, p.Slow.SampleEvery)
	}
}

// text is requests as a value holds them, n bytes or a little less.
func text(n, pad int) string {
	var b []byte
	for i := 0; len(b) < n-100; i++ {
		b = testkit.AppendCommand(b, "SET", fmt.Sprintf("false:%06d", i), strings.Repeat("x", pad))
	}
	return string(b)
}

// wholePad is the padding with which a whole number of requests fills a packet.
func wholePad() (pad, requests int) {
	for pad = 1; ; pad++ {
		if n := len(testkit.AppendCommand(nil, "SET", "false:000000", strings.Repeat("x", pad))); mss%n == 0 {
			return pad, mss / n
		}
	}
}

// TestTextInValues: values full of requests. Only a packet that begins with one
// and ends before the text does can deceive, and of a value only one.
func TestTextInValues(t *testing.T) {
	pad, requests := wholePad()
	for _, c := range []struct {
		name  string
		key   string
		value string
		most  int // false accesses of a packet
	}{
		{"no packet begins with a request", "true", text(200_000, pad), 0},
		{"text that ends in one packet", "true", text(1000, 5), 0},
		{"text behind the head of a small value", "true", "x\r\n" + text(1000, 5), 0},
		{"every packet begins with a request", strings.Repeat("k", mss-31), text(200_000, pad), requests},
	} {
		head := len(testkit.AppendCommand(nil, "SET", c.key, c.value)) - len(c.value) - 2
		if aligned := head%mss == 0; aligned != (c.most > 0) {
			t.Fatalf("%s: the value begins at %d", c.name, head)
		}
		for _, every := range []int{2, 16, 256} {
			const n = 200
			w := newWire(t, 3, 10, every)
			for range n {
				w.t += 50e6
				w.write(w.rng.IntN(10), w.command(nil, "SET", c.key, c.value))
			}
			r := w.report()
			got := 0
			for i := range r.Keys {
				if k := &r.Keys[i]; strings.HasPrefix(k.Key, "false") {
					got += int(k.Accesses)
				}
			}
			t.Logf("%s, N = %d: %.2f false accesses for a value with %d requests", c.name, every, float64(got)/n, strings.Count(c.value, "SET"))
			if got > n*every*c.most {
				t.Errorf("%s, N = %d: %d false accesses for %d values", c.name, every, got, n)
			}
		}
	}
}

// TestSamplingComesAndGoes: N changes on open connections in the middle of
// values. No key is invented, no gap or error is counted, and when every packet
// comes again the counts are exact again.
func TestSamplingComesAndGoes(t *testing.T) {
	w := newWire(t, 5, 50, 1)
	pad, _ := wholePad()
	value := strings.Repeat("x", 30) + text(20_000, pad) // no packet begins with a request
	run := func(every, turns int) (sent, got int) {
		before, calls := uint64(0), w.calls
		if p := w.e.ports[6379]; p != nil {
			before = p.requests
		}
		w.every = every
		for range turns {
			w.t += 1e6
			if w.rng.IntN(10) == 0 {
				w.write(w.rng.IntN(50), w.command(nil, "SET", drawShare(w.rng), value))
			} else {
				w.write(w.rng.IntN(50), w.command(nil, "GET", drawShare(w.rng)))
			}
		}
		return w.calls - calls, int(w.e.ports[6379].requests - before)
	}
	for _, f := range w.flows {
		frame := f.Frame(testkit.SYN, nil)
		w.e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: w.t, Link: capture.LinkTypeEthernet}
		w.e.packet()
	}
	for i, every := range []int{1, 16, 1, 2, 4, 2, 1, 1024, 1} {
		if every == 1 && i > 0 {
			run(1, 500) // connections are joined again
		}
		sent, got := run(every, 3000)
		if every == 1 && got != sent {
			t.Errorf("step %d: %d of %d requests with every packet", i, got, sent)
		}
		if sd := math.Sqrt(float64(sent * every)); math.Abs(float64(got-sent)) > 5*sd {
			t.Errorf("step %d: %d of %d requests with N = %d", i, got, sent, every)
		}
	}
	r := w.report()
	for i := range r.Keys {
		if w.sent[r.Keys[i].Key] == 0 {
			t.Errorf("key %q was never sent", r.Keys[i].Key)
		}
	}
	if r.Capture.Gaps != 0 {
		t.Errorf("%d gaps", r.Capture.Gaps)
	}
	for reason, n := range r.Capture.DecodeErrors {
		t.Errorf("%d of %s", n, reason)
	}
}

// TestThinnedPacketsDoNotAllocate is the promise of the hot path for N > 1.
func TestThinnedPacketsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e := newEngine(t, Config{})
	c, all := newClient(e, 50000), requests()
	send := func() {
		for _, b := range all {
			c.t += 1000
			frame := c.flow.Frame(testkit.ACK|psh, b)
			c.e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: c.t, Link: capture.LinkTypeEthernet, SampleEvery: 16}
			c.e.packet()
			c.flow.Answered(5)
		}
	}
	for range 3 {
		send()
	}
	e.nextTick = c.t + 3600e9
	if n := testing.AllocsPerRun(20, send); n != 0 {
		t.Errorf("%v allocations for %d packets", n, len(all))
	}
}

func BenchmarkPathThinned(b *testing.B) {
	e := newEngine(b, Config{})
	c, all := newClient(e, 50000), requests()
	e.nextTick = c.t + 3600e9
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.t += 1000
		frame := c.flow.Frame(testkit.ACK|psh, all[i%len(all)])
		e.pkt = capture.Packet{Data: frame, WireLen: len(frame), T: c.t, Link: capture.LinkTypeEthernet, SampleEvery: 16}
		e.packet()
		c.flow.Answered(5)
	}
}
