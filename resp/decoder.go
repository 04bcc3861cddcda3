package resp

// MaxKeyBytes is the most of a key that is kept: longer keys are known by
// their first MaxKeyBytes bytes and their length. Redis allows 512 MiB; keys
// beyond some hundred bytes are accidents.
const MaxKeyBytes = 1024

// maxBatch is the most keys that one Request holds. More are handed out in
// parts: see FlagContinued.
const maxBatch = 256

// Config configures a Decoder. The zero value is the built-in table alone.
type Config struct {
	// Extra rows, from ParseRows, replace or add to the built-in table: this
	// teaches module commands and those renamed with rename-command.
	Extra []Row
}

// RequestFlags say more about a Request: a set of bits.
type RequestFlags uint8

// The bits of RequestFlags.
const (
	// FlagInline: the request was a line of text, not an array.
	FlagInline RequestFlags = 1 << iota
	// FlagWrongArity: the server rejects it for its number of arguments; it
	// has no keys.
	FlagWrongArity
	// FlagPart: one of several parts of a request with many keys. The keys of
	// each part count, the request counts once, with its last part. Args is
	// right in each part, Bytes in the last. Requests of other connections may
	// come in between; when the connection ends within the request no last
	// part follows.
	FlagPart
	// FlagContinued: a part that is not the last.
	FlagContinued
	// FlagCut: all keys are there but the end of the request was not
	// captured; Bytes is what is known.
	FlagCut
	// FlagHeld: the request was seen earlier and was held until the
	// connection had proved itself.
	FlagHeld
)

// Request is one request of a client, or a part of one. It holds no argument
// but keys: values, scripts and passwords never leave the decoder.
type Request struct {
	// Command is the row of the table; subcommands have ids of their own.
	Command CommandID
	// Keys are valid until the next call of Next or Feed.
	Keys []Key
	// Bytes is the size on the wire with headers and values, known from the
	// headers, so it is right for values that were not captured too.
	Bytes int64
	// Args is the number of arguments with the command name.
	Args int64
	// Unseen is how many keys the request has behind the packet, only after
	// FeedSampled. It is what the request announces: a hostile one, anything.
	Unseen int64
	Flags  RequestFlags
}

// Key is one key argument of a request.
type Key struct {
	// Bytes is the key, or the first MaxKeyBytes of a longer one. It is a
	// slice of the fed bytes where possible.
	Bytes []byte
	// Len is the full length.
	Len    int64
	Access Access
}

// Decoder decodes the requests of any number of connections. It belongs to one
// goroutine. Each of Open, Feed, Skip, Reply and Close is followed by calls of
// Next until it returns false.
type Decoder struct {
	t     *table
	stats Stats
	parts partials
	holds holds

	// The connection and bytes of the last Feed.
	c    *Conn
	b    []byte // b[p:] is to be decoded
	p    int
	more []byte // to be decoded after b: see start.go

	// The request being read. Its partial, if it has one, is slot.
	f     frame
	slot  *partial
	nkeys int
	off   uint32 // 1 + offset of the current argument in slot.buf, or 0
	// inline line being split; its arguments are decoded into text where they
	// are quoted.
	line []byte
	text []byte
	// released is a hold whose requests are to be handed out.
	released ref
	sampling bool // the bytes are those of one packet alone
	sample   Conn
	beyond   int64 // see SampledBeyond
	cut      bool  // the request in f is to be handed out: a hole took its end

	keys [maxBatch]Key
	// saved[i] is 1 + the offset of keys[i] in slot.buf, or 0.
	saved [maxBatch]uint32
	first [maxStart + 1]byte
}

// NewDecoder returns a decoder with an empty pool.
func NewDecoder(cfg Config) *Decoder {
	return &Decoder{t: newTable(cfg.Extra)}
}

// CommandName returns the name of a command, upper case, subcommands as
// "CONFIG GET", and "OTHER" for CommandUnknown.
func (d *Decoder) CommandName(id CommandID) string {
	if int(id) >= len(d.t.commands) {
		id = CommandUnknown
	}
	return d.t.commands[id].name
}

// CommandFlags returns the published flags of a command: whether it writes says
// CommandWrite. 0 for CommandUnknown.
func (d *Decoder) CommandFlags(id CommandID) CommandFlags {
	if int(id) >= len(d.t.commands) {
		return 0
	}
	return d.t.commands[id].flags
}

// NumCommands returns the number of command ids, CommandUnknown included: ids
// are below it.
func (d *Decoder) NumCommands() int { return len(d.t.commands) }

// Open begins a connection. With syn its start was seen: the first byte fed is
// the first byte that the client sent.
func (d *Decoder) Open(c *Conn, syn bool) {
	d.drain()
	d.drop(c)
	*c = Conn{}
	if syn {
		c.state = stateStart
	}
}

// Close ends a connection: an unfinished request is dropped, requests held for
// proof are handed out by Next unless something spoke against them. c is as
// good as new afterwards, but with its start not seen.
func (d *Decoder) Close(c *Conn) {
	d.drain()
	if c.state == stateTrial || c.state == stateTrialLost {
		d.lastVerdict(c)
	}
	d.drop(c)
	*c = Conn{}
}

// drop releases what c has in the pools.
func (d *Decoder) drop(c *Conn) {
	d.parts.drop(c.part)
	c.part = ref{}
	d.holds.drop(c.trial)
	c.trial = ref{}
	if d.c == c {
		d.c = nil
		d.b, d.more = nil, nil
	}
	d.slot = nil
	d.reset()
}

// Feed takes client bytes that follow directly on those before; b stays in
// use until Next returns false. turn says that the server has spoken, and had
// acknowledged everything, since the client bytes before.
func (d *Decoder) Feed(c *Conn, b []byte, turn bool) {
	d.drain()
	if len(b) == 0 {
		return
	}
	if c.state == stateSynced && !(turn && c.flags&flagJoined != 0) {
		// The common case, first.
		if c.part.slot != 0 && !d.resume(c, b) {
			return
		}
		d.c, d.b, d.p = c, b, 0
		return
	}
	d.feedUnsure(c, b, turn)
}

// resume loads the unfinished request of c. False when b is used up: values
// pass by here.
func (d *Decoder) resume(c *Conn, b []byte) bool {
	p := d.parts.get(c.part)
	if p == nil {
		d.lose(c)
		d.stats.SkippedBytes += uint64(len(b))
		return false
	}
	if p.f.phase == phaseBody && !p.f.want && p.f.rest > int64(len(b)) {
		p.f.rest -= int64(len(b))
		p.f.bytes += int64(len(b))
		d.parts.touch(c.part)
		return false
	}
	d.load(p)
	return true
}

// Next stores the next request in r and returns true, or returns false when
// there is none in the bytes so far.
func (d *Decoder) Next(r *Request) bool {
	if d.released.slot != 0 {
		if d.nextHeld(r) {
			return true
		}
	}
	if d.cut {
		return d.nextCut(r)
	}
	for {
		if d.b == nil {
			return false
		}
		if !d.step(r) {
			return d.sampling && d.endSample(r)
		}
		if d.c.state != stateTrial {
			d.count(r)
			return true
		}
		d.hold(r)
	}
}

// nextCut hands out a request whose end fell into a hole.
func (d *Decoder) nextCut(r *Request) bool {
	d.cut = false
	d.fill(r)
	r.Flags |= FlagCut
	c := d.c
	if c.state == stateTrial {
		d.hold(r)
		d.lose(c)
		return false
	}
	d.lose(c) // keys stay where they are until the slot is used again
	d.count(r)
	return true
}

// drain decodes what the caller left undecoded: connections stay in sync even
// when Next was not called until it returned false.
func (d *Decoder) drain() {
	if d.b == nil && d.released.slot == 0 && !d.cut {
		return
	}
	var r Request
	for d.Next(&r) {
	}
}

// count keeps the statistics of a request that is handed out.
func (d *Decoder) count(r *Request) {
	s := &d.stats
	s.Accesses += uint64(len(r.Keys))
	if r.Flags&FlagContinued != 0 {
		return
	}
	s.Requests++
	if d.sampling {
		s.SampledRequestBytes += uint64(r.Bytes)
	}
	if r.Flags&(FlagInline|FlagWrongArity) != 0 {
		if r.Flags&FlagInline != 0 {
			s.Inline++
		}
		if r.Flags&FlagWrongArity != 0 {
			s.WrongArity++
		}
	}
	if r.Command == CommandUnknown {
		s.Unknown++
	}
	if len(r.Keys) == 0 && r.Flags&FlagPart == 0 {
		s.NoKey++
	}
}
