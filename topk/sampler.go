package topk

import "math"

// Sampler keeps one event in N on average by geometric skips: the distance to
// the next kept event is drawn once per kept event, so an unsampled event costs
// a decrement. Every event is kept with the same probability independently of
// all others, so periodic traffic cannot fall in step with it as it does with
// "every N-th". The zero value keeps everything. Not safe for concurrent use.
type Sampler struct {
	left    int64 // events to pass over before the next kept one
	every   int
	inverse float64 // 1 / ln(1 - 1/N)
	state   uint64  // splitmix64
}

// NewSampler returns a Sampler that keeps everything, with its random stream
// fixed by seed.
func NewSampler(seed uint64) *Sampler { return &Sampler{state: seed} }

// SetEvery makes the Sampler keep one event in n. n <= 1 keeps all.
func (s *Sampler) SetEvery(n int) {
	n = min(max(n, 1), MaxSampleEvery)
	if n == s.every {
		return
	}
	s.every = n
	s.left = 0
	if n > 1 {
		s.inverse = 1 / math.Log1p(-1/float64(n))
		s.draw()
	}
}

// Every returns N.
func (s *Sampler) Every() int { return max(s.every, 1) }

// Take reports whether the next event is kept.
func (s *Sampler) Take() bool {
	if s.left > 0 {
		s.left--
		return false
	}
	if s.every > 1 {
		s.draw()
	}
	return true
}

func (s *Sampler) draw() {
	// 53 random bits, never 0, so that the logarithm is finite.
	u := (float64(s.next()>>11) + 0.5) / (1 << 53)
	s.left = int64(math.Log(u) * s.inverse)
}

func (s *Sampler) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return mix64(s.state)
}

// mix64 is the finisher of splitmix64: every input bit reaches every output bit.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
