package resp

// FeedSampled takes the payload of one packet by itself, for captures in which
// packets are picked at random so that no byte stream can be followed. It
// returns false when nothing of it is decoded; else it is followed by calls of
// Next, like Feed. b stays in use until Next returns false.
//
// A packet is decoded when it begins with a request (as strict says) and is
// requests to its end, of which the last may go on behind it. That one counts
// when its keys are known; of one with many keys, those in the packet are
// handed out and Request.Unseen says how many are not. So a request counts in
// the packet that holds its head, or not at all: one whose head stands behind
// the end of another in a packet is not seen, because only what was before
// could tell it from text inside a value.
//
// A value that holds requests as text, such that a packet begins with one and
// ends before the text does, cannot be told from requests by the packet alone.
func (d *Decoder) FeedSampled(b []byte) bool {
	d.drain()
	s := &d.stats
	s.SampledPackets++
	s.SampledBytes += uint64(len(b))
	if !d.strict(b) || !framed(b) {
		s.SampledRefused++
		return false
	}
	d.sample = Conn{state: stateSynced, flags: flagJoined}
	d.sampling = true
	d.beyond = 0
	d.c, d.b, d.p = &d.sample, b, 0
	return true
}

// RefuseSampled counts a packet that the caller knows to be no request.
func (d *Decoder) RefuseSampled(b []byte) {
	d.stats.SampledPackets++
	d.stats.SampledBytes += uint64(len(b))
	d.stats.SampledRefused++
}

// SampledBeyond returns how many bytes behind the packet the last request of
// FeedSampled announced: they are the rest of an argument. Valid after Next
// returned false.
func (d *Decoder) SampledBeyond() int64 { return d.beyond }

// framed reports whether b, which begins with a request, is requests to its
// end as clients send them, with every byte of the framing in its place.
func framed(b []byte) bool {
	for p := 0; p < len(b); {
		if b[p] != '*' {
			return false
		}
		argc, q := size(b, p+1)
		if q == 0 {
			return partOfNumber(b[p+1:])
		}
		if argc == 0 || b[q-1] != '\n' {
			return false
		}
		for i := 0; i < argc && q < len(b); i++ {
			n, r, whole := strictHeader(b, q)
			if r == 0 {
				return false
			}
			if !whole || n+2 > len(b)-r {
				return true
			}
			if b[r+n] != '\r' || b[r+n+1] != '\n' {
				return false
			}
			q = r + n + 2
		}
		p = q
	}
	return true
}

// endSample ends the packet. A request that goes on behind it is handed out
// when its keys are known, or some of them.
func (d *Decoder) endSample(r *Request) bool {
	found := d.cutSample(r)
	d.sampling = false
	return found
}

func (d *Decoder) cutSample(r *Request) bool {
	f := &d.f
	if d.b == nil || !f.named || f.damaged || f.phase != phaseBulk && f.phase != phaseBody {
		d.lose(&d.sample)
		return false
	}
	unseen := int64(0)
	if f.x.next != noArg {
		c := &d.t.commands[f.cmd]
		if !f.x.settled(c) || d.nkeys == 0 && f.flags&FlagPart == 0 {
			d.lose(&d.sample)
			return false
		}
		unseen = f.x.left(c)
	}
	d.fill(r)
	r.Flags |= FlagCut
	r.Unseen = unseen
	if f.phase == phaseBody {
		r.Bytes += f.rest
		d.beyond = f.rest
	}
	d.lose(&d.sample) // keys stay where they are until the slot is used again
	d.count(r)
	return true
}

// left is how many keys are still to come of a walk that is settled.
func (x *extract) left(c *command) int64 {
	n := int64(0)
	for i := range c.specs {
		if p := &x.place[i]; p.next != noArg && p.take && c.specs[i].step > 0 {
			n += int64((p.last-p.next)/c.specs[i].step) + 1
		}
	}
	return n
}
