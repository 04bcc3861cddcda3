package resp

// Limits of the trial.
const (
	// A turn whose requests or replies cannot be counted proves nothing, but
	// after some of them, each with a strict start, the connection is trusted:
	// enough is the sum, likely what a turn adds whose parts fit together, and
	// unlikely what it adds when for its size it has too few replies.
	enough   = 12
	likely   = 4
	unlikely = 1
	// unevenness is how many requests may seem to share a reply before that
	// is unlikely: what was not decoded may have been one large value.
	unevenness = 8
	// sureFrames requests answered one by one are proof before the turn ends.
	sureFrames = 4
	// manyFrames requests with nearly as many replies are proof even when no
	// single turn is even: clients that never wait have replies under way at
	// any time. Inside a value there are many requests and few replies.
	manyFrames = 16
	// minReply is the size of the smallest reply, the null of RESP3.
	minReply = 3
)

// try begins a trial with the turn that starts now.
func (d *Decoder) try(c *Conn) {
	if d.holds.get(c.trial) == nil {
		_, c.trial = d.holds.take()
	}
	c.state = stateTrial
}

// turn judges the turn that ended, and goes on with b, which opens the next.
func (d *Decoder) turn(c *Conn, b []byte) {
	inside := d.parts.get(c.part) != nil
	strict := d.strict(b) || (!inside && d.loose(b))
	h := d.holds.get(c.trial)
	if h != nil && h.blind && h.lost > 0 {
		// Nothing said that its first turn began where we began, and parts of
		// it are missing that may have spoken against it.
		d.forget(h)
	}
	good := true
	switch {
	case inside && !strict:
		// A long request that was answered in part: nothing to judge.
	case inside:
		// By our count these are bytes of an argument. Two in a row that look
		// like a start are one too many.
		d.condemn(c)
		d.try(c)
	case h == nil:
		// Its requests were given up at a limit; that it began right is known.
		if good = strict; strict && c.flags&flagReplies == 0 {
			d.trust(c)
		} else if strict {
			d.try(c)
		}
	case c.flags&flagReplies == 0:
		if good = strict; strict {
			d.judgeSize(c, h)
		}
	default:
		good = d.judge(c, h, strict)
	}
	if good {
		d.enter(c, b)
		return
	}
	d.condemn(c)
	d.stats.ResyncsRefused++
	d.stats.SkippedBytes += uint64(len(b))
}

// judgeSize judges a turn whose replies are not captured: a second turn that
// begins with a request is the proof, unless the replies to the first cannot
// have fitted into what the client acknowledged.
func (d *Decoder) judgeSize(c *Conn, h *hold) {
	switch {
	case c.flags&flagAcked == 0 || h.odd:
	case h.acked < h.frames*minReply:
		d.forget(h)
		h.restart()
		return
	case h.lost > 0 && !d.ponder(h, h.acked/minReply):
		h.restart()
		return
	}
	d.trust(c)
}

// judge compares requests and replies of the turn that ended; false when the
// next one is not worth a look.
func (d *Decoder) judge(c *Conn, h *hold, strict bool) bool {
	h.allFrames += h.frames
	h.allReplies += h.replies
	counted := !h.odd && !h.counter.broken
	switch {
	case counted && h.lost == 0 && h.frames == h.replies && h.frames > 0, h.even():
		d.trust(c)
		return true
	case !strict:
		return false
	case counted && (h.lost == 0 || h.replies < h.frames):
		d.forget(h)
	case d.ponder(h, h.replies):
		d.trust(c)
		return true
	}
	h.restart()
	return true
}

// ponder weighs a turn that cannot be counted, given about how many replies it
// had; true when all such turns are enough.
func (d *Decoder) ponder(h *hold, replies int64) bool {
	about := h.frames
	if h.seen > 0 {
		about += h.frames * h.lost / h.seen
	}
	if replies*unevenness < about && !h.odd && !h.counter.broken {
		h.open += unlikely
		d.forget(h)
	} else {
		h.open += likely
	}
	return h.open >= enough
}

// restart begins to count for another turn.
func (h *hold) restart() {
	h.frames, h.replies, h.acked = 0, 0, 0
	h.seen, h.lost = 0, 0
	h.odd, h.blind = false, false
	h.counter = replies{}
}

// even reports whether requests and replies of all turns are about as many.
func (h *hold) even() bool {
	diff := h.allFrames - h.allReplies
	return h.allFrames >= manyFrames && max(diff, -diff)*4 <= h.allFrames
}

// trust ends the trial: held requests are handed out.
func (d *Decoder) trust(c *Conn) {
	d.stats.Resyncs++
	c.state = stateSynced
	c.flags |= flagJoined
	d.released = c.trial
	c.trial = ref{}
}

// forget drops what h holds.
func (d *Decoder) forget(h *hold) {
	d.stats.HeldDropped += uint64(h.held)
	h.buf = h.buf[:0]
	h.held = 0
}

// condemn ends the trial: held requests are dropped, the connection waits.
func (d *Decoder) condemn(c *Conn) {
	if h := d.holds.get(c.trial); h != nil {
		d.forget(h)
	}
	d.holds.drop(c.trial)
	c.trial = ref{}
	d.parts.drop(c.part)
	c.part = ref{}
	c.state = stateSearching
}

// lastVerdict decides about the held requests of a connection that ends.
func (d *Decoder) lastVerdict(c *Conn) {
	h := d.holds.get(c.trial)
	if h == nil || h.held == 0 {
		return
	}
	diff := h.frames - h.replies
	good := true
	switch {
	case h.blind && h.lost > 0:
		good = false
	case c.flags&flagReplies == 0:
		// The last replies are never acknowledged by a request.
		good = h.acked == 0 || h.acked >= h.frames*minReply
	case h.odd, h.lost > 0, h.counter.broken:
		good = max(diff, -diff) <= max(2, h.frames/2)
	default:
		good = diff == 0
	}
	if !good {
		d.forget(h)
		return
	}
	d.trust(c)
}

// Reply takes server bytes of a connection, wire of which were on the wire
// and b captured; bytes that were not captured at all are b nil, with wire 0
// when nobody knows how many. It is needed
// only while the connection is not trusted: it returns false when no further
// replies are wanted, for as long as the connection lasts.
func (d *Decoder) Reply(c *Conn, b []byte, wire int) (want bool) {
	d.drain()
	if c.trusted() {
		return false
	}
	if len(b) > 0 {
		c.flags |= flagReplies
	}
	if c.state != stateTrial && c.state != stateTrialLost {
		return true
	}
	h := d.holds.get(c.trial)
	if h == nil {
		return true
	}
	if len(b) == 0 && wire <= 0 {
		h.counter.broken = true
	}
	h.replies += h.counter.feed(b, int64(wire))
	if c.state == stateTrial && c.part.slot == 0 && h.lost == 0 && !h.odd && !h.counter.broken &&
		h.frames >= sureFrames && h.frames == h.replies {
		d.trust(c)
		return false
	}
	return true
}

// Acked takes the number of server bytes that the client's next segment
// acknowledges beyond those before, where that is known. Called before Feed, it
// tells much about a connection on trial even when no reply is captured: the
// replies of forty requests do not fit into five bytes.
func (d *Decoder) Acked(c *Conn, n uint32) {
	if c.trusted() {
		return
	}
	c.flags |= flagAcked
	if h := d.holds.get(c.trial); h != nil {
		h.acked += int64(n)
	}
}

// unpair notes that the replies of c do not count its requests.
func (d *Decoder) unpair(c *Conn) {
	if h := d.holds.get(c.trial); h != nil {
		h.odd = true
	}
}

// missed notes that n client bytes of the turn are not decoded.
func (d *Decoder) missed(c *Conn, n int64) {
	if h := d.holds.get(c.trial); h != nil {
		h.lost += n
	}
}
