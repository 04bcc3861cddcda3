package top

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// maxText bounds the bytes of one text that are looked at for a line: the two
// halves fill the widest frame, and the middle is cut out anyway.
const maxText = 8 << 10

// unsafeRunes are printable characters whose look depends on what stands
// beside them, so that the width of a cell could not be known, or which
// reorder or hide it: letters that are written from right to left, those that
// join their neighbours, and those that look like nothing.
var unsafeRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0590, Hi: 0x08FF, Stride: 1},    // Hebrew, Arabic, Syriac, Thaana, N'Ko and others: right to left
		{Lo: 0x0D4E, Hi: 0x0D4E, Stride: 1},    // Malayalam dot reph joins what follows
		{Lo: 0x0E33, Hi: 0x0EB3, Stride: 0x80}, // Thai and Lao vowels that join what precedes
		{Lo: 0x1100, Hi: 0x11FF, Stride: 1},    // conjoining Hangul
		{Lo: 0x2800, Hi: 0x2800, Stride: 1},    // an empty Braille cell
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},    // a filler
		{Lo: 0xA960, Hi: 0xA97F, Stride: 1},
		{Lo: 0xD7B0, Hi: 0xD7FF, Stride: 1},
		{Lo: 0xFB1D, Hi: 0xFDFF, Stride: 1}, // right to left
		{Lo: 0xFE70, Hi: 0xFEFF, Stride: 1},
		{Lo: 0xFF9E, Hi: 0xFFA0, Stride: 1}, // halfwidth marks and filler
	},
	R32: []unicode.Range32{
		{Lo: 0x10800, Hi: 0x10FFF, Stride: 1}, // right to left
		{Lo: 0x11000, Hi: 0x11FFF, Stride: 1}, // Indic scripts with letters that join what follows
		{Lo: 0x1E800, Hi: 0x1EFFF, Stride: 1}, // right to left
		{Lo: 0x1F1E6, Hi: 0x1F1FF, Stride: 1}, // halves of flags
		{Lo: 0x1F3FB, Hi: 0x1F3FF, Stride: 1}, // skin tones
	},
}

// runeWidth returns the cells that r takes wherever it stands; 0 means that it
// has to be escaped.
func runeWidth(r rune, ascii bool) int {
	if r < 0x80 {
		if r < ' ' || r == 0x7f {
			return 0
		}
		return 1
	}
	if ascii || !unicode.IsPrint(r) || unicode.Is(unicode.M, r) || unicode.Is(unsafeRunes, r) {
		return 0
	}
	s := string(r)
	w := ansi.StringWidth(s)
	if w < 1 || w > 2 || w != ansi.StringWidthWc(s) {
		return 0 // terminals do not agree
	}
	return w
}

// cell is the text of one character and its width.
type cell struct {
	text  string
	width int
}

// cells takes s apart, with everything as an escape that a terminal could
// obey, hide, join or reorder, and with ascii everything beyond ASCII. Of a
// text that no line can hold the middle is left out.
func cells(s string, ascii bool) []cell {
	if len(s) > maxText {
		s = s[:maxText/2] + s[len(s)-maxText/2:]
	}
	out := make([]cell, 0, len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		c := cell{s[:n], runeWidth(r, ascii)}
		if broken := r == utf8.RuneError && n == 1; broken || c.width == 0 {
			if c.text = fmt.Sprintf(`\u{%x}`, r); broken || r < 0x80 {
				c.text = fmt.Sprintf(`\x%02x`, s[0])
			}
			c.width = len(c.text)
		}
		out = append(out, c)
		s = s[n:]
	}
	return out
}

// clip returns s in at most width cells, made harmless; a text that is longer
// loses its middle, since keys differ at both ends.
func clip(s string, width int, ascii bool) (text string, used int) {
	all := cells(s, ascii)
	for i := range all {
		used += all[i].width
	}
	if used <= width {
		return join(all), used
	}
	dots := cell{"…", 1}
	if ascii {
		dots = cell{"..", 2}
	}
	if width < dots.width {
		return "", 0
	}
	room := width - dots.width
	head, headUsed := 0, 0
	for head < len(all) && headUsed+all[head].width <= (room+1)/2 {
		headUsed += all[head].width
		head++
	}
	tail, tailUsed := len(all), 0
	for tail > head && headUsed+tailUsed+all[tail-1].width <= room {
		tail--
		tailUsed += all[tail].width
	}
	return join(all[:head]) + dots.text + join(all[tail:]), headUsed + dots.width + tailUsed
}

func join(all []cell) string {
	var b strings.Builder
	for i := range all {
		b.WriteString(all[i].text)
	}
	return b.String()
}

// wrap returns all of s in lines of at most width cells, at most so many.
func wrap(s string, width, lines int, ascii bool) []string {
	all := cells(s, ascii)
	var out []string
	for begin := 0; begin < len(all); {
		end, used := begin, 0
		for end < len(all) && used+all[end].width <= width {
			used += all[end].width
			end++
		}
		if end == begin {
			return out // not even one character fits
		}
		if len(out) == lines-1 {
			text, _ := clip(join(all[begin:]), width, ascii)
			return append(out, text)
		}
		out = append(out, join(all[begin:end]))
		begin = end
	}
	return out
}
