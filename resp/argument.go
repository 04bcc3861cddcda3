package resp

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
