package resp

import "encoding/binary"

// Limits of the requests that are held until their connection has proved that
// it was joined at the start of a request.
const (
	// maxHolds: connections on trial at the same time. At the start of a
	// capture all open connections are, until their second turn.
	maxHolds = 16384
	// maxHoldBytes bounds the held requests of all connections; the oldest
	// holds go first, their connections stay on trial.
	maxHoldBytes = 8 << 20
	// maxHold bounds those of one connection: a long pipeline. What is beyond
	// is dropped and counted.
	maxHold = 64 << 10
)

// hold is a connection on trial.
type hold struct {
	buf     []byte // held requests, see appendRequest
	at      int    // while they are handed out
	held    int64  // their number
	frames  int64  // requests of this turn
	replies int64  // replies since this turn began
	counter replies
	acked   int64 // bytes of the server that the client acknowledged since
	seen    int64 // bytes of the requests of this turn
	lost    int64 // client bytes of this turn that were not decoded
	odd     bool  // a command whose replies do not count: SUBSCRIBE, MONITOR
	blind   bool  // the turn began at the first segment seen: perhaps no turn at all
	// Over all turns of this trial.
	allFrames, allReplies int64
	open                  int8 // how much turns that prove nothing speak for it
}

type holds struct {
	pool[hold]
	bytes   int
	evicted uint64
}

func (hs *holds) take() (*hold, ref) {
	h, r := hs.alloc(maxHolds)
	if h == nil {
		hs.evicted++
		hs.drop(hs.oldest())
		h, r = hs.alloc(maxHolds)
	}
	*h = hold{buf: h.buf[:0]}
	return h, r
}

func (hs *holds) drop(r ref) {
	h := hs.release(r)
	if h == nil {
		return
	}
	if cap(h.buf) > keepBuffer || hs.bytes > maxHoldBytes/2 {
		hs.bytes -= cap(h.buf)
		h.buf = nil
	}
}

// hold keeps a request of a connection on trial.
func (d *Decoder) hold(r *Request) {
	h := d.holds.get(d.c.trial)
	if h == nil {
		d.stats.HeldDropped++
		return
	}
	if h.allFrames+h.frames == 0 && (r.Command == CommandUnknown || r.Flags&FlagWrongArity != 0) {
		// Where the first header was not whole in its segment, this is the
		// check that strict makes elsewhere.
		d.stop(ReasonDesync)
		return
	}
	if r.Flags&FlagContinued == 0 {
		h.frames++
		h.seen += r.Bytes
	}
	before := cap(h.buf)
	buf, ok := appendRequest(h.buf, r)
	if !ok {
		d.stats.HeldDropped++
		return
	}
	h.buf = buf
	h.held++
	d.holds.bytes += cap(h.buf) - before
	d.holds.touch(d.c.trial)
	for d.holds.bytes > maxHoldBytes {
		d.holds.evicted++
		d.holds.drop(d.holds.oldest())
	}
}

// appendRequest appends r to buf, or returns false when that exceeds maxHold.
func appendRequest(buf []byte, r *Request) ([]byte, bool) {
	n := 21
	for i := range r.Keys {
		n += 11 + len(r.Keys[i].Bytes)
	}
	if len(buf)+n > maxHold {
		return buf, false
	}
	le := binary.LittleEndian
	buf = le.AppendUint16(buf, uint16(r.Command))
	buf = append(buf, byte(r.Flags))
	buf = le.AppendUint64(buf, uint64(r.Bytes))
	buf = le.AppendUint64(buf, uint64(r.Args))
	buf = le.AppendUint16(buf, uint16(len(r.Keys)))
	for i := range r.Keys {
		k := &r.Keys[i]
		buf = append(buf, byte(k.Access))
		buf = le.AppendUint64(buf, uint64(k.Len))
		buf = le.AppendUint16(buf, uint16(len(k.Bytes)))
		buf = append(buf, k.Bytes...)
	}
	return buf, true
}

// nextHeld hands out the next request of the released hold; false at its end.
func (d *Decoder) nextHeld(r *Request) bool {
	h := d.holds.get(d.released)
	if h == nil || h.at == len(h.buf) {
		d.holds.drop(d.released)
		d.released = ref{}
		return false
	}
	le := binary.LittleEndian
	b := h.buf[h.at:]
	r.Command = CommandID(le.Uint16(b))
	r.Flags = RequestFlags(b[2]) | FlagHeld
	r.Bytes = int64(le.Uint64(b[3:]))
	r.Args = int64(le.Uint64(b[11:]))
	n := int(le.Uint16(b[19:]))
	p := 21
	for i := range n {
		size := int(le.Uint16(b[p+9:]))
		d.keys[i] = Key{
			Bytes:  b[p+11 : p+11+size],
			Len:    int64(le.Uint64(b[p+1:])),
			Access: Access(b[p]),
		}
		p += 11 + size
	}
	r.Keys = d.keys[:n]
	h.at += p
	d.count(r)
	return true
}
