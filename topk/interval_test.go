package topk

import "testing"

// TestWholeCountsStayWhole: with equal weights the number of accesses behind a
// share is the count itself, so that MinSampled accesses are enough.
func TestWholeCountsStayWhole(t *testing.T) {
	for _, weight := range []uint64{1, 8, 100} {
		for n := uint64(10); n < 5000; n++ {
			all := tally{w: n * weight, q: n * weight * weight, n: n}
			e := estimateShare(10*weight, 10*weight*weight, 10*weight, &all)
			if e.sampled != 10 || e.n != float64(n) {
				t.Fatalf("10 of %d accesses of weight %d: got %v of %v", n, weight, e.sampled, e.n)
			}
		}
	}
}
