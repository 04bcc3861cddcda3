package main

import (
	"fmt"
	"html"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A cell of the picture in units of the SVG file, and the room around.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	border     = 14.0
)

// look is what SGR sequences have set.
type look struct {
	bold, faint, reverse bool
	color                int // 0: the terminal's own
}

// Colours of a dark terminal, legible on pages of either kind.
const (
	paper = "#12161c"
	ink   = "#d5dae1"
	grey  = "#8b95a3"
)

var colors = map[int]string{31: "#ff7b72", 33: "#e3b341", 36: "#56d4dd"}

func (l look) ink() string {
	switch {
	case l.color != 0 && colors[l.color] != "":
		return colors[l.color]
	case l.faint:
		return grey
	}
	return ink
}

// svg draws a screen with SGR sequences, as tmux prints it.
func svg(screen string, width, height int) string {
	var b strings.Builder
	w, h := float64(width)*cellWidth+2*border, float64(height)*cellHeight+2*border
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="hotsniff top">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	b.WriteString(`<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">` + "\n")
	for y, line := range strings.Split(strings.TrimRight(screen, "\n"), "\n") {
		drawLine(&b, line, y)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// drawLine draws runs of text of one look, and block characters as rectangles,
// which are the same with every font.
func drawLine(b *strings.Builder, line string, y int) {
	var l look
	x, begin, run := 0, 0, ""
	flush := func() {
		if strings.TrimSpace(run) != "" || l.reverse && run != "" {
			drawRun(b, run, begin, x-begin, y, l)
		}
		run = ""
	}
	for len(line) > 0 {
		if params, rest, ok := cutSGR(line); ok {
			flush()
			l.set(params)
			begin, line = x, rest
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		line = line[n:]
		if shape, ok := block(r); ok {
			flush()
			drawBlock(b, shape, x, y, l)
			x++
			begin = x
			continue
		}
		if run == "" {
			begin = x
		}
		run += string(r)
		x += ansi.StringWidth(string(r))
	}
	flush()
}

// cutSGR takes an SGR sequence off the beginning of a line.
func cutSGR(line string) (params, rest string, ok bool) {
	if !strings.HasPrefix(line, "\x1b[") {
		return "", "", false
	}
	end := strings.IndexByte(line, 'm')
	if end < 0 {
		return "", "", false
	}
	return line[2:end], line[end+1:], true
}

func (l *look) set(params string) {
	for _, p := range strings.Split(params, ";") {
		switch n, _ := strconv.Atoi(p); n {
		case 0:
			*l = look{}
		case 1:
			l.bold = true
		case 2:
			l.faint = true
		case 7:
			l.reverse = true
		case 22:
			l.bold, l.faint = false, false
		case 27:
			l.reverse = false
		case 39:
			l.color = 0
		default:
			if n >= 30 && n <= 37 {
				l.color = n
			}
		}
	}
}

func drawRun(b *strings.Builder, text string, x, cells, y int, l look) {
	left, top := border+float64(x)*cellWidth, border+float64(y)*cellHeight
	fill := l.ink()
	if l.reverse {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, float64(cells)*cellWidth, cellHeight, fill)
		fill = paper
	}
	weight := ""
	if l.bold {
		weight = ` font-weight="bold"`
	}
	for left, word := range words(text) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s fill="%s">%s</text>`+"\n", border+float64(x+left)*cellWidth, top+13.5,
			float64(ansi.StringWidth(word))*cellWidth, weight, fill, html.EscapeString(word))
	}
}

// words yields the words of a text and the cell where each begins. Browsers
// fold spaces into one and stretch the rest to its length, so no text of the
// picture has any.
func words(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		cell := 0
		for i, word := range strings.Split(text, " ") {
			if i > 0 {
				cell++
			}
			if word != "" && !yield(cell, word) {
				return
			}
			cell += ansi.StringWidth(word)
		}
	}
}

// shape is the part of a cell that a block character fills.
type shape struct{ left, top, right, bottom, opacity float64 }

func block(r rune) (shape, bool) {
	switch {
	case r >= '▁' && r <= '█': // lower eighths
		return shape{0, 1 - float64(r-'▁'+1)/8, 1, 1, 1}, true
	case r >= '▉' && r <= '▏': // left eighths, falling
		return shape{0, 0, float64('▏'-r+1) / 8, 1, 1}, true
	case r == '▒':
		return shape{0, 0, 1, 1, 0.45}, true
	}
	return shape{}, false
}

func drawBlock(b *strings.Builder, s shape, x, y int, l look) {
	left, top := border+float64(x)*cellWidth, border+float64(y)*cellHeight
	// A line of its own height: bars of two rows do not touch.
	const inset = 3
	height := cellHeight - inset
	opacity := ""
	if s.opacity < 1 {
		opacity = fmt.Sprintf(` opacity="%.2f"`, s.opacity)
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"%s/>`+"\n", left+s.left*cellWidth, top+inset/2+s.top*height,
		(s.right-s.left)*cellWidth+0.1, (s.bottom-s.top)*height, l.ink(), opacity)
}
