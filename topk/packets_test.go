package topk

import (
	"math"
	"math/rand/v2"
	"testing"
)

// packetKinds draw the keys of one packet; small has 2 % of all accesses and
// large 26 %.
var packetKinds = []struct {
	name string
	draw func(rng *rand.Rand, keys []string) []string
}{
	{"single accesses", func(rng *rand.Rand, keys []string) []string {
		return append(keys, drawKey(rng))
	}},
	{"pipelines of 16 independent keys", func(rng *rand.Rand, keys []string) []string {
		for range 16 {
			keys = append(keys, drawKey(rng))
		}
		return keys
	}},
	{"pipelines of 16 of the same key", func(rng *rand.Rand, keys []string) []string {
		for k := drawKey(rng); len(keys) < 16; {
			keys = append(keys, k)
		}
		return keys
	}},
	{"small in pipelines, all others single", func(rng *rand.Rand, keys []string) []string {
		if rng.Float64() < 0.02/16/(0.98+0.02/16) {
			for range 16 {
				keys = append(keys, "small")
			}
			return keys
		}
		for {
			if k := drawKey(rng); k != "small" {
				return append(keys, k)
			}
		}
	}},
	{"large in pipelines, all others mixed in pipelines", func(rng *rand.Rand, keys []string) []string {
		if rng.Float64() < 0.26 {
			for range 16 {
				keys = append(keys, "large")
			}
			return keys
		}
		for len(keys) < 16 {
			if k := drawKey(rng); k != "large" {
				keys = append(keys, k)
			}
		}
		return keys
	}},
}

func drawKey(rng *rand.Rand) string {
	switch u := rng.Float64(); {
	case u < 0.02:
		return "small"
	case u < 0.28:
		return "large"
	}
	return "other:" + string('a'+rune(rng.IntN(26))) + string('a'+rune(rng.IntN(26)))
}

// TestPacketsAreDrawsOfTheInterval: when one packet in 16 is sampled, the
// interval holds the share at its level, however the accesses of a packet hang
// together. Plain counting would take sixteen requests of one pipeline for
// sixteen proofs.
func TestPacketsAreDrawsOfTheInterval(t *testing.T) {
	runs := 150
	if raceEnabled {
		runs = 8
	}
	for _, kind := range packetKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var hit [2]int
			var sum, width [2]float64
			for seed := range uint64(runs) {
				rng := rand.New(rand.NewPCG(seed, 43))
				d := New(Config{Seed: seed + 1})
				d.SetSampleEvery(16)
				var keys []string
				const accesses = 20_000
				for n := 0; n < accesses; n += len(keys) {
					keys = kind.draw(rng, keys[:0])
					a := Access{T: t0 + int64(n)*20*second/accesses, Read: true}
					d.BeginPacket()
					for _, k := range keys {
						a.Key = []byte(k)
						d.Add(&a)
					}
					d.EndPacket()
				}
				snap := d.Snapshot()
				for i, c := range coverageKeys {
					k := keyOf(t, snap, c.key)
					sum[i] += k.Share
					width[i] += k.ShareHigh - k.ShareLow
					if k.ShareLow <= c.share && c.share <= k.ShareHigh {
						hit[i]++
					}
				}
			}
			for i, c := range coverageKeys {
				rate, mean := float64(hit[i])/float64(runs), sum[i]/float64(runs)
				t.Logf("share %v: covered in %.1f %%, mean %.4f, mean width %.4f", c.share, 100*rate, mean, width[i]/float64(runs))
				if rate < 0.93 && runs == 150 || rate < 0.7 {
					t.Errorf("share %v covered in %.1f %% of %d runs; want about 98", c.share, 100*rate, runs)
				}
				if runs == 150 && math.Abs(mean-c.share) > 0.08*c.share {
					t.Errorf("mean share %.5f; want %v: biased", mean, c.share)
				}
			}
		})
	}
}

// TestIndependentPipelinesKeepTheirInterval: accesses that only travel together
// lose nothing.
func TestIndependentPipelinesKeepTheirInterval(t *testing.T) {
	widths := [2]float64{}
	for i, together := range []int{1, 16} {
		rng := rand.New(rand.NewPCG(5, 6))
		d := New(Config{Seed: 1})
		d.SetSampleEvery(16)
		for n := range 20_000 {
			if n%together == 0 {
				d.EndPacket()
				d.BeginPacket()
			}
			d.Add(&Access{T: t0 + int64(n/16)*16*1e6, Key: []byte(drawKey(rng)), Read: true})
		}
		d.EndPacket()
		k := keyOf(t, d.Snapshot(), "large")
		widths[i] = k.ShareHigh - k.ShareLow
	}
	if widths[1] > 1.3*widths[0] {
		t.Errorf("the interval is %.4f wide for pipelines, %.4f for single requests", widths[1], widths[0])
	}
}

// TestOnePipelineMakesNoKeyHot: a packet with a thousand requests for one key is
// one draw, and a key that had three of them is not yet listed.
func TestOnePipelineMakesNoKeyHot(t *testing.T) {
	d := New(Config{Seed: 1})
	d.SetSampleEvery(64)
	a := Access{Read: true}
	add := func(at int64, key string, n int) {
		a.T, a.Key = at, []byte(key)
		d.BeginPacket()
		for range n {
			d.Add(&a)
		}
		d.EndPacket()
	}
	for i := range 5000 {
		at := t0 + int64(i)*2e6
		add(at, "other:"+string(appendDecimal(nil, uint64(i%500))), 1)
		if i%1600 == 800 {
			add(at, "burst", 1000)
		}
	}
	k := keyOf(t, d.Snapshot(), "burst")
	if k.Share < 0.3 {
		t.Fatalf("burst has %v; want over 0.3", k.Share)
	}
	if k.State == StateHot || k.SampledAccesses > 10 || k.ShareLow > 0.2 {
		t.Errorf("burst is %v with a lower bound of %v on %v draws", k.State, k.ShareLow, k.SampledAccesses)
	}
}

func TestPacketsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := New(Config{Seed: 1})
	d.SetSampleEvery(16)
	a := Access{T: t0, Key: []byte("k"), Read: true}
	add := func() {
		d.BeginPacket()
		for range 16 {
			d.Add(&a)
		}
		d.EndPacket()
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
