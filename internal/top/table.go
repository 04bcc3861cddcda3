package top

import (
	"fmt"
	"strings"

	"github.com/hotsniff/hotsniff/internal/report"
)

// table draws the main screen.
func (v *view) table() {
	v.header()
	rows := v.m.rows()
	widths := v.layout(rows)
	v.add(v.titles(widths))
	visible := max(v.height-linesAbove-linesBelow, 0)
	if v.m.opts.Still {
		visible = max(v.height-linesAbove, 0)
	}
	if len(rows) == 0 && visible > 0 {
		v.empty()
	}
	first := min(v.m.first, len(rows))
	for i, k := range rows[first:min(first+visible, len(rows))] {
		v.add(v.row(k, widths, first+i == v.m.cursor && !v.m.opts.Still))
	}
	v.footer(v.hints(len(rows), first, visible))
}

// layout gives the columns their widths; 0 is a column without room.
func (v *view) layout(rows []*report.Key) [len(columns)]int {
	var widths [len(columns)]int
	left := v.width - 1 // the cursor
	for rank := 0; rank < 12; rank++ {
		for i := range columns {
			c := &columns[i]
			if c.rank != rank || i == columnPort && !manyPorts(v.report) {
				continue
			}
			need := c.width + 1
			if i == 0 {
				need = c.width
			}
			// The key keeps room for names of usual length.
			if rank > 5 && left-need < keyRoom {
				continue
			}
			if rank == 0 || left >= need {
				widths[i] = c.width
				left -= need
			}
		}
	}
	left = max(left, 0)
	longest := 0
	for _, k := range rows {
		longest = max(longest, min(len(k.Key), maxSide))
	}
	give := func(i, most int) {
		if widths[i] == 0 {
			return
		}
		more := min(left, max(most-widths[i], 0))
		widths[i] += more
		left -= more
	}
	give(0, min(longest, 28))
	for i := range columns {
		if i != 0 && i != columnBar && i != trendIndex {
			give(i, min(columns[i].most, v.longest(i, rows)))
		}
	}
	give(columnBar, widths[columnBar]+left/3)
	give(trendIndex, widths[trendIndex]+min(left/2, columns[trendIndex].most))
	give(0, longest)
	give(columnBar, columns[columnBar].most)
	give(trendIndex, columns[trendIndex].most)
	give(0, columns[0].most)
	widths[0] = min(widths[0], v.width)
	return widths
}

// longest is the room that the texts of a column take.
func (v *view) longest(i int, rows []*report.Key) int {
	c := &columns[i]
	if c.text == nil || !c.left {
		return c.most
	}
	n := 0
	for _, k := range rows {
		n = max(n, min(len(c.text(v, k)), c.most))
	}
	return n
}

// keyRoom is what is left to the key before columns of less weight come.
const keyRoom = 7

func manyPorts(r *report.Report) bool {
	for i := 1; r != nil && i < len(r.Keys); i++ {
		if r.Keys[i].Port != r.Keys[0].Port {
			return true
		}
	}
	return false
}

// titles draws the titles of the columns, that of the order marked.
func (v *view) titles(widths [len(columns)]int) *line {
	l := v.line().draw(styleText, " ")
	for i := range columns {
		if widths[i] == 0 {
			continue
		}
		c := &columns[i]
		if i > 0 {
			l.draw(styleText, " ")
		}
		title, look := c.title, styleDim
		switch {
		case i == columnBar:
			title = fmt.Sprintf("0-%.0f%%", v.scale*100)
			if v.report == nil {
				title = ""
			}
		case i == trendIndex && widths[i] > 14:
			title = "LAST 60s"
		}
		used := len(title)
		if i == v.m.sort {
			mark := v.m.glyphs.down
			if v.m.reversed {
				mark = v.m.glyphs.up
			}
			if used < widths[i] {
				title, used = title+mark, used+1
			}
			look = styleBold
		}
		l.draw(look, pad(title, used, widths[i], c.left))
	}
	return l
}

// row draws one key.
func (v *view) row(k *report.Key, widths [len(columns)]int, cursor bool) *line {
	l := v.line()
	if cursor {
		l.draw(styleBold, v.m.glyphs.cursor)
	} else {
		l.draw(styleText, " ")
	}
	for i := range columns {
		c := &columns[i]
		if widths[i] == 0 {
			continue
		}
		if i > 0 {
			l.draw(styleText, " ")
		}
		look := styleText
		if c.look != nil {
			look = c.look(k)
		}
		if i == 0 && cursor {
			l.reverse(look, c.draw(v, k, widths[i]))
			continue
		}
		if c.draw != nil {
			l.draw(look, c.draw(v, k, widths[i]))
			continue
		}
		text, used := clip(c.text(v, k), widths[i], v.m.opts.ASCII)
		l.draw(look, pad(text, used, widths[i], c.left))
	}
	return l
}

// empty says why there are no rows.
func (v *view) empty() {
	m := v.m
	var lines []string
	switch r := v.report; {
	case r == nil:
		lines = []string{"waiting for the first packets ..."}
	case m.filter != "" && len(r.Keys) > 0:
		lines = []string{fmt.Sprintf("none of %d keys has the text of the filter; esc clears it", len(r.Keys))}
	case r.Capture.Connections > 0 && r.Capture.EncryptedConnections == r.Capture.Connections:
		lines = []string{"every connection is encrypted: its keys cannot be seen from here",
			"look where TLS ends: at a proxy's plain side, or in the application"}
	case r.Capture.Packets == 0:
		lines = []string{"no packet came to the port: is this the host, the port and the interface",
			"of the server? --port, --interface and --capture.direction choose others"}
	default:
		lines = []string{"no key was accessed in this window"}
	}
	v.add(v.line())
	for _, text := range lines {
		v.add(v.line().draw(styleDim, "   "+text))
	}
}

// hints is the bottom line: what to press, or the filter while it is typed.
func (v *view) hints(rows, first, visible int) *line {
	m := v.m
	l := v.line().draw(styleText, " ")
	right := ""
	if rows > visible && visible > 0 {
		right = fmt.Sprintf("%d-%d of %d ", first+1, min(first+visible, rows), rows)
	}
	if m.typing || m.filter != "" {
		l.draw(styleBold, "filter ")
		text, used := clip(m.filter, max(l.left-len(right)-26, 4), m.opts.ASCII)
		l.draw(styleText, text)
		if m.typing {
			l.draw(styleCursor, " ")
		}
		l.draw(styleText, strings.Repeat(" ", max(3-used/64, 1)))
	}
	switch {
	case m.typing:
		v.keys(l, len(right), "enter", "keep", "esc", "clear")
	case m.filter != "":
		v.keys(l, len(right), "esc", "clear", "/", "change", "?", "help", "q", "quit")
	default:
		v.keys(l, len(right), m.glyphs.direction, "select", m.glyphs.enter, "detail", "s", "sort", "w", "window", "/", "filter",
			"?", "help", "q", "quit", "space", "pause", "f", "freeze")
	}
	return l.right(len(right)).draw(styleDim, right)
}

// keys draws pairs of a key and what it does, as many as fit before the right
// part.
func (v *view) keys(l *line, right int, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if l.left < len(pairs[i])+len(pairs[i+1])+2+right {
			return
		}
		l.draw(styleBold, pairs[i]).draw(styleDim, " "+pairs[i+1]+"  ")
	}
}
