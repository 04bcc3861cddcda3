package resp

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// reference frames the bytes of a connection the plain way, all of them at
// hand, and returns the requests and whether it ended in an error. It shares
// nothing with the decoder but the rules of the server.
func reference(b []byte) (got []string, failed bool) {
	for len(b) > 0 {
		var args []string
		size, inline := 0, b[0] != '*'
		if inline {
			end := bytes.IndexByte(b, '\n')
			if nul := bytes.IndexByte(b, 0); nul >= 0 && (end < 0 || nul < end) {
				return got, true
			}
			if end > maxLine || (end < 0 && len(b) > maxLine) {
				return got, true
			}
			if end < 0 {
				return got, false
			}
			var ok bool
			if args, ok = referenceSplit(strings.TrimSuffix(string(b[:end]), "\r")); !ok {
				return got, true
			}
			size = end + 1
			if len(args) == 0 {
				b = b[size:]
				continue
			}
		} else {
			var more, ok bool
			if args, size, more, ok = referenceArray(b); !ok {
				return got, true
			} else if more {
				return got, false
			}
			if args == nil {
				b = b[size:]
				continue
			}
		}
		name := strings.ToUpper(args[0])
		if name == "POST" || name == "HOST:" {
			return got, true
		}
		got = append(got, fmt.Sprintf("inline=%v bytes=%d args=%d", inline, size, len(args)))
		b = b[size:]
		if name == "QUIT" {
			return got, false
		}
	}
	return got, false
}

func referenceNumber(s string) (n int64, ok bool) {
	if s == "0" {
		return 0, true
	}
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] < '1' || digits[0] > '9' || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	_, err := fmt.Sscan(s, &n)
	return n, err == nil
}

// referenceHeader reads the number of a header line at b[1:].
func referenceHeader(b []byte) (n int64, size int, more, ok bool) {
	end := bytes.IndexByte(b, '\r')
	line := b
	if end >= 0 {
		line = b[:end]
	}
	if end < 0 || end+1 >= len(b) {
		// The decoder refuses at once what can become no number.
		text := string(line[1:])
		_, ok := referenceNumber(text)
		return 0, 0, true, ok || (end < 0 && (text == "" || text == "-"))
	}
	n, ok = referenceNumber(string(line[1:]))
	return n, end + 2, false, ok
}

func referenceArray(b []byte) (args []string, size int, more, ok bool) {
	n, size, more, ok := referenceHeader(b)
	if !ok || more {
		return nil, 0, more, ok
	}
	if n > maxArgs {
		return nil, 0, false, false
	}
	for ; n > 0; n-- {
		if size >= len(b) {
			return nil, 0, true, true
		}
		if b[size] != '$' {
			return nil, 0, false, false
		}
		length, header, more, ok := referenceHeader(b[size:])
		if !ok || more {
			return nil, 0, more, ok
		}
		if length < 0 || length > maxBulk {
			return nil, 0, false, false
		}
		size += header
		if int64(len(b)-size) < length+2 {
			return nil, 0, true, true
		}
		args = append(args, string(b[size:size+int(length)]))
		size += int(length) + 2
	}
	return args, size, false, true
}

// referenceSplit splits an inline command.
func referenceSplit(s string) (args []string, ok bool) {
	for {
		s = strings.TrimLeft(s, " \t\n\v\f\r")
		if s == "" {
			return args, true
		}
		word := ""
		for s != "" && !strings.ContainsRune(" \n\r\t", rune(s[0])) {
			quote := s[0]
			if quote != '"' && quote != '\'' {
				word, s = word+s[:1], s[1:]
				continue
			}
			s = s[1:]
			closed := false
			for s != "" && !closed {
				switch {
				case s[0] == quote:
					closed = true
					s = s[1:]
				case quote == '"' && s[0] == '\\' && len(s) > 1:
					word, s = word+"?", s[2:] // the value does not matter here
				case quote == '\'' && strings.HasPrefix(s, `\'`):
					word, s = word+"'", s[2:]
				default:
					word, s = word+s[:1], s[1:]
				}
			}
			if !closed || (s != "" && !strings.ContainsRune(" \t\n\v\f\r", rune(s[0]))) {
				return nil, false
			}
			if s != "" {
				// A closing quote ends the word.
				break
			}
		}
		args = append(args, word)
	}
}

// framing is what the decoder makes of b, in the words of reference.
func framing(b []byte, step int) (got []string, failed bool) {
	d := newDecoder()
	feedSteps(d, b, step, func(r *Request) {
		if r.Flags&FlagContinued == 0 {
			got = append(got, fmt.Sprintf("inline=%v bytes=%d args=%d", r.Flags&FlagInline != 0, r.Bytes, r.Args))
		}
	})
	for _, n := range d.Stats().Errors {
		failed = failed || n > 0
	}
	return got, failed
}

func compareFraming(t *testing.T, b []byte, step int) {
	if what, _ := classify(b); what != openingRequests {
		return
	}
	want, failed := reference(b)
	got, stopped := framing(b, step)
	if !slices.Equal(got, want) || stopped != failed {
		t.Fatalf("%q\ngot  %q, error %v\nwant %q, error %v", b, got, stopped, want, failed)
	}
}

func TestFramingAgainstReference(t *testing.T) {
	for _, test := range wireTests {
		compareFraming(t, []byte(test.in), 1000)
	}
	seed := rand.Int63()
	rng := rand.New(rand.NewSource(seed))
	t.Logf("seed %d", seed)
	pieces := []string{
		"*1\r\n", "*2\r\n", "*0\r\n", "*-1\r\n", "$1\r\n", "$0\r\n", "$3\r\n", "GET", "k", "\r\n", "\n", "xx", "GET a\n",
		"\"", "'", "\\", " ", "$536870912\r\n", "*01\r\n", "$-1\r\n", "-", "1", "\r", "PING\r\n", "\x00", "*1\r\n$4\r\nPING\r\n", "QUIT\n",
	}
	for range 20000 {
		var b []byte
		for range rng.Intn(12) {
			b = append(b, pieces[rng.Intn(len(pieces))]...)
		}
		compareFraming(t, b, 1+rng.Intn(8))
	}
}

func FuzzFraming(f *testing.F) {
	for _, test := range wireTests {
		f.Add([]byte(test.in), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		compareFraming(t, in, max(1, step&0xff))
	})
}
