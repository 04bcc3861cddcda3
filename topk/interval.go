package topk

import "math"

// wilson returns the Wilson score interval of a share p seen in n independent
// draws, at the normal quantile z (E. B. Wilson, JASA 1927). n need not be whole:
// weighted samples pass their effective size.
func wilson(p, n, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	zz := z * z / n
	mid := p + zz/2
	half := z * math.Sqrt(max(p*(1-p)/n+zz/(4*n), 0))
	return max((mid-half)/(1+zz), 0), min((mid+half)/(1+zz), 1)
}

// strictLow is the Wilson lower bound with the first correction for the skew of
// a count (Cornish-Fisher, (z²-1)/6) and for its being whole (½), for rules that
// are tried all day long. Without it the nominal 1 in 30,000 of z = 4 is 1 in
// 5,000 at ten expected accesses, and a key at three quarters of the threshold
// enters about once in five days.
func strictLow(p, n, z float64) float64 {
	if n <= 0 {
		return 0
	}
	p -= ((z*z-1)/6 + 0.5) / n
	if p <= 0 {
		return 0
	}
	low, _ := wilson(p, n, z)
	return low
}

// tally is what a window knows: weighted accesses w, the sum of squared weights
// q and the number n of sampled accesses. extra is by how much the squared
// weights of sampled packets exceed the squares of their accesses.
type tally struct{ w, q, n, extra uint64 }

func (t *tally) add(o *tally) { t.w += o.w; t.q += o.q; t.n += o.n; t.extra += o.extra }

// uniform reports whether every access had the same weight.
func (t *tally) uniform() bool {
	return t.n == 0 || t.extra == 0 && t.w%t.n == 0 && t.q == t.n*(t.w/t.n)*(t.w/t.n)
}

// estimate is the share of a key in a window.
type estimate struct {
	own, upper uint64  // weighted accesses: surely of the key, at most of the key
	share      float64 // own / all
	n          float64 // effective sample size of the share
	sampled    float64 // effective number of sampled accesses of the key
}

// estimateShare computes the Horvitz-Thompson share of a key with weighted
// count own and squared weights ownQ. The variance of the ratio estimator is
// sum of w²(1{key} - p)² over W²; n is the size of a plain sample with it.
func estimateShare(own, ownQ, upper uint64, t *tally) estimate {
	e := estimate{own: own, upper: upper}
	if t.w == 0 {
		return e
	}
	w, q := float64(t.w), float64(t.q)
	p := min(float64(own)/w, 1)
	e.share = p
	// The plain cases come without rounding: ten accesses are not 9.99.
	e.n = w * w / q
	e.sampled = float64(own) * w / q
	if kq := float64(ownQ); own > 0 && p < 1 && kq*w != float64(own)*q {
		variance := (1-p)*(1-p)*kq + p*p*max(q-kq, 0)
		e.n = p * (1 - p) * w * w / variance
		e.sampled = p * e.n
	}
	return e
}

// bounds returns the interval at z, widened by what the table may have missed.
func (e *estimate) bounds(t *tally, z float64) (low, high float64) {
	if t.w == 0 {
		return 0, 1
	}
	low, high = wilson(e.share, e.n, z)
	if e.upper > e.own {
		_, high = wilson(min(float64(e.upper)/float64(t.w), 1), e.n, z)
	}
	return low, high
}
