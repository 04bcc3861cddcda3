package resp

// maxNested bounds the elements that one reply may announce. It only guards
// the counter: nothing is allocated for them.
const maxNested = 1 << 40

// replies counts the replies in the bytes of a server: RESP2 and RESP3 frames
// at the outermost level, without pushes. It knows nothing of their content.
// One number is enough for any nesting: how many elements are still to come.
type replies struct {
	pending int64  // elements to come of the current reply, 0 between replies
	skip    int64  // bytes to come of a bulk and the two behind it
	h       header // number of the line being read
	kind    byte   // type byte of the line being read, 0: none
	push    bool   // the current reply is no reply
	broken  bool   // out of step: counts mean nothing
}

// feed takes server bytes of which wire were on the wire and b captured, and
// returns the number of replies that ended in them.
func (s *replies) feed(b []byte, wire int64) (n int64) {
	cut := wire - int64(len(b))
	for len(b) > 0 && !s.broken {
		switch {
		case s.skip > 0:
			k := min(s.skip, int64(len(b)))
			b = b[k:]
			s.skip -= k
			if s.skip == 0 {
				n += s.element()
			}
		case s.kind == 0:
			s.kind = b[0]
			s.h = header{}
			if s.pending == 0 {
				s.push = s.kind == '>'
				s.pending = 1
			}
			b = b[1:]
		default:
			b = b[s.line(b):]
			if s.kind == 0 && s.skip == 0 && !s.broken {
				n += s.element()
			}
		}
	}
	if cut > 0 && !s.broken {
		// Bytes that were not captured are harmless inside a bulk only.
		if s.skip < cut {
			s.broken = true
			return n
		}
		s.skip -= cut
		if s.skip == 0 {
			n += s.element()
		}
	}
	return n
}

// element takes the end of an element; 1 when it was the end of a reply.
func (s *replies) element() int64 {
	s.pending--
	if s.pending > 0 || s.push {
		return 0
	}
	return 1
}

// line takes bytes up to the end of a line and acts on it there.
func (s *replies) line(b []byte) int {
	for i, c := range b {
		if s.h.cr {
			s.endLine()
			return i + 1
		}
		if c == '\r' {
			s.h.cr = true
			continue
		}
		if sized(s.kind) {
			s.h.add(c)
		}
	}
	return len(b)
}

// sized reports whether the line of a type holds a length or a count.
func sized(kind byte) bool {
	switch kind {
	case '$', '=', '!', '*', '~', '>', '%', '|':
		return true
	}
	return false
}

func (s *replies) endLine() {
	kind := s.kind
	s.kind = 0
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return
	}
	v, ok := s.h.value()
	if !sized(kind) || !ok || v < -1 || v > maxNested {
		s.broken = true // a streamed type, or no reply at all
		return
	}
	v = max(v, 0)
	switch kind {
	case '$', '=', '!':
		if n, _ := s.h.value(); n >= 0 {
			s.skip = n + 2
		}
	case '*', '~', '>':
		s.pending += v
	case '%':
		s.pending += 2 * v
	case '|':
		s.pending += 2*v + 1 // the reply itself is still to come
	}
	if s.pending > maxNested {
		s.broken = true
	}
}
