package top

import (
	"math"
	"strings"
)

// glyphs are the characters that graphs are drawn with.
type glyphs struct {
	levels    []string // of a sparkline and of the end of a bar, rising
	rises     []string // the same across
	sure      string   // a bar below the lower bound
	unsure    string   // between the bounds
	empty     string   // beyond
	down, up  string   // the order of a column
	cursor    string
	dot       string // between parts of a line
	rule      string
	ends      string // of a text that was cut
	direction string // keys that move the selection
	enter     string
}

var unicodeGlyphs = glyphs{
	levels: strings.Split("▁▂▃▄▅▆▇█", ""), rises: strings.Split("▏▎▍▌▋▊▉█", ""),
	sure: "█", unsure: "▒", empty: " ", down: "▾", up: "▴", cursor: "▸", dot: "·", rule: "─", ends: "…", direction: "↑↓", enter: "⏎",
}

var asciiGlyphs = glyphs{
	levels: strings.Split("_.:-=+*#", ""), rises: nil,
	sure: "#", unsure: "+", empty: " ", down: "v", up: "^", cursor: ">", dot: "-", rule: "-", ends: "..", direction: "jk", enter: "enter",
}

// bar draws a share and its bounds in width cells of 0..scale: solid up to the
// lower bound, hatched up to the upper one.
func (g *glyphs) bar(share, low, high, scale float64, width int) string {
	if width <= 0 {
		return ""
	}
	at := func(v float64) float64 { return part(v, scale) * float64(width) }
	low, high, share = at(low), at(max(high, share)), at(share)
	if high-low < 0.5 || low > share {
		low, high = share, share // the bounds are closer than can be drawn
	}
	full := int(low)
	cells := make([]string, 0, width)
	for range full {
		cells = append(cells, g.sure)
	}
	if part := int((low - float64(full)) * 8); part > 0 && g.rises != nil && high == low {
		cells = append(cells, g.rises[part-1])
	} else if full == 0 && share > 0 && high == low {
		cells = append(cells, g.first())
	}
	for len(cells) < int(math.Ceil(high)) && len(cells) < width {
		if high == low {
			break
		}
		cells = append(cells, g.unsure)
	}
	for len(cells) < width {
		cells = append(cells, g.empty)
	}
	return strings.Join(cells, "")
}

// part is v as a part of scale, 0..1 whatever they are: a daemon may send any.
func part(v, scale float64) float64 {
	if !(v > 0 && scale > 0) {
		return 0
	}
	return min(v/scale, 1)
}

// first is the least that is not nothing.
func (g *glyphs) first() string {
	if g.rises != nil {
		return g.rises[0]
	}
	return "."
}

// spark draws values of 0..scale, one cell each; a negative one is not known.
func (g *glyphs) spark(values []float64, scale float64) string {
	var b strings.Builder
	for _, v := range values {
		switch {
		case v < 0 || scale <= 0:
			b.WriteString(" ")
		default:
			b.WriteString(g.levels[min(int(part(v, scale)*float64(len(g.levels))), len(g.levels)-1)])
		}
	}
	return b.String()
}

// chart draws values of 0..scale as columns of height cells, the top line
// first.
func (g *glyphs) chart(values []float64, scale float64, height int) []string {
	steps := float64(len(g.levels))
	out := make([]string, height)
	for line := range out {
		var b strings.Builder
		floor := float64(height - 1 - line)
		for _, v := range values {
			level := int(math.Round((part(v, scale)*float64(height) - floor) * steps))
			switch {
			case v < 0 || scale <= 0 || level <= 0 && floor > 0:
				b.WriteString(" ")
			case level <= 0:
				b.WriteString(g.levels[0]) // the ground: known, and nothing
			default:
				b.WriteString(g.levels[min(level, len(g.levels))-1])
			}
		}
		out[line] = b.String()
	}
	return out
}

// scaleOf returns the end of an axis for values up to top: 1, 2 or 5 times a
// power of ten in percent, at least 1 % and at most 100 %.
func scaleOf(top float64) float64 {
	for _, s := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5} {
		if top <= s {
			return s
		}
	}
	return 1
}
