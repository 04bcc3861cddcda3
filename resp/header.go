package resp

// Limits of the protocol as redis-server 7.0.15 enforces them.
const (
	maxArgs = 1<<31 - 1
	maxBulk = 512 << 20 // proto-max-bulk-len, its default; exactly this is accepted
)

// header reads the number of a "*" or "$" line one byte at a time. It keeps no
// bytes, so an endless line costs nothing.
type header struct {
	v      uint64
	digits uint8
	neg    bool
	bad    bool // it is no number, whatever follows
	cr     bool // the carriage return was seen; the byte after it is not looked at
}

func (h *header) add(c byte) {
	switch {
	case c == '-' && h.digits == 0 && !h.neg:
		h.neg = true
	case c < '0' || c > '9':
		h.bad = true
	case h.digits == 1 && h.v == 0, h.neg && h.digits == 0 && c == '0':
		h.bad = true // "01", "-0"
	case h.v > (1<<63)/10:
		h.bad = true
	default:
		h.v = h.v*10 + uint64(c-'0')
		h.digits++
	}
}

// value returns the number, or false when the server takes it for none.
func (h *header) value() (int64, bool) {
	if h.bad || h.digits == 0 {
		return 0, false
	}
	if h.neg {
		return -int64(h.v), h.v <= 1<<63
	}
	return int64(h.v), h.v < 1<<63
}

// read takes bytes of the line up to its end, which is a carriage return and
// one more byte. It returns how many bytes it took and whether that was all of
// the line; h.bad ends the line at once, since nothing can mend it.
func (h *header) read(b []byte) (n int, done bool) {
	for n < len(b) {
		c := b[n]
		n++
		switch {
		case h.cr:
			return n, true
		case c == '\r':
			h.cr = true
			_, ok := h.value()
			if !ok {
				h.bad = true
				return n, true
			}
		default:
			h.add(c)
			if h.bad {
				return n, true
			}
		}
	}
	return n, false
}

// size reads a whole "<digits>\r?" at b[p:] and returns the number and the
// index behind it. It knows only plain positive numbers of up to nine digits;
// for anything else next is 0 and header decides.
func size(b []byte, p int) (v, next int) {
	for i := p; i < len(b)-1; i++ {
		c := b[i] - '0'
		if c > 9 {
			if b[i] != '\r' || i == p || i > p+9 || (b[p] == '0' && i > p+1) {
				return 0, 0
			}
			return v, i + 2
		}
		v = v*10 + int(c)
		if i > p+9 {
			return 0, 0
		}
	}
	return 0, 0
}
