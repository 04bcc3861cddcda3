package resp

// Getting in sync without having seen the start of a connection, and after a
// hole. Values may hold the text of requests, so a place that looks like a
// request proves little. Three things are asked for:
//
//   - it is the first byte of a segment that opens a turn: the server has
//     spoken since, and had acknowledged everything before, so the client is
//     most likely not in the middle of a value;
//   - a whole plausible header stands there (strict);
//   - a connection that never was in sync holds its requests back until the
//     number of replies equals the number of requests of a turn, or, where
//     replies are not captured, until a second turn begins as well and the
//     client has acknowledged enough bytes for the replies.

// Limits of the trial.
const (
	// strictArgs is how many arguments of a first request are looked at.
	strictArgs = 16
	// openTurns is how many turns whose replies cannot be counted a trial may
	// take, each with a strict start, before the connection is trusted.
	openTurns = 3
	// sureFrames requests answered one by one are proof before the turn ends.
	sureFrames = 4
	// manyFrames requests with nearly as many replies are proof even when no
	// single turn is even: clients that never wait have replies under way at
	// any time. Inside a value there are many requests and few replies.
	manyFrames = 16
	// minReply is the size of the smallest reply, the null of RESP3.
	minReply = 3
	// maxDoubt is how many turns in a row may begin like a request while we
	// believe to be inside a value, on a connection that was joined.
	maxDoubt = 3
)

// feedUnsure is Feed for connections that are not simply in sync.
func (d *Decoder) feedUnsure(c *Conn, b []byte, turn bool) {
	switch c.state {
	case stateStart:
		d.start(c, b)
		return
	case stateUnseen:
		switch what, _ := classify(b); what {
		case openingTLS:
			d.encrypted(c)
			d.stats.EncryptedBytes += uint64(len(b))
			return
		case openingProxy:
			// Nothing stands before such a header.
			d.start(c, b)
			return
		}
		// Nothing speaks against the first segment, so it may open a turn.
		c.state = stateSearching
		d.search(c, b, true)
	case stateSearching, stateLost, stateTrialLost:
		d.search(c, b, turn)
	case stateTrial:
		if turn {
			d.turn(c, b)
			return
		}
		d.enter(c, b)
	case stateSynced:
		d.joinedTurn(c, b)
	case stateEncrypted:
		d.stats.EncryptedBytes += uint64(len(b))
	default:
		d.stats.SkippedBytes += uint64(len(b))
	}
}

// enter decodes b as what follows on the bytes before.
func (d *Decoder) enter(c *Conn, b []byte) {
	if c.part.slot != 0 && !d.resume(c, b) {
		return
	}
	d.c, d.b, d.p = c, b, 0
}

// search waits for a turn that begins with a request.
func (d *Decoder) search(c *Conn, b []byte, turn bool) {
	if !turn {
		d.stats.SkippedBytes += uint64(len(b))
		return
	}
	if !d.strict(b) {
		d.stats.ResyncsRefused++
		d.stats.SkippedBytes += uint64(len(b))
		if c.state == stateTrialLost {
			d.condemn(c)
		}
		return
	}
	switch c.state {
	case stateLost:
		// It was in sync before, which makes a wrong start unlikely.
		d.stats.Resyncs++
		c.state = stateSynced
		c.flags |= flagJoined
	case stateTrialLost:
		c.state = stateTrial
		d.turn(c, b)
		return
	default:
		d.try(c)
	}
	d.enter(c, b)
}

// try begins a trial with the turn that starts now.
func (d *Decoder) try(c *Conn) {
	if d.holds.get(c.trial) == nil {
		_, c.trial = d.holds.take()
	}
	c.state = stateTrial
}

// turn judges the turn that ended, and goes on with b, which opens the next.
func (d *Decoder) turn(c *Conn, b []byte) {
	strict := d.strict(b)
	inside := d.parts.get(c.part) != nil
	h := d.holds.get(c.trial)
	switch {
	case inside && !strict:
		// A long request that was answered in part: nothing to judge.
		d.enter(c, b)
		return
	case inside:
		// By our count these are bytes of an argument. Two in a row that look
		// like a start are one too many.
		d.condemn(c)
		d.try(c)
	case c.flags&flagReplies == 0:
		// Replies are not captured: the second turn is the proof.
		if !strict {
			d.reject(c, b)
			return
		}
		if h != nil && h.short(c) {
			d.forget(h)
			h.restart()
			break
		}
		d.trust(c)
	case h == nil:
		if !strict {
			d.reject(c, b)
			return
		}
		d.try(c)
	default:
		if !d.judge(c, h, strict) {
			d.reject(c, b)
			return
		}
	}
	d.enter(c, b)
}

// judge compares requests and replies of the turn that ended; false when the
// next one is not worth a look.
func (d *Decoder) judge(c *Conn, h *hold, strict bool) bool {
	known := !h.unknown && !h.counter.broken
	h.allFrames += h.frames
	h.allReplies += h.replies
	switch {
	case known && h.frames == h.replies && h.frames > 0, h.even():
		d.trust(c)
		return true
	case !strict:
		return false
	case known:
		d.forget(h)
	default:
		if h.open++; h.open >= openTurns {
			d.trust(c)
			return true
		}
	}
	h.restart()
	return true
}

// restart begins to count for another turn.
func (h *hold) restart() {
	h.frames, h.replies, h.acked = 0, 0, 0
	h.unknown = false
	h.counter = replies{}
}

// short reports whether the server cannot have answered the requests of the
// turn with the bytes that the client acknowledged.
func (h *hold) short(c *Conn) bool {
	return c.flags&flagAcked != 0 && !h.unknown && h.acked < h.frames*minReply
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

// reject ends the trial at a turn that does not begin like a request.
func (d *Decoder) reject(c *Conn, b []byte) {
	d.condemn(c)
	d.stats.ResyncsRefused++
	d.stats.SkippedBytes += uint64(len(b))
}

// lastVerdict decides about the held requests of a connection that ends.
func (d *Decoder) lastVerdict(c *Conn) {
	h := d.holds.get(c.trial)
	if h == nil || h.held == 0 {
		return
	}
	diff := h.frames - h.replies
	switch {
	case c.flags&flagReplies == 0:
		if h.acked > 0 && h.short(c) {
			d.forget(h)
			return
		}
	case !h.unknown && !h.counter.broken:
		if diff != 0 {
			d.forget(h)
			return
		}
	default:
		if max(diff, -diff) > max(2, h.frames/2) {
			d.forget(h)
			return
		}
	}
	d.trust(c)
}

// joinedTurn is a turn on a connection that was joined and is believed to be
// in sync. If it was joined inside a value, at text that announces a long
// argument, it would be lost for long: doubt mends that.
func (d *Decoder) joinedTurn(c *Conn, b []byte) {
	if d.parts.get(c.part) == nil || !d.strict(b) {
		c.doubt = 0
	} else if c.doubt++; c.doubt >= maxDoubt {
		c.doubt = 0
		d.parts.drop(c.part)
		c.part = ref{}
		d.stats.Resyncs++
	}
	d.enter(c, b)
}

// strict reports whether b begins with a request as clients send it: an array
// with every byte in its place as far as b goes, a command of the table and a
// number of arguments that fits it.
func (d *Decoder) strict(b []byte) bool {
	if len(b) == 0 || b[0] != '*' {
		return false
	}
	argc, p := size(b, 1)
	if p == 0 || argc == 0 || b[p-1] != '\n' {
		return false
	}
	var id CommandID
	for i := 0; i < argc && i < strictArgs; i++ {
		if i > 0 && p >= len(b) {
			break
		}
		n, q, whole := strictHeader(b, p)
		if q == 0 {
			return false
		}
		if !whole || q+n+2 > len(b) {
			if i == 0 {
				return false
			}
			break
		}
		if b[q+n] != '\r' || b[q+n+1] != '\n' {
			return false
		}
		switch i {
		case 0:
			id = d.t.find(b, q, n, CommandUnknown)
			if id == CommandUnknown || d.t.commands[id].does == effectHTTP {
				return false
			}
		case 1:
			if sub := d.t.find(b, q, n, id); sub != CommandUnknown && d.t.commands[id].container {
				id = sub
			}
		}
		p = q + n + 2
	}
	return d.t.commands[id].fits(int32(argc))
}

// strictHeader reads a "$" header at b[p:]: the length and the index behind
// it. q is 0 when it is none; whole is false when it goes on behind b.
func strictHeader(b []byte, p int) (n, q int, whole bool) {
	if p >= len(b) || b[p] != '$' {
		return 0, 0, false
	}
	n, q = size(b, p+1)
	if q != 0 {
		if b[q-1] != '\n' || n > maxBulk {
			return 0, 0, false
		}
		return n, q, true
	}
	// At the end of b it may be a header that goes on.
	if len(b)-p > 12 {
		return 0, 0, false
	}
	for _, c := range b[p+1:] {
		if (c < '0' || c > '9') && c != '\r' {
			return 0, 0, false
		}
	}
	return 0, len(b), false
}

// Reply takes server bytes of a connection, wire of which were on the wire
// and b captured; bytes that were not captured at all are b nil. It is needed
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
	h.replies += h.counter.feed(b, int64(wire))
	if c.state == stateTrial && c.part.slot == 0 && !h.unknown && !h.counter.broken &&
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
		h.unknown = true
	}
}

// Skip takes a hole of n client bytes that were not captured; n < 0 is a hole
// of unknown size. A hole inside an argument costs no more than the argument.
func (d *Decoder) Skip(c *Conn, n int64) {
	d.drain()
	if n == 0 {
		return
	}
	d.stats.Holes++
	d.stats.HoleBytes += uint64(max(n, 0))
	switch c.state {
	case stateStart, stateSynced, stateTrial:
	case stateUnseen:
		c.state = stateSearching
		return
	default:
		return
	}
	p := d.parts.get(c.part)
	if p == nil || p.f.phase != phaseBody || n < 0 || n > p.f.rest {
		d.hole(c, p)
		return
	}
	d.stats.HolesBridged++
	if p.f.want && p.f.rest > 2 && len(p.piece) < MaxKeyBytes {
		p.f.want = false
		p.f.damaged = true
	}
	p.f.rest -= n
	p.f.bytes += n
	d.load(p)
	d.c, d.b, d.p = c, d.first[:0], 0
}

// hole gives up the sync of c at a hole. A request all of whose keys are known
// is handed out: its bytes are known to go on.
func (d *Decoder) hole(c *Conn, p *partial) {
	if p != nil && p.f.phase >= phaseBulk && p.f.phase <= phaseBody && p.f.complete() {
		d.load(p)
		d.c = c
		d.cut = true
		return
	}
	d.lose(c)
}

// complete reports whether the command and all keys of the request are known.
func (f *frame) complete() bool {
	return f.named && !f.damaged && f.x.next == noArg
}

// lose gives up the sync of c, and with it the unfinished request.
func (d *Decoder) lose(c *Conn) {
	d.parts.drop(c.part)
	c.part = ref{}
	switch c.state {
	case stateTrial:
		c.state = stateTrialLost
		d.unpair(c)
	case stateTrialLost, stateSearching, stateUnseen:
	default:
		c.state = stateLost
	}
	d.slot = nil
	d.reset()
	d.b, d.more, d.c = nil, nil, nil
}

// stop ends the decoding of a connection for a reason.
func (d *Decoder) stop(why Reason) {
	c := d.c
	d.stats.Errors[why]++
	d.stats.SkippedBytes += uint64(len(d.b) - d.p + len(d.more))
	switch {
	case c.state == stateTrial:
		d.condemn(c)
	case c.flags&flagJoined != 0 && why != ReasonHTTP:
		// More likely we are wrong than the client.
		d.lose(c)
		return
	default:
		d.parts.drop(c.part)
		c.part = ref{}
		c.state = stateIgnored
	}
	d.slot = nil
	d.reset()
	d.b, d.more, d.c = nil, nil, nil
}
