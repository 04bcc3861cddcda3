package top

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	// maxSide bounds both sides of a frame: larger terminals are not.
	maxSide = 1000

	// linesAbove and linesBelow are what stands around the rows of the table:
	// two lines of header, one of messages, one of titles; one of hints.
	linesAbove = 4
	linesBelow = 1
)

// view is one rendering.
type view struct {
	m             *Model
	palette       *palette
	width, height int
	report        *report.Report // nil before the first sample
	scale         float64        // end of the bars
	seconds       float64        // covered by the report
	out           []string
}

// Render draws the Model in a frame of at most width times height cells, lines
// separated by line feeds. It changes nothing.
func Render(m *Model, width, height int) string {
	v := &view{m: m, palette: newPalette(&m.opts), width: min(max(width, 1), maxSide), height: min(max(height, 1), maxSide), report: m.report()}
	if v.report != nil {
		v.seconds = v.report.Seconds()
		top := 0.0
		for i := range v.report.Keys {
			top = max(top, v.report.Keys[i].Share)
		}
		v.scale = scaleOf(top)
	}
	switch m.screen {
	case screenHelp:
		v.help()
	case screenDetail:
		v.detail()
	default:
		v.table()
	}
	if len(v.out) > v.height {
		v.out = v.out[:v.height]
	}
	return strings.Join(v.out, "\n")
}

// visibleRows is how many rows of the table the screen has room for.
func (m *Model) visibleRows() int { return max(m.height-linesAbove-linesBelow, 1) }

func (v *view) add(l *line) { v.out = append(v.out, l.String()) }

// footer puts a line at the bottom.
func (v *view) footer(l *line) {
	if v.m.opts.Still {
		return
	}
	v.out = v.out[:min(len(v.out), v.height-1)]
	for len(v.out) < v.height-1 {
		v.out = append(v.out, "")
	}
	v.add(l)
}

// header draws where this is from, and what was and was not seen.
func (v *view) header() {
	m := v.m
	l := v.line().draw(styleText, " ").draw(styleBold, "hotsniff")
	if v.report != nil && v.report.Node != "" {
		l.draw(styleText, "  ")
		text, _ := clip(v.report.Node, 40, m.opts.ASCII)
		l.draw(styleBold, text)
	}
	right := v.badges()
	source, _ := clip(m.opts.Source, max(l.left-ansi.StringWidth(right)-3, 0), m.opts.ASCII)
	l.draw(styleDim, "  "+source)
	l.right(ansi.StringWidth(right)).draw(styleText, right)
	v.add(l)
	if v.report == nil {
		v.add(v.line())
	} else {
		v.add(v.figures())
	}
	v.add(v.message())
}

// badges are the state of the view: what is not as usual, the window, the time.
func (v *view) badges() string {
	m := v.m
	var parts []string
	add := func(s style, text string) { parts = append(parts, v.palette.paint(s, text)) }
	if m.paused {
		add(styleCursor, " PAUSED ")
	}
	if m.order != nil {
		add(styleCursor, " FROZEN ")
	}
	window := "60s"
	if m.fast {
		window = "5s"
	}
	if r := v.report; r != nil && r.Covered() < r.WindowSeconds {
		window = report.Short(r.Covered()) + "s of " + window
	}
	add(styleDim, "window "+window)
	if v.report != nil {
		add(styleDim, v.report.To.UTC().Format("15:04:05Z"))
	}
	return strings.Join(parts, "  ") + " "
}

// figure is one number of the second line.
type figure struct {
	text string
	warn bool // something is not seen: it stays when there is no room
	rank int  // others go by rank, the higher first
}

// figures is the second line: how much there is, and how much of it is seen.
func (v *view) figures() *line {
	r, c := v.report, &v.report.Capture
	dropped := report.Short(float64(c.Dropped))
	if c.Dropped > 0 {
		dropped += " (" + report.ShortPercent(float64(c.Dropped)/float64(c.Packets+c.Dropped)) + ")"
	}
	parts := []figure{
		{report.Short(v.m.requestRate()) + " req/s", false, 0},
		{report.Short(float64(r.Accesses)/v.seconds) + " acc/s", false, 4},
		{report.Short(float64(r.DistinctKeys)) + " keys", false, 3},
		{"1:" + strconv.Itoa(max(r.SampleEvery, 1)) + " sampled", r.SampleEvery > 1, 2},
		{dropped + " dropped", c.Dropped > 0, 1},
		{report.ShortPercent(encrypted(c)) + " encrypted", c.EncryptedConnections > 0, 1},
	}
	if v.m.shown.CPURatio > 0 {
		parts = append(parts, figure{report.ShortPercent(v.m.shown.CPURatio) + " cpu", false, 5})
	}
	for len(parts) > 1 && width(parts) > v.width-1 {
		last := 0
		for i, p := range parts {
			if !p.warn && (parts[last].warn || p.rank >= parts[last].rank) {
				last = i
			}
		}
		parts = append(parts[:last], parts[last+1:]...)
	}
	l := v.line().draw(styleText, " ")
	for i, p := range parts {
		if i > 0 {
			l.draw(styleDim, " "+v.m.glyphs.dot+" ")
		}
		if p.warn {
			l.draw(styleWarn, p.text)
			continue
		}
		label := strings.LastIndexByte(p.text, ' ')
		l.draw(styleText, p.text[:label]).draw(styleDim, p.text[label:])
	}
	return l
}

// width is how much room figures take.
func width(parts []figure) int {
	n := 0
	for _, p := range parts {
		n += len(p.text) + 3
	}
	return n - 3
}

func encrypted(c *report.Capture) float64 {
	if c.Connections == 0 {
		return 0
	}
	return float64(c.EncryptedConnections) / float64(c.Connections)
}

// message is the third line: trouble, else news, else what was not seen.
func (v *view) message() *line {
	m := v.m
	l := v.line().draw(styleText, " ")
	switch {
	case m.trouble != "" && v.report == nil:
		return l.put(styleHot, m.trouble)
	case m.trouble != "":
		return l.put(styleHot, "not up to date: "+m.trouble)
	case m.shown != nil && m.shown.Warning != "":
		return l.put(styleHot, m.shown.Warning)
	case m.notice != "":
		return l.put(styleWarn, m.notice)
	case v.report != nil:
		return l.put(styleDim, v.unseen())
	}
	return l
}

// unseen says what the figures do not cover, nothing when they cover all.
func (v *view) unseen() string {
	c := &v.report.Capture
	errors := uint64(0)
	for _, n := range c.DecodeErrors {
		errors += n
	}
	if c.Dropped+c.Gaps+c.EncryptedConnections+errors == 0 {
		return ""
	}
	text := v.report.Unseen()
	text, _, _ = strings.Cut(text, "; keys used only")
	return text
}

// age is how long a key has been on the list.
func (v *view) age(k *report.Key) string {
	if k.Since == nil {
		return ""
	}
	return report.Age(v.report.To.Sub(*k.Since))
}

func portText(k *report.Key) string { return strconv.Itoa(int(k.Port)) }
