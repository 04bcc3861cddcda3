package topk

// find returns the entry of h or -1.
func (c *Counter) find(h uint64) int {
	mask := uint64(len(c.index) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		s := c.index[p]
		if s == 0 {
			return -1
		}
		if s>>32 == h>>32 {
			if i := int(uint32(s)) - 1; c.entry(i).hash == h {
				return i
			}
		}
	}
}

// insert makes an entry for a key that has none.
func (c *Counter) insert(h uint64, a *Access) int {
	c.sketch.InsertHash(h)
	var i int
	if c.n < c.cfg.MaxKeys && !c.arena.full(len(a.Key)) {
		i = c.n
		if i%entryChunk == 0 {
			c.chunks = append(c.chunks, new([entryChunk]counterEntry))
		}
		c.n++
		if 2*c.n > len(c.index) {
			c.grow()
		}
	} else {
		i = c.evict()
	}
	e := c.entry(i)
	gen := e.gen%counterGenMask + 1
	*e = counterEntry{hash: h, errors: c.floor, gen: gen, command: a.Command, client: a.Client}
	e.key = c.arena.put(a.Key)
	e.keyLen = uint32(min(max(a.KeyLen, int64(len(a.Key))), 1<<32-1))
	c.place(h, i)
	return i
}

func (c *Counter) place(h uint64, i int) {
	mask := uint64(len(c.index) - 1)
	p := h & mask
	for c.index[p] != 0 {
		p = (p + 1) & mask
	}
	c.index[p] = h>>32<<32 | uint64(i+1)
}

func (c *Counter) grow() {
	c.index = make([]uint64, 2*len(c.index))
	for i := range c.n - 1 { // the newest is placed by the caller
		c.place(c.entry(i).hash, i)
	}
}

// evict frees an entry with a small count and raises the floor to it: a key
// without an entry has had at most floor accesses, which is the error of a key
// that gets one. A hand goes round the entries and takes those at the level of
// the least count of its previous round, so that the choice is as good as the
// exact minimum nearly always; when victimSteps entries are all larger, the
// least of them goes, which only loosens the bound.
func (c *Counter) evict() int {
	best, least := -1, ^uint64(0)
	for range victimSteps {
		i := int(c.hand)
		c.hand++
		if int(c.hand) >= c.n {
			c.hand = 0
			if c.lowest != ^uint64(0) {
				c.level = max(c.level, c.lowest)
				c.lowest = ^uint64(0)
			}
		}
		e := c.entry(i)
		upper := e.count + e.errors
		if upper < least {
			best, least = i, upper
		}
		if upper <= c.level {
			break
		}
		c.lowest = min(c.lowest, upper)
	}
	e := c.entry(best)
	c.floor = max(c.floor, least)
	c.stats.Evicted++
	c.dropExtra(e)
	c.countEvicted(e)
	c.unplace(e.hash)
	c.arena.release(e.key)
	return best
}

// unplace removes h from the index and closes the gap behind it.
func (c *Counter) unplace(h uint64) {
	mask := uint64(len(c.index) - 1)
	p := h & mask
	for {
		s := c.index[p]
		if s == 0 {
			return // not reached: every entry is placed
		}
		if s>>32 == h>>32 && c.entry(int(uint32(s))-1).hash == h {
			break
		}
		p = (p + 1) & mask
	}
	hole := p
	for p = (p + 1) & mask; c.index[p] != 0; p = (p + 1) & mask {
		home := c.entry(int(uint32(c.index[p]))-1).hash & mask
		if (p-home)&mask >= (p-hole)&mask {
			c.index[hole] = c.index[p]
			hole = p
		}
	}
	c.index[hole] = 0
}
