package topk

import "math/bits"

// rankHistogram finds the count that separates the n largest of many in one
// pass and constant space. Buckets are an eighth of an octave wide.
type rankHistogram struct {
	buckets [33 * 8]uint32
}

func rankBucket(v uint32) int {
	l := bits.Len32(v)
	if l <= 3 {
		return int(v) // exact below 8
	}
	return l*8 + int(v>>(l-4)&7)
}

// rankFloor is the least value of bucket b.
func rankFloor(b int) uint32 {
	if b < 8 {
		return uint32(b)
	}
	l := b / 8
	if l <= 3 {
		return 8
	}
	return uint32(8|b&7) << (l - 4)
}

func (h *rankHistogram) add(v uint32) { h.buckets[rankBucket(v)]++ }

// cut returns the largest value for which at most n of the added values are at
// or above it. Values that share the last bucket stay below the cut.
func (h *rankHistogram) cut(n int) uint32 {
	seen := 0
	for b := len(h.buckets) - 1; b >= 0; b-- {
		seen += int(h.buckets[b])
		if seen > n {
			if b == len(h.buckets)-1 {
				return 1<<32 - 1
			}
			return rankFloor(b + 1)
		}
	}
	return 0
}

// floor returns a value at or above which at least n of the added values are,
// as few more as the buckets allow; 0 when fewer were added.
func (h *rankHistogram) floor(n int) uint32 {
	seen := 0
	for b := len(h.buckets) - 1; b >= 0; b-- {
		seen += int(h.buckets[b])
		if seen >= n {
			return rankFloor(b)
		}
	}
	return 0
}
