package topk

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// hashClient mixes an address. Addresses are not secret and a set full of
// collisions only lowers a count, so it is not seeded.
func hashClient(hi, lo uint64) uint64 { return mix64(hi*0x9fb21c651e98df25 ^ lo) }

// clientSet counts distinct clients by linear counting (Whang et al., TODS
// 1990): a bit per hash bucket. With 8,192 bits the standard error is 0.1 % at
// 10 clients, 1 % at 10,000 and 2.6 % at 40,000, better than a HyperLogLog of
// the same size in that range; from about 74,000 on it is full and the count is
// a floor.
type clientSet struct {
	bits [clientBits / 64]uint64
}

func (c *clientSet) add(h uint64) {
	c.bits[h%clientBits/64] |= 1 << (h % 64)
}

// countClients returns the number of distinct clients in the union of two sets.
func countClients(a, b *clientSet) int {
	ones := 0
	for i := range a.bits {
		ones += bits.OnesCount64(a.bits[i] | b.bits[i])
	}
	zeros := max(clientBits-ones, 1)
	return int(math.Round(clientBits * math.Log(float64(clientBits)/float64(zeros))))
}

// fewClients counts the clients of two generations exactly while no generation
// had more than topClients of them.
func fewClients(a, b *clientTop) (n int, ok bool) {
	n = a.n
	for i := range b.n {
		if a.find(b.hi[i], b.lo[i]) < 0 {
			n++
		}
	}
	return n, !a.crowded && !b.crowded
}

// clientTop finds the heaviest client by Space-Saving over eight entries: any
// client with more than an eighth of the accesses is in it, and count-errors is
// surely its own.
type clientTop struct {
	all     uint64
	n       int
	last    int  // entry of the previous access: clients send in bursts
	crowded bool // a client had to make room
	hi, lo  [topClients]uint64
	count   [topClients]uint32
	errors  [topClients]uint32
}

func addressWords(a *[16]byte) (hi, lo uint64) {
	return binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
}

func (c *clientTop) address(i int) (a [16]byte) {
	binary.BigEndian.PutUint64(a[:8], c.hi[i])
	binary.BigEndian.PutUint64(a[8:], c.lo[i])
	return a
}

// add counts an access and reports whether the client was there before.
func (c *clientTop) add(hi, lo uint64, w uint32) (known bool) {
	known = true
	c.all += uint64(w)
	i := c.last & (topClients - 1)
	if c.lo[i] != lo || c.hi[i] != hi || c.n == 0 {
		i = c.find(hi, lo)
		if i < 0 {
			i, known = c.replace(hi, lo), false
		}
		c.last = i
	}
	c.count[i] += w
	return known
}

func (c *clientTop) find(hi, lo uint64) int {
	for i := range c.n {
		if c.lo[i] == lo && c.hi[i] == hi {
			return i
		}
	}
	return -1
}

func (c *clientTop) replace(hi, lo uint64) int {
	i := c.n
	if i < topClients {
		c.n++
	} else {
		i = leastOf(&c.count)
		c.errors[i] = c.count[i]
		c.crowded = true
	}
	c.hi[i], c.lo[i] = hi, lo
	return i
}

// heaviestClient returns the client with the most sure accesses over both
// generations and its share of all accesses in them.
func heaviestClient(a, b *clientTop) (addr [16]byte, share float64) {
	all := a.all + b.all
	if all == 0 {
		return addr, 0
	}
	best := uint64(0)
	for _, t := range [2]*clientTop{a, b} {
		for i := range t.n {
			if n := a.sure(t.hi[i], t.lo[i]) + b.sure(t.hi[i], t.lo[i]); n > best {
				best, addr = n, t.address(i)
			}
		}
	}
	return addr, float64(best) / float64(all)
}

func (c *clientTop) sure(hi, lo uint64) uint64 {
	if i := c.find(hi, lo); i >= 0 {
		return uint64(c.count[i] - c.errors[i])
	}
	return 0
}
