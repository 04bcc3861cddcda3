package main

import (
	"math"
	"slices"
)

// median returns the middle of v, the mean of the two middle ones for an even
// number; NaN of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// confidence is the least coverage of medianRange where the number of rounds
// allows it.
const confidence = 0.93

// medianRange returns the narrowest pair of order statistics, symmetric in
// rank, between which the true median lies with the given confidence, whatever
// the distribution: of 5 to 8 values the smallest and the largest, of 11 the
// third and the ninth. Of fewer than five it is all there is.
func medianRange(v []float64) (lo, hi float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	skip := 0
	// The median lies outside when at most `skip` of n fair coins show heads,
	// or at most that many tails.
	for tail := 0.0; skip < n/2; skip++ {
		tail += binomial(n, skip) / math.Pow(2, float64(n))
		if 1-2*tail < confidence {
			break
		}
	}
	skip = max(skip-1, 0)
	return v[skip], v[n-1-skip]
}

func binomial(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// ratios returns a[i]/b[i].
func ratios(a, b []float64) []float64 { return zip(a, b, func(x, y float64) float64 { return x / y }) }

// differences returns a[i]-b[i].
func differences(a, b []float64) []float64 {
	return zip(a, b, func(x, y float64) float64 { return x - y })
}

// means returns the middle of a[i] and b[i].
func means(a, b []float64) []float64 {
	return zip(a, b, func(x, y float64) float64 { return (x + y) / 2 })
}

func zip(a, b []float64, f func(x, y float64) float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = f(a[i], b[i])
	}
	return out
}
