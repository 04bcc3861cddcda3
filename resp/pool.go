package resp

// pool is a bounded set of slots that are reused, ordered by last use. Slots
// are made on demand and kept.
type pool[T any] struct {
	slots       []*slot[T]
	free        []uint32
	first, last uint32 // least and most recently used; 1 + index, 0: none
	inUse       int
}

// maxSlots is the most that a ref can name.
const maxSlots = 1<<16 - 1

type slot[T any] struct {
	v          T
	gen        generation // of the current user; references of earlier ones differ
	prev, next uint32     // by last use; 1 + index
	used       bool
}

// get returns what r names, or nil when it is gone.
func (p *pool[T]) get(r ref) *T {
	if r.slot == 0 {
		return nil
	}
	s := p.slots[r.slot-1]
	if s.gen != r.gen || !s.used {
		return nil
	}
	return &s.v
}

// alloc returns a slot with what its last user left in it, or nil when limit
// slots are in use.
func (p *pool[T]) alloc(limit int) (*T, ref) {
	if len(p.free) == 0 {
		if len(p.slots) >= min(limit, maxSlots) {
			return nil, ref{}
		}
		p.slots = append(p.slots, new(slot[T]))
		p.free = append(p.free, uint32(len(p.slots)))
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s := p.slots[n-1]
	s.used = true
	p.inUse++
	p.link(n)
	return &s.v, ref{slot: uint16(n), gen: s.gen}
}

// release gives the slot of r back and returns its value, or nil when r names
// none any more.
func (p *pool[T]) release(r ref) *T {
	v := p.get(r)
	if v == nil {
		return nil
	}
	s := p.slots[r.slot-1]
	p.unlink(uint32(r.slot))
	s.used = false
	s.gen = s.gen.next()
	p.inUse--
	p.free = append(p.free, uint32(r.slot))
	return v
}

// oldest returns the slot that was touched least recently, the zero ref when
// none is in use.
func (p *pool[T]) oldest() ref {
	if p.first == 0 {
		return ref{}
	}
	return ref{slot: uint16(p.first), gen: p.slots[p.first-1].gen}
}

// touch marks the slot of r, which is in use, as used last.
func (p *pool[T]) touch(r ref) {
	if n := uint32(r.slot); p.last != n {
		p.unlink(n)
		p.link(n)
	}
}

func (p *pool[T]) link(n uint32) {
	s := p.slots[n-1]
	s.prev, s.next = p.last, 0
	if p.last != 0 {
		p.slots[p.last-1].next = n
	} else {
		p.first = n
	}
	p.last = n
}

func (p *pool[T]) unlink(n uint32) {
	s := p.slots[n-1]
	if s.prev != 0 {
		p.slots[s.prev-1].next = s.next
	} else {
		p.first = s.next
	}
	if s.next != 0 {
		p.slots[s.next-1].prev = s.prev
	} else {
		p.last = s.prev
	}
}
