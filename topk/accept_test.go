package topk

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// referenceTable feeds 100,000 accesses over 2,000 keys with weights 1/i^1.2 in
// 60 s. Seven of them have a true share of 2 % or more.
func referenceTable(f *feeder, seed uint64) {
	w := newWeighted(rand.New(rand.NewPCG(seed, 4)), 2000, func(i int) float64 { return math.Pow(float64(i), -1.2) })
	const n = 100_000
	for i := range int64(n) {
		f.add(t0+i*(59*int64(time.Second)/n), w.next())
	}
	f.d.Advance(t0 + 59*int64(time.Second))
}

func TestReferenceTableNamesTheSevenHotKeysAndNoOther(t *testing.T) {
	f := newFeeder(Config{})
	referenceTable(f, 1)
	s := f.d.Snapshot()
	if got := states(s, StateHot); !slices.Equal(got, ids(7)) {
		t.Errorf("hot %v; want key:1 to key:7", got)
	}
	if n := s.Counters.BecameHot; n != 7 {
		t.Errorf("%d entries into the list; want 7", n)
	}
	c := NewCounter(Config{Seed: 1})
	w := newWeighted(rand.New(rand.NewPCG(1, 4)), 2000, func(i int) float64 { return math.Pow(float64(i), -1.2) })
	for i := range int64(100_000) {
		c.Add(&Access{T: t0 + i*6e5, Key: appendDecimal([]byte("key:"), w.next()), Read: true})
	}
	if got := states(c.Snapshot(), StateHot); !slices.Equal(got, ids(7)) {
		t.Errorf("whole file: hot %v; want key:1 to key:7", got)
	}
}

func TestReferenceTableSampled(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector: 20 million accesses")
	}
	const runs = 200
	hot, wrong, order := 0, 0, 0
	for seed := range uint64(runs) {
		f := newFeeder(Config{Seed: seed + 1})
		f.d.SetEventSampleEvery(100)
		referenceTable(f, seed+1)
		s := f.d.Snapshot()
		for _, e := range f.drain() {
			if e.Kind != EventHot {
				continue
			}
			if slices.Contains(ids(7), string(e.Key)) {
				hot++
			} else {
				wrong++
			}
		}
		top := ids(3)
		if len(s.Keys) >= 3 && string(s.Keys[0].Key) == top[0] && string(s.Keys[1].Key) == top[1] && string(s.Keys[2].Key) == top[2] {
			order++
		}
	}
	t.Logf("1/100: %.2f true, %.2f false, order %.1f %%", float64(hot)/runs, float64(wrong)/runs, 100*float64(order)/runs)
	if float64(hot)/runs < 5 {
		t.Errorf("%.2f true hot keys on average; want >= 5", float64(hot)/runs)
	}
	if float64(wrong)/runs > 0.1 {
		t.Errorf("%.2f false hot keys on average; want <= 0.1", float64(wrong)/runs)
	}
	if float64(order)/runs < 0.95 {
		t.Errorf("top 3 in order in %.1f %%; want >= 95", 100*float64(order)/runs)
	}
}
