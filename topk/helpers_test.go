package topk

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// t0 is the start of virtual time; not a whole second, as in life.
const t0 = int64(1_700_000_000_123_456_789)

// feeder drives a Detector with numbered keys and gathers its events.
type feeder struct {
	d      *Detector
	a      Access
	text   []byte
	events []Event
}

func newFeeder(cfg Config) *feeder {
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	return &feeder{d: New(cfg), a: Access{Command: 1, Read: true, Bytes: 40}}
}

// add counts one access of key id at t.
func (f *feeder) add(t int64, id uint64) {
	f.text = append(f.text[:0], "key:"...)
	f.text = appendDecimal(f.text, id)
	f.a.Key, f.a.T = f.text, t
	f.d.Add(&f.a)
}

func appendDecimal(b []byte, n uint64) []byte {
	if n >= 10 {
		b = appendDecimal(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

func (f *feeder) drain() []Event {
	n := len(f.events)
	f.events = f.d.Events(f.events)
	return f.events[n:]
}

// states returns the keys of a snapshot that are in the given state, in order.
func states(s *Snapshot, want State) []string {
	var out []string
	for i := range s.Keys {
		if s.Keys[i].State == want {
			out = append(out, string(s.Keys[i].Key))
		}
	}
	return out
}

func keyOf(t *testing.T, s *Snapshot, key string) *KeyStat {
	t.Helper()
	for i := range s.Keys {
		if string(s.Keys[i].Key) == key {
			return &s.Keys[i]
		}
	}
	t.Fatalf("key %s is not in the snapshot", key)
	return nil
}

// weighted draws from a table of weights by binary search.
type weighted struct {
	cum []float64
	rng *rand.Rand
}

func newWeighted(rng *rand.Rand, n int, weight func(i int) float64) *weighted {
	w := &weighted{cum: make([]float64, n), rng: rng}
	sum := 0.0
	for i := range n {
		sum += weight(i + 1)
		w.cum[i] = sum
	}
	for i := range w.cum {
		w.cum[i] /= sum
	}
	return w
}

// next returns 1..n.
func (w *weighted) next() uint64 {
	u := w.rng.Float64()
	lo, hi := 0, len(w.cum)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if w.cum[mid] > u {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return uint64(lo + 1)
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("key:%d", i+1)
	}
	return out
}
