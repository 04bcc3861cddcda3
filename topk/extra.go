package topk

import "math"

// Extras hold the commands and clients of keys in a Counter that have more than
// one of either.
const (
	maxExtras  = 65536 // 392 B each
	extraChunk = 256
	maxSets    = 8192 // bitmaps of 1 KiB, for keys with more than topClients clients
)

type extra struct {
	set      *clientSet
	ncmd     int
	ids      [maxCommands]uint16
	commands [maxCommands + 1]uint64
	top      clientTop
}

type extras struct {
	chunks []*[extraChunk]extra
	free   []uint32
	sets   int
	spare  []*clientSet
}

// at returns the extra with number n (1..).
func (x *extras) at(n uint32) *extra { return &x.chunks[(n-1)/extraChunk][(n-1)%extraChunk] }

func (x *extra) add(pool *extras, a *Access, w uint64) {
	x.commands[x.command(a.Command)] += w
	x.addClient(pool, a, w)
}

func (x *extra) command(id uint16) int {
	for i, v := range x.ids[:x.ncmd] {
		if v == id {
			return i
		}
	}
	if x.ncmd == maxCommands {
		return maxCommands
	}
	x.ids[x.ncmd] = id
	x.ncmd++
	return x.ncmd - 1
}

// addClient counts a client; the ninth makes a bitmap of them.
func (x *extra) addClient(pool *extras, a *Access, w uint64) {
	hi, lo := addressWords(&a.Client)
	if x.set == nil && x.top.n == topClients && x.top.find(hi, lo) < 0 {
		if x.set = pool.takeSet(); x.set != nil {
			for i := range topClients {
				x.set.add(hashClient(x.top.hi[i], x.top.lo[i]))
			}
		}
	}
	if x.set != nil {
		x.set.add(hashClient(hi, lo))
	}
	x.top.add(hi, lo, uint32(min(w, math.MaxUint32)))
}

func (x *extra) clients() int {
	if x.set == nil {
		return x.top.n
	}
	return countClients(x.set, x.set)
}

func (p *extras) takeSet() *clientSet {
	if n := len(p.spare); n > 0 {
		s := p.spare[n-1]
		p.spare = p.spare[:n-1]
		*s = clientSet{}
		return s
	}
	if p.sets == maxSets {
		return nil
	}
	p.sets++
	return new(clientSet)
}

// take returns the number of a free extra, 0 if there is none.
func (p *extras) take() uint32 {
	if len(p.free) == 0 {
		have := len(p.chunks) * extraChunk
		if have == maxExtras {
			return 0
		}
		p.chunks = append(p.chunks, new([extraChunk]extra))
		for n := have + extraChunk; n > have; n-- {
			p.free = append(p.free, uint32(n))
		}
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return n
}

// release frees extra n.
func (p *extras) release(n uint32) {
	x := p.at(n)
	if x.set != nil {
		p.spare = append(p.spare, x.set)
	}
	*x = extra{}
	p.free = append(p.free, n)
}

// addExtra gives a key its extra on its first access by a second command or
// client, and adds the access to it.
func (c *Counter) addExtra(e *counterEntry, a *Access) {
	n := c.extras.take()
	if n == 0 {
		c.thinExtras()
		if n = c.extras.take(); n == 0 {
			return
		}
	}
	x := c.extras.at(n)
	e.extra = n
	if before := e.count - c.weight; before > 0 && e.flags&counterPartial == 0 {
		first := Access{Command: e.command, Client: e.client}
		x.add(&c.extras, &first, before)
	}
	x.add(&c.extras, a, c.weight)
}

// thinExtras takes the extras of the less accessed half of their keys.
func (c *Counter) thinExtras() {
	var h rankHistogram
	for i := range c.n {
		if e := c.entry(i); e.extra != 0 {
			h.add(uint32(min(e.count, math.MaxUint32)))
		}
	}
	cut := uint64(max(h.cut(maxExtras/2), 2))
	for i := range c.n {
		if e := c.entry(i); e.extra != 0 && e.count < cut {
			c.dropExtra(e)
		}
	}
}

func (c *Counter) dropExtra(e *counterEntry) {
	if e.extra != 0 {
		c.extras.release(e.extra)
		e.extra = 0
		e.flags |= counterPartial
	}
}
