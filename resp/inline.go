package resp

import "bytes"

// maxLine is the longest inline command. redis-server 7.0.15 closes when it
// has read more than 64 KiB without an end of line, but it reads in growing
// chunks, so that a line of up to 96 KiB that arrives quickly runs.
const maxLine = 96 << 10

// readLine takes b up to the end of an inline command.
func (d *Decoder) readLine(b []byte) {
	end := bytes.IndexByte(b, '\n')
	line := b
	if end >= 0 {
		line = b[:end]
	}
	if bytes.IndexByte(line, 0) >= 0 {
		d.stop(ReasonNulByte)
		return
	}
	kept := 0
	if d.slot != nil {
		kept = len(d.slot.piece)
	}
	if kept+len(line) > maxLine {
		d.stop(ReasonInlineTooLong)
		return
	}
	if end < 0 || kept > 0 {
		if !d.keep(line, maxLine) {
			return
		}
		if end < 0 {
			d.p += len(b)
			d.f.bytes += int64(len(b))
			return
		}
		line = d.slot.piece
	}
	d.p += end + 1
	d.f.bytes += int64(end) + 1
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	d.beginLine(line)
}

// beginLine counts the arguments of a whole inline command: their number must
// be known before keys are taken, and an open quote at its end makes the whole
// line none.
func (d *Decoder) beginLine(line []byte) {
	argc := int32(0)
	d.text = d.text[:0]
	for p := 0; ; argc++ {
		_, next, ok := d.nextWord(line, p)
		if !ok {
			d.stop(ReasonUnbalancedQuotes)
			return
		}
		if next < 0 {
			break
		}
		p = next
	}
	d.text = d.text[:0]
	if argc == 0 {
		if d.inferred() {
			// The two bytes behind a value: decoding began inside of it.
			d.stop(ReasonDesync)
			return
		}
		d.reset() // blank lines are skipped
		return
	}
	d.line = line
	d.f.phase = phaseWords
	d.f.flags |= FlagInline
	d.f.argc = argc
	d.f.rest = 0 // here: offset in the line
	d.off = 0
}

// words hands the arguments of an inline command to the key search; true when
// r is filled in with the request or a part of it.
func (d *Decoder) words(r *Request) bool {
	f := &d.f
	for f.arg < f.argc {
		if d.nkeys == maxBatch && f.x.settled(&d.t.commands[f.cmd]) {
			d.part(r)
			return true
		}
		word, next, _ := d.nextWord(d.line, int(f.rest))
		if f.arg == 0 || f.subname || f.arg == f.x.next {
			f.size = int64(len(word))
			d.given(word[:min(len(word), MaxKeyBytes)])
			if f.arg == 0 && !d.plausible() {
				d.stop(ReasonDesync)
				return false
			}
		}
		f.rest = int64(next)
		f.arg++
	}
	f.phase = phaseIdle
	d.line = nil
	d.fill(r)
	return true
}

// plausible is the answer to a line of text: on a connection that was joined
// in the middle anything but a command means that it was joined wrongly.
func (d *Decoder) plausible() bool { return d.f.cmd != CommandUnknown || !d.inferred() }

// inferred reports whether the place where decoding began was inferred.
func (d *Decoder) inferred() bool { return d.c.flags&flagJoined != 0 || d.c.state == stateTrial }

// nextWord returns the word of an inline command at or behind p, and the index
// behind it: -1 when there is none. Quotes and escapes are those of the
// server: "..." knows \xHH \n \r \t \b \a and \ before any other byte, '...'
// knows \' only, and a closing quote must be followed by white space.
func (d *Decoder) nextWord(line []byte, p int) (word []byte, next int, ok bool) {
	for p < len(line) && space(line[p]) {
		p++
	}
	if p == len(line) {
		return nil, -1, true
	}
	start := p
	for ; p < len(line); p++ {
		switch line[p] {
		case ' ', '\n', '\r', '\t':
			return line[start:p], p, true
		case '"', '\'':
			return d.quoted(line, start, p)
		}
	}
	return line[start:p], p, true
}

// quoted goes on with a word from its first quote at p on. The word is built
// in d.text; a closing quote ends it.
func (d *Decoder) quoted(line []byte, start, p int) (word []byte, next int, ok bool) {
	from := len(d.text)
	d.text = append(d.text, line[start:p]...)
	if line[p] == '"' {
		p = d.doubleQuoted(line, p+1)
	} else {
		p = d.singleQuoted(line, p+1)
	}
	if p < 0 || (p < len(line) && !space(line[p])) {
		return nil, 0, false
	}
	return d.text[from:], p, true
}

// doubleQuoted appends what stands from p to the closing quote and returns the
// index behind it, or -1 when there is none.
func (d *Decoder) doubleQuoted(line []byte, p int) int {
	for p < len(line) {
		c := line[p]
		switch {
		case c == '"':
			return p + 1
		case c == '\\' && p+3 < len(line) && line[p+1] == 'x' && hex(line[p+2]) >= 0 && hex(line[p+3]) >= 0:
			d.text = append(d.text, byte(hex(line[p+2])<<4|hex(line[p+3])))
			p += 4
		case c == '\\' && p+1 < len(line):
			d.text = append(d.text, unescape(line[p+1]))
			p += 2
		default:
			d.text = append(d.text, c)
			p++
		}
	}
	return -1
}

func (d *Decoder) singleQuoted(line []byte, p int) int {
	for p < len(line) {
		c := line[p]
		switch {
		case c == '\'':
			return p + 1
		case c == '\\' && p+1 < len(line) && line[p+1] == '\'':
			d.text = append(d.text, '\'')
			p += 2
		default:
			d.text = append(d.text, c)
			p++
		}
	}
	return -1
}

// space is isspace of the C locale.
func space(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}
