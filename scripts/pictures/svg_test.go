package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestSVGIsWellFormedAndKeepsTheText(t *testing.T) {
	out := svg("\x1b[1;31mhot<&>\x1b[0m \x1b[7m\"key\"\x1b[27m ████▌▒ \x1b[2m▁▃█\x1b[0m\nsecond", 40, 2)
	text := ""
	for d := xml.NewDecoder(strings.NewReader(out)); ; {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if c, ok := tok.(xml.CharData); ok {
			text += strings.TrimSpace(string(c))
		}
	}
	if text != `hot<&>"key"second` {
		t.Errorf("got %q", text)
	}
	if n := strings.Count(out, "<rect"); n != 1+1+6+3 { // paper, reverse, bar, graph
		t.Errorf("got %d rectangles:\n%s", n, out)
	}
	if !strings.Contains(out, `fill="#ff7b72">hot`) {
		t.Errorf("the hot key is not red:\n%s", out)
	}
}
