package resp

// spec is a KeySpec made ready for the walk over the arguments.
type spec struct {
	kind     SpecKind
	access   Access
	lastWins bool
	half     bool
	several  bool
	instead  bool // keys after the word stand instead of those before it
	first    int32
	last     int32
	step     int32
	offset   int32
	word     string
	options  []option
}

// option is an option word that takes arguments. They are stepped over while
// another word is searched, since an argument may look like that word:
// "SORT k GET STORE STORE d" stores to d.
type option struct {
	word string
	args int32
}

// optionsOf are the options that may stand where the word is searched. They
// go by the word, not by the command, so that a renamed command needs nothing.
var optionsOf = []struct {
	word    string
	options []option
}{
	{"STREAMS", []option{{"GROUP", 2}, {"COUNT", 1}, {"BLOCK", 1}, {"CLAIM", 1}}},
	{"STORE", []option{{"GET", 1}, {"BY", 1}, {"LIMIT", 2}, {"COUNT", 1}, {"STOREDIST", 1}}},
	{"STOREDIST", []option{{"COUNT", 1}, {"STORE", 1}}},
	{"KEYS", []option{{"AUTH", 1}, {"AUTH2", 2}}},
}

func compileSpec(s KeySpec, arity int32) spec {
	c := spec{
		kind: s.Kind, access: s.Access, lastWins: s.LastWins, half: s.Half, several: s.Several,
		first: int32(s.First), last: int32(s.Last), step: int32(s.Step), offset: int32(s.Offset), word: s.Word,
	}
	for _, o := range optionsOf {
		if o.word == s.Word {
			c.options = o.options
		}
	}
	if c.kind == SpecWord && c.first < 0 {
		// "From the end backwards" is how the table says that the word is an
		// option behind all fixed arguments (MIGRATE KEYS). Walking forward
		// from the first optional argument finds the same word without
		// knowing the end, and is what the server does when it runs it.
		c.instead = true
		c.first = max(arity, -arity)
	}
	return c
}

// place is the state of one spec within a request.
type place struct {
	next  int32 // next argument of interest, noArg when done
	last  int32 // last key, while taking
	which int16 // lastWins: 1 + index of the key to replace
	take  bool  // next is a key; else next is a count or may be the word
}

// extract walks over the arguments of one request. It needs each argument
// only once and in order, so it works while the request streams in.
type extract struct {
	next  int32 // smallest next of all places
	place [maxSpecs]place
}

// begin prepares the walk for a request of argc arguments.
func (x *extract) begin(c *command, argc int32) {
	x.next = noArg
	for i := range c.specs {
		s, p := &c.specs[i], &x.place[i]
		*p = place{next: s.first}
		if s.kind == SpecRange {
			p.last = fromEnd(s.last, argc)
			p.take = true
			if p.next > p.last {
				p.next = noArg
			}
		}
		if p.next >= argc {
			p.next = noArg
		}
		x.next = min(x.next, p.next)
	}
}

// fromEnd turns a position that may count from the end into an index, at most
// that of the last argument.
func fromEnd(i, argc int32) int32 {
	if i < 0 {
		return argc + i
	}
	return min(i, argc-1)
}

// settled reports whether no later argument can take back a key that was
// found: then keys may be handed out before the request ends.
func (x *extract) settled(c *command) bool {
	for i := range c.specs {
		if p := &x.place[i]; p.next != noArg && (!p.take || c.specs[i].lastWins) {
			return false
		}
	}
	return true
}

// argument takes argument i of argc, of which b holds at least the first
// min(n, MaxKeyBytes) bytes. Called for i == x.next only.
func (d *Decoder) argument(c *command, i, argc int32, b []byte, n int64) {
	x := &d.f.x
	for k := range c.specs {
		p := &x.place[k]
		if p.next != i {
			continue
		}
		s := &c.specs[k]
		switch {
		case p.take:
			d.take(s, p, i, argc, b, n)
		case s.kind == SpecCount:
			if !p.count(s, i, argc, b, n) {
				d.refuse()
				return
			}
		case !d.word(s, p, i, argc, b, n):
			d.refuse()
			return
		}
		if p.next >= argc {
			p.next = noArg
		}
	}
	x.next = noArg
	for k := range c.specs {
		x.next = min(x.next, x.place[k].next)
	}
}

// refuse drops the keys of a request that the server rejects as a whole.
func (d *Decoder) refuse() {
	d.nkeys = 0
	d.f.x.next = noArg
	for k := range d.f.x.place {
		d.f.x.place[k].next = noArg
	}
}

func (d *Decoder) take(s *spec, p *place, i, argc int32, b []byte, n int64) {
	if s.lastWins {
		if p.which > 0 {
			d.setKey(int(p.which-1), b, n, s.access)
		} else if d.addKey(b, n, s.access) {
			p.which = int16(d.nkeys)
		}
		p.take = false
		p.next = i + 1
		return
	}
	d.addKey(b, n, s.access)
	p.next = noArg
	if i <= p.last-s.step {
		p.next = i + s.step
	}
}

// count reads the number of keys; false when the server would refuse it.
func (p *place) count(s *spec, i, argc int32, b []byte, n int64) bool {
	v, ok := parseInt(b)
	if !ok || n != int64(len(b)) || v <= 0 {
		return false
	}
	first := int64(i) + int64(s.offset)
	// v is checked before it is multiplied: it may be anything up to 2^63-1.
	if v > int64(argc) || first+(v-1)*int64(s.step) >= int64(argc) {
		return false
	}
	p.take = true
	p.next = int32(first)
	p.last = int32(first + (v-1)*int64(s.step))
	return true
}

// word looks whether argument i is the word of s, an option with arguments or
// anything else; false when the server would refuse the request.
func (d *Decoder) word(s *spec, p *place, i, argc int32, b []byte, n int64) bool {
	p.next = i + 1
	if n > maxNameLen || !equalFold(b, s.word) {
		for _, o := range s.options {
			if n == int64(len(o.word)) && equalFold(b, o.word) {
				// Compared before it is added: i may be close to 2^31-1.
				if o.args >= argc-1-i {
					p.next = noArg
				} else {
					p.next += o.args
				}
				break
			}
		}
		return true
	}
	if s.instead {
		for k := range d.keys[:d.nkeys] {
			if d.keys[k].Len != 0 {
				return false
			}
		}
		d.nkeys = 0
	}
	p.take = true
	switch rest := argc - 1 - i; {
	case s.half:
		p.last = i + rest/2
	case s.several:
		p.last = fromEnd(s.last, argc)
	default:
		p.last = i + 1
	}
	if p.next > p.last {
		p.next = noArg
	}
	return true
}

// parseInt reads a number as strictly as the server does: no sign but "-", no
// leading zero, no space, within 64 bits.
func parseInt(b []byte) (int64, bool) {
	var h header
	for _, c := range b {
		h.add(c)
	}
	return h.value()
}
