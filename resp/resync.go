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

// maxDoubt is how many turns in a row may begin like a request while we believe
// to be inside a value, on a connection that was joined.
const maxDoubt = 3

// feedUnsure is Feed for connections that are not simply in sync.
func (d *Decoder) feedUnsure(c *Conn, b []byte, turn bool) {
	switch c.state {
	case stateStart:
		d.start(c, b)
		return
	case stateUnseen:
		switch what, _ := classify(b); what {
		case openingTLS:
			d.encrypted(c, len(b))
			return
		case openingProxy:
			// Nothing stands before such a header.
			c.state = stateStart
			d.start(c, b)
			return
		}
		// Nothing speaks against the first segment, so it may open a turn.
		c.state = stateSearching
		d.search(c, b, true)
		if h := d.holds.get(c.trial); h != nil {
			h.blind = true
		}
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
		d.missed(c, int64(len(b)))
		return
	}
	// A connection that goes on trial may begin less strictly than one that
	// is believed at once.
	if !d.strict(b) && (c.state == stateLost || !d.loose(b)) {
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
	case stateTrialLost:
		d.missed(c, max(n, 1))
		return
	default:
		return
	}
	p := d.parts.get(c.part)
	if p == nil || p.f.phase != phaseBody || n < 0 || n > p.f.rest {
		d.missed(c, max(n, 1))
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
	if d.sampling {
		// A packet by itself is no connection that went wrong.
		d.stats.SampledRefused++
		d.lose(c)
		return
	}
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
