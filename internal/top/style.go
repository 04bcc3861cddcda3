package top

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/hotsniff/hotsniff/internal/report"
)

// style is a role of text; what it looks like depends on the Options.
type style uint8

const (
	styleText style = iota
	styleDim        // labels, and what is not news
	styleBold
	styleHot
	styleWarn   // probable, cooling, and what was not seen
	stylePinned // by hand
	styleCursor
	numStyles
)

// palette turns roles into looks. Colours are those of the terminal, so that
// they fit its background.
type palette struct {
	plain  bool
	styles [numStyles]lipgloss.Style
}

func newPalette(o *Options) *palette {
	p := &palette{plain: o.Plain}
	p.styles[styleDim] = lipgloss.NewStyle().Faint(true)
	p.styles[styleBold] = lipgloss.NewStyle().Bold(true)
	p.styles[styleHot] = lipgloss.NewStyle().Bold(true)
	p.styles[styleCursor] = lipgloss.NewStyle().Reverse(true)
	if o.Color {
		p.styles[styleHot] = p.styles[styleHot].Foreground(lipgloss.Red)
		p.styles[styleWarn] = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
		p.styles[stylePinned] = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	}
	return p
}

func (p *palette) paint(s style, text string) string {
	if p.plain || s == styleText || strings.TrimSpace(text) == "" && s != styleCursor {
		return text
	}
	return p.styles[s].Render(text)
}

// stateStyle is the look of a key in a state.
func stateStyle(k *report.Key) style {
	switch k.State {
	case "hot":
		return styleHot
	case "probable", "cooling":
		return styleWarn
	case "pinned":
		return stylePinned
	case "banned":
		return styleDim
	}
	return styleText
}

// line is one line of a frame: what does not fit is cut.
type line struct {
	v    *view
	b    strings.Builder
	left int
}

func (v *view) line() *line { return &line{v: v, left: v.width} }

// put adds a text that may be anything.
func (l *line) put(s style, text string) *line {
	text, used := clip(text, l.left, l.v.m.opts.ASCII)
	l.b.WriteString(l.v.palette.paint(s, text))
	l.left -= used
	return l
}

// draw adds a text of this package, without changing it.
func (l *line) draw(s style, text string) *line {
	text = ansi.Truncate(text, l.left, "")
	l.b.WriteString(l.v.palette.paint(s, text))
	l.left -= ansi.StringWidth(text)
	return l
}

// reverse is draw with the colours of text and background exchanged.
func (l *line) reverse(s style, text string) *line {
	text = ansi.Truncate(text, l.left, "")
	l.left -= ansi.StringWidth(text)
	if p := l.v.palette; !p.plain {
		text = p.styles[s].Reverse(true).Render(text)
	}
	l.b.WriteString(text)
	return l
}

// right adds spaces up to where a text of so many cells ends at the edge.
func (l *line) right(cells int) *line {
	return l.draw(styleText, strings.Repeat(" ", max(l.left-cells, 0)))
}

func (l *line) String() string { return strings.TrimRight(l.b.String(), " ") }

// pad returns text in exactly width cells.
func pad(text string, used, width int, left bool) string {
	fill := strings.Repeat(" ", max(width-used, 0))
	if left {
		return text + fill
	}
	return fill + text
}
