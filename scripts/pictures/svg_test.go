package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
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

func TestSVGPutsEachWordIntoItsCell(t *testing.T) {
	const line = "key   \x1b[1m a  bb\x1b[0m 漢字   é  ██ <&>  \x1b[7m k y   \x1b[27m\x1b[7m\x1b[27m  end"
	out := svg(line, 60, 1)
	var got []string
	for _, m := range regexp.MustCompile(`<text x="([^"]*)"[^>]*textLength="([^"]*)"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(out, -1) {
		got = append(got, m[3]+" "+m[1]+" "+m[2])
	}
	var want []string
	for _, w := range []struct {
		word        string
		cell, cells int
	}{
		{"key", 0, 3}, {"a", 7, 1}, {"bb", 10, 2}, {"漢字", 13, 4}, {"é", 20, 1}, {"&lt;&amp;&gt;", 26, 3},
		{"k", 32, 1}, {"y", 34, 1}, {"end", 40, 3},
	} {
		want = append(want, fmt.Sprintf("%s %.1f %.1f", w.word, border+float64(w.cell)*cellWidth, float64(w.cells)*cellWidth))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s\nin\n%s", g, w, out)
	}
	if strings.Contains(out, `width="0.0"`) {
		t.Errorf("an empty rectangle:\n%s", out)
	}
}
