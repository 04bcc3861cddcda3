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
