package resp

// phase is the part of a request that comes next.
type phase uint8

const (
	phaseIdle  phase = iota // between requests
	phaseArray              // in a "*" header
	phaseBulk               // in a "$" header
	phaseBody               // in an argument and the two bytes behind it
	phaseLine               // in an inline command, before its end of line
	phaseWords              // handing out an inline command
	phaseStart              // in the first bytes of a connection: see start.go
	phaseProxy              // in a PROXY v2 header
)

// frame is the state of one request. It has a fixed size whatever the request
// declares.
type frame struct {
	phase   phase
	flags   RequestFlags
	dollar  bool // the "$" of the header was seen
	want    bool // the current argument is the name, a key or an option
	subname bool // argument 1 completes the command
	named   bool // the command is known
	damaged bool // a hole took a key, an option or the name
	cmd     CommandID
	argc    int32
	arg     int32 // current argument
	h       header
	rest    int64 // bytes to come of the argument, with the two behind it
	size    int64 // length of the argument
	bytes   int64 // bytes of the request so far
	x       extract
}

// reset makes ready for the next request. d.slot stays for its buffer.
func (d *Decoder) reset() {
	d.f.phase = phaseIdle
	d.f.flags = 0
	d.f.want, d.f.subname, d.f.named, d.f.damaged = false, false, false, false
	d.f.cmd = CommandUnknown
	d.f.arg = 0
	d.f.bytes = 0
	d.f.x.next = noArg
	d.nkeys = 0
	if d.slot != nil {
		d.slot.buf = d.slot.buf[:0]
		d.slot.piece = d.slot.piece[:0]
		d.slot.keys = d.slot.keys[:0]
	}
}

// step decodes up to the next request, or part of one, and returns true; at
// the end of the bytes it saves what is unfinished and returns false.
func (d *Decoder) step(r *Request) bool {
	if d.f.phase == phaseIdle {
		d.nkeys = 0
	}
	for {
		switch d.f.phase {
		case phaseIdle:
			if d.p >= len(d.b) {
				if d.refill() {
					continue
				}
				d.idle()
				return false
			}
			if d.b[d.p] == '*' {
				if q := d.whole(r, d.b, d.p); q != 0 {
					d.p = q
					if d.after(r) {
						return true
					}
					break
				}
				d.reset()
				d.f.phase = phaseArray
				d.f.h = header{}
				d.f.bytes = 1
				d.p++
				break
			}
			d.reset()
			d.f.phase = phaseLine
		case phaseBody:
			if d.f.rest == 0 {
				if d.endArgument(r) && d.after(r) {
					return true
				}
				break
			}
			if d.p >= len(d.b) {
				if d.refill() {
					continue
				}
				return d.pause(r)
			}
			if d.body(r) {
				return true
			}
		case phaseWords:
			if d.words(r) && d.after(r) {
				return true
			}
		default:
			if d.p >= len(d.b) {
				if d.refill() {
					continue
				}
				return d.pause(r)
			}
			d.advance()
		}
		if d.b == nil {
			return false // the connection was given up
		}
	}
}

// refill goes on with the bytes behind those that were kept from earlier.
func (d *Decoder) refill() bool {
	if d.more == nil {
		return false
	}
	d.b, d.p, d.more = d.more, 0, nil
	return true
}

// idle ends a Feed between two requests.
func (d *Decoder) idle() {
	d.parts.drop(d.c.part)
	d.c.part = ref{}
	d.slot = nil
	d.b = nil
	d.c = nil
}

// advance takes bytes of a header, an inline line or the start of a connection.
func (d *Decoder) advance() {
	b := d.b[d.p:]
	switch d.f.phase {
	case phaseArray:
		n, done := d.f.h.read(b)
		d.p += n
		d.f.bytes += int64(n)
		if done {
			d.arrayHeader()
		}
	case phaseBulk:
		if d.f.h == (header{}) && !d.f.dollar {
			if b[0] != '$' {
				d.stop(ReasonExpectedBulk)
				return
			}
			d.f.dollar = true
			d.p++
			d.f.bytes++
			return
		}
		n, done := d.f.h.read(b)
		d.p += n
		d.f.bytes += int64(n)
		if done {
			d.bulkHeader()
		}
	case phaseLine:
		d.readLine(b)
	}
}

func (d *Decoder) arrayHeader() {
	n, ok := d.f.h.value()
	switch {
	case !ok || n > maxArgs:
		d.stop(ReasonArrayCount)
	case n <= 0:
		d.reset() // the server takes it for no request and says nothing
	default:
		d.f.argc = int32(n)
		d.nextArgument()
	}
}

func (d *Decoder) nextArgument() {
	d.f.phase = phaseBulk
	d.f.h = header{}
	d.f.dollar = false
}

func (d *Decoder) bulkHeader() {
	n, ok := d.f.h.value()
	if !ok || n < 0 || n > maxBulk {
		d.stop(ReasonBulkLength)
		return
	}
	d.f.phase = phaseBody
	d.f.size = n
	d.f.rest = n + 2
	d.f.want = d.f.arg == 0 || d.f.subname || d.f.arg == d.f.x.next
	if d.slot != nil {
		d.slot.piece = d.slot.piece[:0]
	}
}

// body takes bytes of an argument and of the two bytes behind it, which the
// server does not look at either. It returns true when it hands out keys.
func (d *Decoder) body(r *Request) bool {
	f := &d.f
	b := d.b[d.p:]
	b = b[:min(int64(len(b)), f.rest)]
	if f.want {
		if d.nkeys == maxBatch && f.x.settled(&d.t.commands[f.cmd]) {
			d.part(r)
			return true
		}
		left := f.rest - 2
		arg := b[:max(0, min(int64(len(b)), left))]
		pieces := left < f.size
		if int64(len(arg)) < left || pieces {
			if !d.keep(arg, MaxKeyBytes) {
				return false
			}
		}
		if int64(len(arg)) == left {
			f.want = false
			if pieces {
				d.joined()
			} else {
				d.off = 0
				d.given(arg[:min(len(arg), MaxKeyBytes)])
			}
		}
	}
	d.p += len(b)
	f.rest -= int64(len(b))
	f.bytes += int64(len(b))
	return false
}

// endArgument goes on behind an argument; true when it was the last and r is
// filled in.
func (d *Decoder) endArgument(r *Request) bool {
	d.f.arg++
	if d.f.arg < d.f.argc {
		d.nextArgument()
		return false
	}
	d.f.phase = phaseIdle
	if d.f.damaged {
		d.stats.Damaged++
		d.reset()
		return false
	}
	d.fill(r)
	return true
}

func (d *Decoder) fill(r *Request) {
	r.Command = d.f.cmd
	r.Keys = d.keys[:d.nkeys]
	r.Bytes = d.f.bytes
	r.Args = int64(d.f.argc)
	r.Unseen = 0
	r.Flags = d.f.flags
}

// part hands out the keys so far and goes on with none.
func (d *Decoder) part(r *Request) {
	d.fill(r)
	r.Flags |= FlagContinued | FlagPart
	d.f.flags |= FlagPart
	d.nkeys = 0
}

// after does what the command of a finished request does to its connection;
// false when the request is no request at all.
func (d *Decoder) after(r *Request) bool {
	does := d.t.commands[r.Command].does
	if does == effectNone {
		return true
	}
	return d.effect(does)
}

func (d *Decoder) effect(does effect) bool {
	c := d.c
	switch does {
	case effectHTTP:
		d.stats.HTTP++
		d.stop(ReasonHTTP)
		return false
	case effectQuit:
		// What follows is never read by the server.
		d.stats.SkippedBytes += uint64(len(d.b) - d.p + len(d.more))
		d.p, d.more = len(d.b), nil
		if c.state != stateTrial {
			c.state = stateIgnored
		}
	case effectReplication:
		if c.flags&flagReplication == 0 {
			c.flags |= flagReplication
			d.stats.Replication++
		}
		d.unpair(c)
	case effectUnpaired:
		d.unpair(c)
	}
	return true
}
