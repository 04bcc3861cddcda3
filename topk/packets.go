package topk

// Accesses of one sampled packet came into the sample together: a pipeline of
// sixteen requests for one key is one draw, not sixteen. The interval of a
// share must know that. With x accesses of the key and m of all keys in a
// packet, each weighted, the variance of the share p is
//
//	sum over packets of (x - p m)²  =  sum x² - 2p sum x m + p² sum m²
//
// (the ratio estimator of cluster sampling: Cochran, Sampling Techniques,
// chapter 9A). A packet with one access gives what single draws give.
//
// clusters keeps the first two sums of each entry as means over its latest
// accesses, which forget as the windows do; the third is in the columns.
type clusters struct {
	base   [entries]float32 // sum of squared weights
	square [entries]float32 // sum of x²
	cross  [entries]float32 // sum of x m

	// The packet being added.
	in      [entries]uint32 // x
	plain   [entries]uint64 // its sum of squared weights
	touched []uint16        // entries with in > 0
	all     uint64          // m
	squares uint64          // sum of squared weights
}

// clusterMemory is how much of the means is left after a second: they forget
// half in 42 s, about as the slow window does.
const clusterMemory = 1 - 1.0/60

// BeginPacket says that the accesses added until EndPacket are of one packet
// that the kernel sampled. Without the two calls every access is a draw of its
// own. All accesses of a packet must have the same time.
func (d *Detector) BeginPacket() {
	if d.clusters == nil {
		d.clusters = &clusters{touched: make([]uint16, 0, entries)}
	}
	d.inPacket = true
}

// EndPacket ends the packet.
func (d *Detector) EndPacket() {
	if !d.inPacket {
		return
	}
	d.inPacket = false
	c := d.clusters
	if c.all == 0 {
		return
	}
	d.win.fast[d.win.fcol].extra += c.all*c.all - c.squares
	m := float32(c.all)
	for _, e := range c.touched {
		x := float32(c.in[e])
		c.base[e] += float32(c.plain[e])
		c.square[e] += x * x
		c.cross[e] += x * m
		c.in[e], c.plain[e] = 0, 0
	}
	c.touched = c.touched[:0]
	c.all, c.squares = 0, 0
}

// add notes an access of weight w to entry e in the packet.
func (c *clusters) add(e int, w uint32) {
	if c.in[e] == 0 {
		c.touched = append(c.touched, uint16(e))
	}
	c.in[e] += w
	c.plain[e] += uint64(w) * uint64(w)
	c.all += uint64(w)
	c.squares += uint64(w) * uint64(w)
}

// forget lets a second pass.
func (c *clusters) forget() {
	for e := range c.base {
		c.base[e] *= clusterMemory
		c.square[e] *= clusterMemory
		c.cross[e] *= clusterMemory
	}
}

// take forgets the former key of entry e.
func (c *clusters) take(e int) { c.base[e], c.square[e], c.cross[e] = 0, 0, 0 }

// variance is the sum of x² - 2p x m of entry e over a window, for a share p:
// each column has its count times the mean weight, times the means of the key
// where packets were sampled.
func (d *Detector) variance(e int, w Window, p float64) float64 {
	square, cross := 1.0, 1.0
	if b := float64(d.clusters.base[e]); b > 0 {
		square, cross = float64(d.clusters.square[e])/b, float64(d.clusters.cross[e])/b
	}
	sum := 0.0
	d.win.cells(d.t, e, w, func(c *column, _ int, own uint32) {
		if own == 0 || c.w == 0 {
			return
		}
		base := float64(own) * float64(c.q) / float64(c.w)
		if c.extra == 0 {
			sum += base * (1 - 2*p)
			return
		}
		sum += base * (square - 2*p*cross)
	})
	return sum
}

// cluster widens an estimate for accesses that were drawn together. own2 is
// what variance returned. It is never narrower than for single draws: that all
// packets seen were alike proves little.
func (e *estimate) cluster(own2 float64, t *tally) {
	p, w := e.share, float64(t.w)
	if e.own == 0 || p >= 1 {
		e.n = min(e.n, w*w/(float64(t.q)+float64(t.extra)))
	} else if v := own2 + p*p*(float64(t.q)+float64(t.extra)); v > 0 {
		e.n = min(e.n, p*(1-p)*w*w/v)
	}
	e.sampled = min(e.sampled, p*e.n)
}
