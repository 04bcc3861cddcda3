package resp

import "unsafe"

// Limits of the unfinished requests of all connections together. At each of
// them the request that was touched least recently is given up: its connection
// waits for the next turn, and Stats.PartialsEvicted counts.
const (
	// maxPartials: one for each connection that is in the middle of a request
	// at the same time. Clients are there rarely, and for milliseconds;
	// attackers may stay.
	maxPartials = 16384
	// maxPartialBytes bounds keys, pieces of arguments and inline lines.
	maxPartialBytes = 8 << 20
	// keepBuffer is the largest buffer that a free slot retains for reuse.
	keepBuffer = 2048
	// maxSavedKeys and maxSavedBytes: a request that has found more keys when
	// its bytes pause hands them out instead of having them copied.
	maxSavedKeys  = 64
	maxSavedBytes = 8192
)

// savedKey is a key in the buffer of a partial.
type savedKey struct {
	off    uint32
	n      uint16
	access Access
	size   int64
}

// partial is a request that has not ended, between two Feeds.
type partial struct {
	f     frame
	keys  []savedKey
	buf   []byte // of the keys
	piece []byte // of the argument, inline line or start that is being read
}

// heap returns the bytes that the partial keeps from the heap.
func (p *partial) heap() int {
	return cap(p.buf) + cap(p.piece) + cap(p.keys)*int(unsafe.Sizeof(savedKey{}))
}

// partials is the pool of unfinished requests.
type partials struct {
	pool[partial]
	bytes   int // heap of all slots, in use or free
	evicted uint64
}

func (ps *partials) take() (*partial, ref) {
	p, r := ps.alloc(maxPartials)
	if p == nil {
		ps.evict()
		p, r = ps.alloc(maxPartials)
	}
	p.f = frame{}
	p.buf, p.piece, p.keys = p.buf[:0], p.piece[:0], p.keys[:0]
	return p, r
}

// drop gives the slot of r back; r may name none.
func (ps *partials) drop(r ref) {
	p := ps.release(r)
	if p == nil {
		return
	}
	// Free slots keep at most half of the limit, so that evicting slots in use
	// always gets below it.
	if h := p.heap(); h > keepBuffer || ps.bytes > maxPartialBytes/2 {
		ps.bytes -= h
		p.buf, p.piece, p.keys = nil, nil, nil
	}
}

func (ps *partials) evict() {
	ps.evicted++
	ps.drop(ps.oldest())
}

// charge accounts for what p, of r, has grown since its heap was before. It
// returns false when the limit took p itself.
func (ps *partials) charge(r ref, p *partial, before int) bool {
	ps.bytes += p.heap() - before
	ps.touch(r)
	for ps.bytes > maxPartialBytes {
		own := ps.oldest() == r
		ps.evict()
		if own {
			return false
		}
	}
	return true
}

// keep stores a piece of the current argument or line, up to limit bytes of
// it. It returns false when there was no room: the connection is lost.
func (d *Decoder) keep(b []byte, limit int) bool {
	if d.slot == nil {
		d.slot, d.c.part = d.parts.take()
	}
	b = b[:min(len(b), limit-len(d.slot.piece))]
	before := d.slot.heap()
	d.slot.piece = append(d.slot.piece, b...)
	if !d.parts.charge(d.c.part, d.slot, before) {
		d.lose(d.c)
		return false
	}
	return true
}

// pause ends a Feed within a request. It returns true when it hands out keys
// that it would otherwise have to copy.
func (d *Decoder) pause(r *Request) bool {
	if d.sampling {
		return false // endSample has the rest
	}
	if d.nkeys > 0 && d.bulky() && d.f.x.settled(&d.t.commands[d.f.cmd]) {
		d.part(r)
		return true
	}
	d.save()
	d.f.phase = phaseIdle // for the next connection
	d.b = nil
	d.c = nil
	d.slot = nil
	return false
}

// bulky reports whether the keys so far are too many to be copied.
func (d *Decoder) bulky() bool {
	if d.nkeys > maxSavedKeys {
		return true
	}
	n := 0
	for i := range d.keys[:d.nkeys] {
		n += len(d.keys[i].Bytes)
	}
	return n > maxSavedBytes
}

// save stores the unfinished request in a slot, with copies of the keys that
// lie in the fed bytes.
func (d *Decoder) save() {
	if d.slot == nil {
		d.slot, d.c.part = d.parts.take()
	}
	p := d.slot
	before := p.heap()
	p.f = d.f
	if len(p.buf) > 2*maxSavedBytes {
		// Keys that were replaced by later ones (STORE a STORE b) leave gaps.
		p.buf = nil
		clear(d.saved[:d.nkeys])
	}
	p.keys = p.keys[:0]
	for i := range d.keys[:d.nkeys] {
		k := &d.keys[i]
		off := d.saved[i]
		if off == 0 {
			off = uint32(len(p.buf)) + 1
			p.buf = append(p.buf, k.Bytes...)
		}
		p.keys = append(p.keys, savedKey{off: off - 1, n: uint16(len(k.Bytes)), access: k.Access, size: k.Len})
	}
	if !d.parts.charge(d.c.part, p, before) {
		d.lose(d.c)
	}
}

// load makes p the request being read.
func (d *Decoder) load(p *partial) {
	d.slot = p
	d.f = p.f
	d.nkeys = len(p.keys)
	for i, k := range p.keys {
		d.keys[i] = Key{Bytes: p.buf[k.off : k.off+uint32(k.n)], Len: k.size, Access: k.access}
		d.saved[i] = k.off + 1
	}
}

// addKey appends a key; false when there is no room, which happens only while
// later arguments may still take keys back (see settled).
func (d *Decoder) addKey(b []byte, n int64, a Access) bool {
	if d.nkeys == maxBatch {
		d.stats.KeysDropped++
		return false
	}
	d.nkeys++
	d.setKey(d.nkeys-1, b, n, a)
	return true
}

func (d *Decoder) setKey(i int, b []byte, n int64, a Access) {
	d.keys[i] = Key{Bytes: b, Len: n, Access: a}
	d.saved[i] = d.off
}
