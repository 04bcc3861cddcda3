package topk

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSamplerKeepsOneInN(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 1024} {
		s := NewSampler(uint64(n))
		s.SetEvery(n)
		const events = 2_000_000
		kept, gap, gaps := 0, 0, map[int]int{}
		for range events {
			gap++
			if s.Take() {
				kept++
				gaps[gap]++
				gap = 0
			}
		}
		want := float64(events) / float64(n)
		if math.Abs(float64(kept)-want) > 5*math.Sqrt(want) {
			t.Errorf("1/%d: %d kept; want %.0f", n, kept, want)
		}
		// Geometric: the next event is kept with probability 1/N whatever came before.
		if next := float64(gaps[1]) / float64(kept); n > 1 && math.Abs(next-1/float64(n)) > 5*math.Sqrt(1/float64(n)/float64(kept)) {
			t.Errorf("1/%d: a kept event follows a kept one with %.4f", n, next)
		}
	}
	var zero Sampler
	if !zero.Take() || zero.Every() != 1 {
		t.Error("the zero Sampler must keep everything")
	}
}

// Traffic with a period, which every-N-th sampling would get wrong by any factor.
func TestPeriodicTrafficStaysWithinTheInterval(t *testing.T) {
	shapes := []struct {
		name string
		id   func(i uint64) uint64
		want float64 // share of key 1
	}{
		{"loop over 100 keys", func(i uint64) uint64 { return i%100 + 1 }, 0.01},
		{"lock and operation in turn", func(i uint64) uint64 {
			if i%2 == 0 {
				return 1
			}
			return 2 + i*2654435761%5000
		}, 0.5},
		{"pipelines of 50 with a fixed first key", func(i uint64) uint64 {
			if i%50 == 0 {
				return 1
			}
			return 2 + i*2654435761%5000
		}, 0.02},
	}
	for _, c := range shapes {
		t.Run(c.name, func(t *testing.T) {
			runs, outside := 40, 0
			if raceEnabled {
				runs = 5
			}
			for seed := range uint64(runs) {
				f := newFeeder(Config{Seed: seed + 1, Top: 5000})
				f.d.SetEventSampleEvery(100)
				for i := range uint64(200_000) {
					f.add(t0+int64(i)*250_000, c.id(i))
				}
				k := keyOf(t, f.d.Snapshot(), "key:1")
				if c.want < k.ShareLow || c.want > k.ShareHigh {
					outside++
				}
			}
			// 2 % may be outside; 4 of 40 has a probability of 1 in 1,000.
			if outside > max(runs/10-1, 1) {
				t.Errorf("share %v outside the interval in %d of %d runs", c.want, outside, runs)
			}
		})
	}
}

// coverageKeys have a share of 2 % and 26 %.
var coverageKeys = []struct {
	key   string
	share float64
}{{"small", 0.02}, {"large", 0.26}}

// coverage runs 30 s of 1,000 accesses of which one in N is handed in, N changing
// every second, and reports for each key whether its interval covers its share.
func coverage(seed uint64, every func(rng *rand.Rand, s int) int) (covered [2]bool, share [2]float64) {
	rng := rand.New(rand.NewPCG(seed, 41))
	d := New(Config{Seed: seed + 1})
	a := Access{Read: true}
	small, large, other := []byte("small"), []byte("large"), []byte("other")
	for s := range 30 {
		n := every(rng, s)
		d.SetSampleEvery(n)
		for i := range 1000 {
			if rng.IntN(n) != 0 { // the kernel's coin
				continue
			}
			switch u := rng.Float64(); {
			case u < 0.02:
				a.Key = small
			case u < 0.28:
				a.Key = large
			default:
				a.Key = other
			}
			a.T = t0 + int64(s)*second + int64(i)*900_000
			d.Add(&a)
		}
	}
	snap := d.Snapshot()
	for i, c := range coverageKeys {
		low, high := wilson(0, float64(snap.SampledAccesses), snap.Z) // not seen at all
		for j := range snap.Keys {
			if k := &snap.Keys[j]; string(k.Key) == c.key {
				low, high, share[i] = k.ShareLow, k.ShareHigh, k.Share
			}
		}
		covered[i] = low <= c.share && c.share <= high
	}
	return covered, share
}

func TestIntervalsCoverTheTruthAtTheirNominalLevel(t *testing.T) {
	runs := 1000
	if raceEnabled {
		runs = 20
	}
	for _, c := range []struct {
		name  string
		every func(rng *rand.Rand, s int) int
	}{
		{"N=1", func(*rand.Rand, int) int { return 1 }},
		{"N=20", func(*rand.Rand, int) int { return 20 }},
		{"N changes every second", func(rng *rand.Rand, _ int) int { return 1 << rng.IntN(6) }},
		{"N doubles under load", func(_ *rand.Rand, s int) int { return 1 << min(s/6, 5) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var hit [2]int
			var sum [2]float64
			for seed := range uint64(runs) {
				covered, share := coverage(seed, c.every)
				for i := range coverageKeys {
					sum[i] += share[i]
					if covered[i] {
						hit[i]++
					}
				}
			}
			for i, k := range coverageKeys {
				rate, mean := float64(hit[i])/float64(runs), sum[i]/float64(runs)
				t.Logf("share %v: covered in %.1f %%, mean %.5f", k.share, 100*rate, mean)
				if rate < 0.97 && runs == 1000 || rate < 0.9 {
					t.Errorf("share %v covered in %.1f %% of %d runs; want >= 97", k.share, 100*rate, runs)
				}
				// 1,000 runs pin the mean down to about 1 % of the share.
				if runs == 1000 && math.Abs(mean-k.share) > 0.03*k.share {
					t.Errorf("mean share %.5f; want %v: biased", mean, k.share)
				}
			}
		})
	}
}

func TestCountsAreScaledAndBothSamplingsMultiply(t *testing.T) {
	d := New(Config{Seed: 1})
	d.SetSampleEvery(4)
	for i := range int64(1000) {
		d.Add(&Access{T: t0 + i*1e6, Key: []byte("k"), Read: true, Bytes: 10})
	}
	s := d.Snapshot()
	k := keyOf(t, s, "k")
	if s.Accesses != 4000 || s.SampledAccesses != 1000 || k.Accesses != 4000 || k.RequestBytes != 40_000 || s.SampleEvery != 4 {
		t.Errorf("accesses %d sampled %d key %d bytes %d every %d", s.Accesses, s.SampledAccesses, k.Accesses, k.RequestBytes, s.SampleEvery)
	}
	if k.SampledAccesses != 1000 {
		t.Errorf("sampled accesses of the key %v; want 1000", k.SampledAccesses)
	}
	d.SetEventSampleEvery(8)
	if d.weight != 32 {
		t.Errorf("weight %d; want 32", d.weight)
	}
	d.SetSampleEvery(MaxSampleEvery)
	if d.weight != MaxSampleEvery {
		t.Errorf("weight %d; want the bound %d", d.weight, MaxSampleEvery)
	}
}

func TestMixedWeightsUseTheEffectiveSampleSize(t *testing.T) {
	// A key seen only while one access in 64 is kept rests on few samples,
	// however large the window is otherwise.
	d := New(Config{Seed: 1})
	a := Access{Read: true}
	for i := range int64(100_000) {
		a.T, a.Key = t0+i*300_000, []byte("other")
		d.Add(&a)
	}
	d.SetSampleEvery(64)
	for i := range int64(1000) {
		a.T, a.Key = t0+31*second+i*9_000_000, []byte("other")
		if i%10 == 0 {
			a.Key = []byte("late")
		}
		d.Add(&a)
	}
	k := keyOf(t, d.Snapshot(), "late")
	share := 6400.0 / 164_000
	if math.Abs(k.Share-share) > 1e-9 {
		t.Errorf("share %v; want %v", k.Share, share)
	}
	if k.SampledAccesses > 105 || k.SampledAccesses < 90 {
		t.Errorf("rests on %v accesses; want about the 100 that were sampled", k.SampledAccesses)
	}
}

func TestWilsonKnownValues(t *testing.T) {
	// 10 of 100 at 95 %: 0.0552 to 0.1744 (textbook values).
	low, high := wilson(0.1, 100, 1.96)
	if math.Abs(low-0.0552) > 1e-4 || math.Abs(high-0.1744) > 1e-4 {
		t.Errorf("wilson(0.1, 100) = %.4f, %.4f; want 0.0552, 0.1744", low, high)
	}
	for _, n := range []float64{0, 1, 10, 1e12} {
		for _, p := range []float64{0, 0.02, 1} {
			low, high := wilson(p, n, 4)
			if !(low >= 0 && low <= p+1e-12 && high >= p-1e-12 && high <= 1) {
				t.Errorf("wilson(%v, %v) = %v, %v", p, n, low, high)
			}
			if s := strictLow(p, n, 4); !(s >= 0 && s <= low+1e-12) {
				t.Errorf("strictLow(%v, %v) = %v above %v", p, n, s, low)
			}
		}
	}
}
