package topk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// zipf draws ranks 1..n with weight 1/rank^s by rejection-inversion (Hörmann and
// Derflinger 1996): no table, so 10^8 keys cost nothing.
type zipf struct {
	n, s       float64
	hx0, hn, c float64
	rng        *rand.Rand
}

func newZipf(rng *rand.Rand, n, s float64) *zipf {
	z := &zipf{n: n, s: s, rng: rng}
	z.hx0 = z.h(0.5) - 1
	z.hn = z.h(n + 0.5)
	z.c = 1 - z.hInv(z.h(1.5)-math.Exp(-s*math.Log(2)))
	return z
}

func (z *zipf) h(x float64) float64 {
	if z.s == 1 {
		return math.Log(x)
	}
	return (math.Exp((1-z.s)*math.Log(x)) - 1) / (1 - z.s)
}

func (z *zipf) hInv(y float64) float64 {
	if z.s == 1 {
		return math.Exp(y)
	}
	return math.Exp(math.Log(1+y*(1-z.s)) / (1 - z.s))
}

func (z *zipf) next() uint64 {
	for {
		u := z.hn + z.rng.Float64()*(z.hx0-z.hn)
		x := z.hInv(u)
		k := math.Floor(x + 0.5)
		if k < 1 {
			k = 1
		} else if k > z.n {
			k = z.n
		}
		if k-x <= z.c || u >= z.h(k+0.5)-math.Exp(-z.s*math.Log(k)) {
			return uint64(k)
		}
	}
}

// benchKeys draws n keys of 31 bytes out of 10^8, or as many as given.
func benchKeys(s float64, n int, of ...float64) [][]byte {
	z := newZipf(rand.New(rand.NewPCG(1, 2)), append(of, 1e8)[0], s)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "product:detail:%016d", z.next())
	}
	return keys
}

// reportCPU reports the processor time per operation since start.
func reportCPU(b *testing.B, start float64) {
	b.ReportMetric((cpuNanos()-start)/float64(b.N), "cpu-ns/op")
}

func BenchmarkDetectorAdd(b *testing.B) {
	for _, s := range []float64{0.8, 1.0, 1.2} {
		b.Run(fmt.Sprintf("zipf%.1f", s), func(b *testing.B) {
			keys := benchKeys(s, 1<<20)
			d := New(Config{Seed: 1})
			a := Access{Command: 1, Read: true, Bytes: 50}
			i, t := 0, int64(1e18)
			add := func() {
				a.Key = keys[i&(1<<20-1)]
				binary.BigEndian.PutUint32(a.Client[12:], uint32(i)*2654435761>>26)
				a.T = t
				t += 1000
				i++
				d.Add(&a)
			}
			for range 3 << 20 {
				add()
			}
			b.ReportAllocs()
			cpu := cpuNanos()
			for b.Loop() {
				add()
			}
			reportCPU(b, cpu)
		})
	}
}

// fullTable returns a Detector with every entry and both windows in use.
func fullTable(b *testing.B, cfg Config) *Detector {
	cfg.Seed = 1
	d := New(cfg)
	keys := benchKeys(1.0, 1<<18)
	for i := range int64(6 << 18) {
		d.Add(&Access{T: t0 + i*40_000, Key: keys[i&(1<<18-1)], Bytes: 90, Client: client(uint32(i & 63))})
	}
	used := 0
	for _, n := range d.t.total {
		if n > 0 {
			used++
		}
	}
	if used != entries {
		b.Fatalf("%d entries in use; want all %d", used, entries)
	}
	return d
}

// BenchmarkTick is what one evaluation of both windows costs at a full table,
// with all the work of the end of a second: rotation, ranking, reclaiming.
func BenchmarkTick(b *testing.B) {
	b.Run("fast", func(b *testing.B) {
		d := fullTable(b, Config{})
		cpu := cpuNanos()
		for b.Loop() {
			d.evaluateFast(d.now)
		}
		reportCPU(b, cpu)
	})
	b.Run("slow", func(b *testing.B) {
		d := fullTable(b, Config{})
		cpu := cpuNanos()
		for b.Loop() {
			d.evaluateSlow(d.now)
		}
		reportCPU(b, cpu)
	})
	b.Run("both with low thresholds", func(b *testing.B) {
		rules, err := CompileRules([]Rule{{Match: MatchGlob, Pattern: "*", Share: MinThreshold}})
		if err != nil {
			b.Fatal(err)
		}
		d := fullTable(b, Config{Rules: rules})
		cpu := cpuNanos()
		for b.Loop() {
			d.evaluateFast(d.now)
			d.evaluateSlow(d.now)
		}
		reportCPU(b, cpu)
	})
	b.Run("end of a second", func(b *testing.B) {
		// One access a slice keeps every rotation busy.
		d := fullTable(b, Config{})
		a := Access{Key: []byte("k")}
		now := d.now
		b.ReportAllocs()
		cpu := cpuNanos()
		for b.Loop() {
			for range slicesPerSec {
				now += int64(sliceNanos)
				a.T = now
				d.Add(&a)
			}
		}
		reportCPU(b, cpu)
	})
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{20, 200} {
		b.Run(fmt.Sprintf("top %d", n), func(b *testing.B) {
			d := fullTable(b, Config{Top: n})
			b.ReportAllocs()
			cpu := cpuNanos()
			for b.Loop() {
				d.Snapshot()
			}
			reportCPU(b, cpu)
		})
	}
	b.Run("distinct keys, once a second", func(b *testing.B) {
		d := fullTable(b, Config{})
		cpu := cpuNanos()
		for b.Loop() {
			d.distinctOK = false
			d.countDistinct()
		}
		reportCPU(b, cpu)
	})
}

func BenchmarkSampler(b *testing.B) {
	s := NewSampler(1)
	s.SetEvery(1024)
	n := 0
	for b.Loop() {
		if s.Take() {
			n++
		}
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	b.Run("10,000 keys", func(b *testing.B) { benchCounter(b, 10_000) })
	b.Run("400,000 keys", func(b *testing.B) { benchCounter(b, 1e8) })
}

func benchCounter(b *testing.B, ids float64) {
	keys := benchKeys(1.0, 1<<20, ids)
	c := NewCounter(Config{Seed: 1})
	a := Access{Command: 1, Read: true, Bytes: 50}
	i := 0
	add := func() {
		a.Key = keys[i&(1<<20-1)]
		i++
		c.Add(&a)
	}
	for range 1 << 20 {
		add()
	}
	b.ReportAllocs()
	cpu := cpuNanos()
	for b.Loop() {
		add()
	}
	reportCPU(b, cpu)
}
