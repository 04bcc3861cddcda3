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

func benchKeys(s float64, n int) [][]byte {
	z := newZipf(rand.New(rand.NewPCG(1, 2)), 1e8, s)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "product:detail:%016d", z.next())
	}
	return keys
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
			for b.Loop() {
				add()
			}
		})
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	keys := benchKeys(1.0, 1<<20)
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
	for b.Loop() {
		add()
	}
}
