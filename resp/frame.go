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
					continue
				}
				d.reset()
				d.f.phase = phaseArray
				d.f.h = header{}
				d.f.bytes = 1
				d.p++
				continue
			}
			d.reset()
			d.f.phase = phaseLine
		case phaseBody:
			if d.f.rest == 0 {
				if d.endArgument(r) && d.after(r) {
					return true
				}
				continue
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

// whole decodes a request that lies completely in b, from the "*" at b[p] on,
// and returns the index behind it. It returns 0, having changed nothing that
// reset does not mend, when the request goes on behind b or is not plain.
func (d *Decoder) whole(r *Request, b []byte, p int) int {
	argc, q := size(b, p+1)
	if q == 0 || argc == 0 {
		return 0
	}
	var (
		id     CommandID
		flags  RequestFlags
		cmd    *command
		nkeys  int
		next   int // next argument of interest
		single bool
		sub    bool // argument 1 completes the name
	)
	for i := 0; i < argc; i++ {
		if q >= len(b) || b[q] != '$' {
			return 0
		}
		var n int
		if q+3 < len(b) && b[q+2] == '\r' && b[q+1]-'0' <= 9 {
			n, q = int(b[q+1]-'0'), q+4
		} else if n, q = size(b, q+1); q == 0 {
			return 0
		}
		end := q + n
		if end+2 > len(b) {
			return 0
		}
		if i == next {
			if i == 0 {
				id = d.t.find(b, q, n, CommandUnknown)
				cmd = &d.t.commands[id]
				sub = cmd.container && argc > 1
				if next = 1; !sub {
					next, single, flags = d.locate(cmd, argc)
				}
			} else if sub {
				sub = false
				if s := d.t.find(b, q, n, id); s != CommandUnknown {
					id = s
					cmd = &d.t.commands[id]
				}
				next, single, flags = d.locate(cmd, argc)
			}
			if i == next {
				key := b[q:min(end, q+MaxKeyBytes)]
				if single {
					d.keys[0] = Key{Bytes: key, Len: int64(n), Access: cmd.access}
					nkeys, next = 1, noArg
				} else {
					if d.nkeys == maxBatch {
						return 0
					}
					d.argument(cmd, int32(i), int32(argc), key, int64(n))
					nkeys, next = d.nkeys, int(d.f.x.next)
				}
			}
		}
		q = end + 2
	}
	r.Command = id
	r.Keys = d.keys[:nkeys]
	r.Bytes = int64(q - p)
	r.Args = int64(argc)
	r.Flags = flags
	return q
}

// locate prepares the search for the keys of a request of argc arguments and
// returns the first argument of interest. single: it is the only key.
func (d *Decoder) locate(cmd *command, argc int) (next int, single bool, flags RequestFlags) {
	if !cmd.fits(int32(argc)) {
		return noArg, false, FlagWrongArity
	}
	if cmd.only > 0 {
		// Arity alone does not promise the argument for rows from a file.
		return int(cmd.only), true, 0
	}
	if len(cmd.specs) == 0 {
		return noArg, false, 0
	}
	d.nkeys = 0
	d.off = 0
	d.f.x.begin(cmd, int32(argc))
	return int(d.f.x.next), false, 0
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

// joined takes the argument whose pieces are in d.slot.piece. It is moved to
// where keys are kept, and away again when it is none.
func (d *Decoder) joined() {
	p := d.slot
	off := len(p.buf)
	before := p.heap()
	p.buf = append(p.buf, p.piece...)
	p.piece = p.piece[:0]
	d.off = uint32(off) + 1
	n := d.nkeys
	d.given(p.buf[off:])
	if d.nkeys == n && !d.holdsKey(d.off) {
		p.buf = p.buf[:off]
	}
	d.off = 0
	if !d.parts.charge(d.c.part, p, before) {
		d.lose(d.c)
	}
}

// holdsKey reports whether a key was replaced by the bytes at off.
func (d *Decoder) holdsKey(off uint32) bool {
	for i := range d.saved[:d.nkeys] {
		if d.saved[i] == off {
			return true
		}
	}
	return false
}

// given takes the current argument, of which b are the first bytes.
func (d *Decoder) given(b []byte) {
	f := &d.f
	if f.arg == 0 {
		f.cmd = d.t.find(b, 0, d.nameLen(b), CommandUnknown)
		if d.t.commands[f.cmd].container && f.argc > 1 {
			f.subname = true
			return
		}
		d.begin()
		return
	}
	if f.subname {
		f.subname = false
		if sub := d.t.find(b, 0, d.nameLen(b), f.cmd); sub != CommandUnknown {
			f.cmd = sub
		}
		d.begin()
	}
	if f.arg == f.x.next {
		d.argument(&d.t.commands[f.cmd], f.arg, f.argc, b, f.size)
	}
}

// nameLen is the length of b as a name: an argument of which only a prefix was
// kept is none.
func (d *Decoder) nameLen(b []byte) int {
	if d.f.size != int64(len(b)) {
		return 0
	}
	return len(b)
}

// begin starts the search for keys once the command is known.
func (d *Decoder) begin() {
	f := &d.f
	cmd := &d.t.commands[f.cmd]
	d.nkeys = 0
	f.named = true
	if !cmd.fits(f.argc) {
		f.flags |= FlagWrongArity
		f.x.next = noArg
		return
	}
	f.x.begin(cmd, f.argc)
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
