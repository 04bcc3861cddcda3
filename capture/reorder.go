package capture

// Out-of-order client bytes wait in pages of a fixed size, so that the memory
// of a segment does not depend on what it declares and a million one-byte
// segments cannot take more than the pages there are.
const (
	// pageBytes holds what a live capture keeps of a segment (snap length 512)
	// and half of a full-size one.
	pageBytes = 1024
	// DefaultMaxBuffered bounds the bytes that wait in all flows together. At
	// 1 Gbit/s of requests it is 130 ms of one lost packet in every flow.
	DefaultMaxBuffered = 16 << 20
	// maxFlowPages bounds one flow: 256 KiB, the window that most Redis
	// clients are given.
	maxFlowPages = 256
	// maxPages is what a page number can address.
	maxPages = 1<<16 - 2
	// maxHoles bounds the flows that wait at once.
	maxHoles = 4096

	pagesPerChunk = 64
)

// page is the header of one page: a run of client bytes of one segment, and
// how many bytes behind it the snap length cut off.
type page struct {
	seq     uint32
	ack     uint32 // acknowledgement number of its segment
	cut     uint32 // bytes on the wire after the captured ones
	packets uint32 // hole.packets when it came
	t       int64  // when it came
	n       uint16 // captured bytes
	next    uint16 // 1 + index of the next page by seq
	turn    bool   // the server's acknowledgement proved a turn when it came
}

func (p *page) end() uint32 { return p.seq + uint32(p.n) + p.cut }

// hole is a flow that waits for missing bytes at flow.next.
type hole struct {
	client     [16]byte
	clientPort uint16
	slot       int    // of the flow
	head, tail uint16 // 1 + page indexes, by seq; 0 when only a FIN waits
	count      int    // pages
	packets    uint32 // packets of the connection since the hole was made
	base       uint32 // packets when next last moved on by itself
	baseT      int64  // time of that
	finSeq     uint32 // sequence number of a FIN that waits, when fin
	fin        bool
	prev, next uint16 // all holes, oldest first
}

// reorderBuffer owns the pages and holes of all flows. Both grow on demand, are
// reused and never shrink.
type reorderBuffer struct {
	pages    []page
	chunks   [][]byte // page bytes, pagesPerChunk pages each
	freePage uint16
	maxPages int
	inUse    int

	holes       []hole
	freeHole    uint16
	first, last uint16
}

func (r *reorderBuffer) data(i uint16) []byte {
	at := int(i-1) % pagesPerChunk * pageBytes
	return r.chunks[int(i-1)/pagesPerChunk][at : at+pageBytes]
}

func (r *reorderBuffer) page(i uint16) *page { return &r.pages[i-1] }
func (r *reorderBuffer) hole(i uint16) *hole { return &r.holes[i-1] }

// newPage returns 1 + the index of a free page, or 0 when the limit is reached.
func (r *reorderBuffer) newPage() uint16 {
	if i := r.freePage; i != 0 {
		r.freePage = r.page(i).next
		r.inUse++
		return i
	}
	if len(r.pages) >= r.maxPages {
		return 0
	}
	if len(r.pages)%pagesPerChunk == 0 {
		r.chunks = append(r.chunks, make([]byte, pagesPerChunk*pageBytes))
	}
	r.pages = append(r.pages, page{})
	r.inUse++
	return uint16(len(r.pages))
}

func (r *reorderBuffer) release(i uint16) {
	*r.page(i) = page{next: r.freePage}
	r.freePage = i
	r.inUse--
}

// newHole appends a hole to the list and returns 1 + its index, or 0 when the
// limit is reached.
func (r *reorderBuffer) newHole() uint16 {
	i := r.freeHole
	switch {
	case i != 0:
		r.freeHole = r.hole(i).next
	case len(r.holes) >= maxHoles:
		return 0
	default:
		r.holes = append(r.holes, hole{})
		i = uint16(len(r.holes))
	}
	*r.hole(i) = hole{prev: r.last}
	if r.last != 0 {
		r.hole(r.last).next = i
	} else {
		r.first = i
	}
	r.last = i
	return i
}

// freeHoleAt drops a hole and the pages it still has.
func (r *reorderBuffer) freeHoleAt(i uint16) {
	h := r.hole(i)
	for p := h.head; p != 0; {
		next := r.page(p).next
		r.release(p)
		p = next
	}
	if h.prev != 0 {
		r.hole(h.prev).next = h.next
	} else {
		r.first = h.next
	}
	if h.next != 0 {
		r.hole(h.next).prev = h.prev
	} else {
		r.last = h.prev
	}
	*h = hole{next: r.freeHole}
	r.freeHole = i
}

// piece is a part of a segment on its way into the buffer.
type piece struct {
	seq  uint32
	b    []byte // captured bytes
	wire uint32 // length on the wire, >= len(b)
	ack  uint32
	t    int64
	turn bool
}

// cutFront drops the first n bytes.
func (p *piece) cutFront(n uint32) {
	p.seq += n
	p.wire -= n
	p.b = p.b[min(int(n), len(p.b)):]
	p.turn = false
}

// first returns the first n bytes as a piece of their own.
func (p *piece) first(n uint32) piece {
	f := *p
	f.wire = n
	f.b = p.b[:min(int(n), len(p.b))]
	return f
}

// insert puts the parts of p that are not in h yet into it; bytes that are
// there already win. next is the flow's next byte: everything is ordered by the
// distance from it. It returns false when pages ran out; what went in stays,
// and the call can be repeated after pages were freed.
func (r *reorderBuffer) insert(h *hole, p piece, next uint32) bool {
	before := uint16(0) // page before the place in hand
	if h.tail != 0 && p.seq-next >= r.page(h.tail).end()-next {
		before = h.tail // the common case: later than everything there
	}
	for p.wire > 0 {
		at := h.head
		if before != 0 {
			at = r.page(before).next
		}
		if at == 0 {
			return r.place(h, before, p)
		}
		if room := r.page(at).seq - p.seq; int32(room) > 0 {
			part := p.first(min(room, p.wire))
			if !r.place(h, before, part) {
				return false
			}
			p.cutFront(part.wire)
		}
		if over := r.page(at).end() - p.seq; int32(over) > 0 {
			p.cutFront(min(over, p.wire))
		}
		before = at
	}
	return true
}

// place appends p as one or more pages after page before (0: at the front).
func (r *reorderBuffer) place(h *hole, before uint16, p piece) bool {
	for p.wire > 0 {
		if before != 0 && r.extend(before, &p) {
			continue
		}
		if h.count >= maxFlowPages {
			return false
		}
		i := r.newPage()
		if i == 0 {
			return false
		}
		n := copy(r.data(i), p.b)
		g := r.page(i)
		*g = page{seq: p.seq, ack: p.ack, packets: h.packets, t: p.t, n: uint16(n), turn: p.turn}
		p.cutFront(uint32(n))
		if len(p.b) == 0 {
			g.cut = p.wire
			p.wire = 0
		}
		r.linkPage(h, before, i)
		before = i
	}
	return true
}

// extend adds the front of p to page i when it follows directly and carries the
// same acknowledgement number, so that one-byte segments share pages. It
// reports whether p became shorter.
func (r *reorderBuffer) extend(i uint16, p *piece) bool {
	g := r.page(i)
	if g.end() != p.seq || g.ack != p.ack || p.turn {
		return false
	}
	if len(p.b) == 0 {
		g.cut += p.wire
		p.wire = 0
		return true
	}
	if g.cut != 0 || g.n == pageBytes {
		return false
	}
	n := copy(r.data(i)[g.n:], p.b)
	g.n += uint16(n)
	p.cutFront(uint32(n))
	return true
}

func (r *reorderBuffer) linkPage(h *hole, before, i uint16) {
	g := r.page(i)
	if before == 0 {
		g.next, h.head = h.head, i
	} else {
		b := r.page(before)
		g.next, b.next = b.next, i
	}
	if g.next == 0 {
		h.tail = i
	}
	h.count++
}

// popHead removes the first page of h from the list; the caller releases it
// after use.
func (r *reorderBuffer) popHead(h *hole) uint16 {
	i := h.head
	h.head = r.page(i).next
	if h.head == 0 {
		h.tail = 0
	}
	h.count--
	return i
}
