package resp

import "testing"

// TestABlankLineSpeaksAgainstAnInferredStart: the capture begins inside a
// value that holds a request, exactly where that request begins. The two bytes
// behind the value stand where a request should, as a blank line: no client
// sends one between arrays.
func TestABlankLineSpeaksAgainstAnInferredStart(t *testing.T) {
	const lie = "*2\r\n$3\r\nGET\r\n$9\r\nfalse:key\r\n"
	const real = "*2\r\n$3\r\nGET\r\n$4\r\nreal\r\n"
	feed := func(c *Conn, d *Decoder, text string, turn bool) (keys []string) {
		var r Request
		next := func() {
			for d.Next(&r) {
				for _, k := range r.Keys {
					keys = append(keys, string(k.Bytes))
				}
			}
		}
		d.Feed(c, []byte(text), turn)
		next()
		if text == "" {
			d.Close(c)
			next()
		}
		return keys
	}
	d := NewDecoder(Config{})
	var c Conn
	d.Open(&c, false)
	got := feed(&c, d, lie+lie+"\r\n"+real, false)
	got = append(got, feed(&c, d, "", false)...)
	if len(got) != 0 {
		t.Errorf("got keys %q; want none of a turn that began inside a value", got)
	}
	// A connection whose start was seen may send blank lines.
	d.Open(&c, true)
	if got := feed(&c, d, real+"\r\n"+real, true); len(got) != 2 {
		t.Errorf("got keys %q; want both", got)
	}
}

// TestABlindTurnWithHolesIsNotBelieved: the capture begins inside a value at
// the text of a request, the snap length cuts the end of the value off, and no
// reply is captured. The next turn proves that it is a start, not that the
// first segment was one.
func TestABlindTurnWithHolesIsNotBelieved(t *testing.T) {
	const lie = "*2\r\n$3\r\nGET\r\n$9\r\nfalse:key\r\n"
	const real = "*2\r\n$3\r\nGET\r\n$4\r\nreal\r\n"
	d := NewDecoder(Config{})
	var c Conn
	var r Request
	keys := map[string]int{}
	next := func() {
		for d.Next(&r) {
			for _, k := range r.Keys {
				keys[string(k.Bytes)]++
			}
		}
	}
	d.Open(&c, false)
	d.Feed(&c, []byte(lie), false)
	next()
	d.Skip(&c, 100)
	next()
	const turns = 10
	for range turns {
		d.Acked(&c, 5)
		d.Feed(&c, []byte(real), true)
		next()
	}
	d.Close(&c)
	next()
	if keys["false:key"] != 0 || keys["real"] < turns-1 {
		t.Errorf("got %v; want no false:key and at least %d real", keys, turns-1)
	}
}
