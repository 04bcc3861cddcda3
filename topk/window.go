package topk

import (
	"math"
	"time"
)

const (
	sliceNanos = 250 * time.Millisecond
	// tickNanos is the evaluation period of the fast window: half a slice, so
	// that a step at 1,000 accesses/s is seen within 0.75 s whatever its phase.
	tickNanos     = sliceNanos / 2
	ticksPerSlice = int64(sliceNanos / tickNanos)
	ticksPerSec   = ticksPerSlice * slicesPerSec
	// firstSlice keeps slice numbers of columns before the start positive.
	firstSlice = (maxSlowSeconds + 4) * slicesPerSec
	// maxWindowWeight bounds the weighted accesses of a window, so that no
	// 32-bit count can overflow: 71 million accesses a second over 60 s. More
	// are counted in Saturated and nowhere else.
	maxWindowWeight = math.MaxUint32
)

// column is what one slice of time holds beside the counts per key.
type column struct {
	tally
	request, reply uint64 // weighted bytes
}

// count adds an access of weight w.
func (c *column) count(bytes, w uint64) {
	c.w += w
	c.q += w * w
	c.n++
	c.request += bytes * w
}

// rings places the slices of time on the columns of the table. The fast ring
// has the slice that is filling; the slow ring has whole seconds, the last of
// them filling up with closed slices.
type rings struct {
	fast         [maxFastSlices]column
	slow         [maxSlowSeconds]column
	fastN, slowN int // columns in use
	fcol, scol   int // columns being filled
	slice        uint32
	closed       uint64 // weighted accesses of the slow window but for the filling slice
}

func (r *rings) init(slowSeconds, fastSlices int) {
	*r = rings{slowN: slowSeconds, fastN: fastSlices, slice: firstSlice}
}

// weight is the number of weighted accesses in the slow window.
func (r *rings) weight() uint64 { return r.closed + r.fast[r.fcol].w }

// slowTally sums the slow window.
func (r *rings) slowTally() column {
	c := r.fast[r.fcol]
	for i := range r.slow[:r.slowN] {
		o := &r.slow[i]
		c.add(&o.tally)
		c.request += o.request
		c.reply += o.reply
	}
	return c
}

// fastTally sums the fast window.
func (r *rings) fastTally() column {
	var c column
	for i := range r.fast[:r.fastN] {
		o := &r.fast[i]
		c.add(&o.tally)
		c.request += o.request
		c.reply += o.reply
	}
	return c
}

// closeSlice moves the filling slice into the windows and opens the next one.
func (r *rings) closeSlice(t *table) {
	cur := &r.fast[r.fcol]
	if cur.n > 0 {
		t.fold(&t.fast[r.fcol], &t.slow[r.scol])
	}
	second := &r.slow[r.scol]
	second.add(&cur.tally)
	r.closed += cur.w
	second.request += cur.request
	second.reply += cur.reply

	r.slice++
	r.fcol = (r.fcol + 1) % r.fastN
	if r.fast[r.fcol].n > 0 {
		t.leaveFast(&t.fast[r.fcol])
	}
	r.fast[r.fcol] = column{}
	if r.slice%slicesPerSec == 0 {
		r.closeSecond(t)
	}
}

func (r *rings) closeSecond(t *table) {
	r.scol = (r.scol + 1) % r.slowN
	if c := &r.slow[r.scol]; c.n > 0 {
		t.leaveSlow(&t.slow[r.scol], r.slice/slicesPerSec-uint32(r.slowN))
		r.closed -= c.w
	}
	r.slow[r.scol] = column{}
}

// fold adds a closed slice to its second and to the fast totals.
func (t *table) fold(from, second *[entries]uint32) {
	for e, c := range from {
		second[e] += c
		t.fastTotal[e] += c
	}
}

// leaveFast takes a slice out of the fast window.
func (t *table) leaveFast(col *[entries]uint32) {
	for e, c := range col {
		t.fastTotal[e] -= c
	}
	clear(col[:])
}

// leaveSlow takes the given second out of the slow window. What an entry
// inherited lies in seconds up to its birth and leaves with them.
func (t *table) leaveSlow(col *[entries]uint32, second uint32) {
	for e, c := range col {
		if c == 0 {
			continue
		}
		t.total[e] -= c
		if t.inherited[e] == 0 {
			continue
		}
		m := &t.meta[e]
		switch born := m.born / slicesPerSec; {
		case born > second:
			t.inherited[e] -= c
		case born == second:
			t.inherited[e] -= m.baseSlow
		}
	}
	clear(col[:])
}

// ownFast returns the accesses surely of the entry's key in the fast window,
// and whether the key may have had others in it.
func (r *rings) ownFast(t *table, e int) (own uint32, exact bool) {
	m := &t.meta[e]
	age := r.slice - m.born // slices since birth
	if age >= uint32(r.fastN) {
		return t.fastTotal[e] + t.fast[r.fcol][e], true
	}
	for i := 0; i <= int(age); i++ {
		own += t.fast[(r.fcol-i+r.fastN)%r.fastN][e]
	}
	return own - m.baseFast, false
}

// cells calls f with every column that holds own accesses of entry e in the
// window, newest first, its age in columns and the count in it.
func (r *rings) cells(t *table, e int, w Window, f func(c *column, age int, own uint32)) {
	m := &t.meta[e]
	if w == WindowFast {
		age := min(r.slice-m.born, uint32(r.fastN))
		for i := 0; i < r.fastN && i <= int(age); i++ {
			col := (r.fcol - i + r.fastN) % r.fastN
			n := t.fast[col][e]
			if i == int(age) {
				n -= m.baseFast
			}
			f(&r.fast[col], i, n)
		}
		return
	}
	age := r.slice/slicesPerSec - m.born/slicesPerSec
	for i := 0; i < r.slowN && i <= int(age); i++ {
		col := (r.scol - i + r.slowN) % r.slowN
		n := t.slow[col][e]
		if i == int(age) {
			n -= m.baseSlow
		}
		if i == 0 {
			// The filling slice is not yet in its second.
			c := r.slow[col]
			c.add(&r.fast[r.fcol].tally)
			f(&c, 0, n+t.fast[r.fcol][e])
			continue
		}
		f(&r.slow[col], i, n)
	}
}

// ownSquares estimates the sum of squared weights of the key's accesses in the
// window: its weighted count in every column times the mean weight there.
func (r *rings) ownSquares(t *table, e int, w Window) uint64 {
	sum := 0.0
	r.cells(t, e, w, func(c *column, _ int, own uint32) {
		if own > 0 && c.w > 0 {
			sum += float64(own) * float64(c.q) / float64(c.w)
		}
	})
	return uint64(sum + 0.5)
}
