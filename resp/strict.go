package resp

// strictArgs is how many arguments of a first request are looked at.
const strictArgs = 16

// strict reports whether b begins with a request as clients send it: an array
// with every byte in its place as far as b goes, a command of the table and a
// number of arguments that fits it.
func (d *Decoder) strict(b []byte) bool {
	if len(b) == 0 || b[0] != '*' {
		return false
	}
	argc, p := size(b, 1)
	if p == 0 || argc == 0 || b[p-1] != '\n' {
		return false
	}
	var id CommandID
	for i := 0; i < argc && i < strictArgs; i++ {
		if i > 0 && p >= len(b) {
			break
		}
		n, q, whole := strictHeader(b, p)
		if q == 0 {
			return false
		}
		if !whole || q+n+2 > len(b) {
			if i == 0 {
				return false
			}
			break
		}
		if b[q+n] != '\r' || b[q+n+1] != '\n' {
			return false
		}
		switch i {
		case 0:
			id = d.t.find(b, q, n, CommandUnknown)
			if id == CommandUnknown || d.t.commands[id].does == effectHTTP {
				return false
			}
		case 1:
			if sub := d.t.find(b, q, n, id); sub != CommandUnknown && d.t.commands[id].container {
				id = sub
			}
		}
		p = q + n + 2
	}
	return d.t.commands[id].fits(int32(argc))
}

// strictHeader reads a "$" header at b[p:]: the length and the index behind
// it. q is 0 when it is none; whole is false when it goes on behind b.
func strictHeader(b []byte, p int) (n, q int, whole bool) {
	if p >= len(b) || b[p] != '$' {
		return 0, 0, false
	}
	n, q = size(b, p+1)
	if q != 0 {
		if b[q-1] != '\n' || n > maxBulk {
			return 0, 0, false
		}
		return n, q, true
	}
	// At the end of b it may be a header that goes on.
	if len(b)-p > 12 {
		return 0, 0, false
	}
	for _, c := range b[p+1:] {
		if (c < '0' || c > '9') && c != '\r' {
			return 0, 0, false
		}
	}
	return 0, len(b), false
}

// maxLoose bounds the segments that loose believes.
const maxLoose = 1024

// loose reports whether b, though it does not begin with the whole header of a
// request, may begin one: a client may write a request in small pieces, or
// speak in lines of text.
func (d *Decoder) loose(b []byte) bool {
	if len(b) == 0 || len(b) > maxLoose {
		return false
	}
	if b[0] == '*' {
		return looseHeader(b)
	}
	return d.looseLine(b)
}

// looseHeader reports whether b is the beginning of an array that ends within
// the name of its command.
func looseHeader(b []byte) bool {
	for i, mark := range []byte{'*', '$'} {
		if len(b) == 0 {
			return true
		}
		if b[0] != mark {
			return false
		}
		n, q := size(b, 1)
		if q == 0 {
			// No more than the beginning of a number and its end of line.
			return partOfNumber(b[1:])
		}
		if b[q-1] != '\n' || n == 0 {
			return false
		}
		b = b[q:]
		if i == 1 && len(b) > min(n, maxNameLen) {
			return false
		}
	}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func partOfNumber(b []byte) bool {
	if len(b) > 9 {
		return false
	}
	for i, c := range b {
		if c == '\r' {
			return i > 0 && i == len(b)-1
		}
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// looseLine reports whether b is lines of printable text of which the first is
// a command with a fitting number of arguments.
func (d *Decoder) looseLine(b []byte) bool {
	end := -1
	for i, c := range b {
		if c == '\n' && end < 0 {
			end = i
		}
		if (c < ' ' || c > '~') && c != '\r' && c != '\n' && c != '\t' {
			return false
		}
	}
	if end < 0 || b[len(b)-1] != '\n' {
		return false
	}
	d.text = d.text[:0]
	var id CommandID
	argc := int32(0)
	for p := 0; ; argc++ {
		word, next, ok := d.nextWord(b[:end], p)
		if !ok {
			return false
		}
		if next < 0 {
			break
		}
		switch argc {
		case 0:
			id = d.t.find(word, 0, len(word), CommandUnknown)
		case 1:
			if sub := d.t.find(word, 0, len(word), id); sub != CommandUnknown && d.t.commands[id].container {
				id = sub
			}
		}
		p = next
	}
	return id != CommandUnknown && d.t.commands[id].does != effectHTTP && d.t.commands[id].fits(argc)
}
