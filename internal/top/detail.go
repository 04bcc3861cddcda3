package top

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	detailKeyLines = 4  // of a long key
	detailCommands = 6  // commands of a key that are listed
	detailIndent   = 11 // width of the labels
	chartLines     = 12 // at most; more says nothing more
)

// detail draws everything about the selected key.
func (v *view) detail() {
	v.header()
	var k *report.Key
	for i := range v.keys0() {
		if idOf(&v.report.Keys[i]) == v.m.selected {
			k = &v.report.Keys[i]
		}
	}
	if k == nil {
		v.wrapped(styleBold, keyText(v.m.selected.key))
		v.add(v.line())
		v.add(v.line().draw(styleDim, " is not among the top keys of this window any more"))
	} else {
		v.detailOf(k)
	}
	l := v.line().draw(styleText, " ")
	v.keys(l, 0, "esc", "back", v.m.glyphs.direction, "other key", "w", "window", "space", "pause", "?", "help", "ctrl+c", "quit")
	v.footer(l)
}

// keys0 are the keys of the report, none without one.
func (v *view) keys0() []report.Key {
	if v.report == nil {
		return nil
	}
	return v.report.Keys
}

func keyText(key string) string {
	if key == "" {
		return `""`
	}
	return key
}

// wrapped adds a text over as many lines as it takes, up to detailKeyLines.
func (v *view) wrapped(s style, text string) {
	for _, part := range wrap(text, v.width-1, detailKeyLines, v.m.opts.ASCII) {
		v.add(v.line().draw(styleText, " ").draw(s, part))
	}
}

// field begins a line with a label.
func (v *view) field(label string) *line {
	return v.line().draw(styleDim, fmt.Sprintf(" %-*s", detailIndent-1, label))
}

func (v *view) detailOf(k *report.Key) {
	v.wrapped(styleBold, keyText(k.Key))
	v.add(v.identity(k))
	v.add(v.line())
	v.add(v.field("share").draw(stateStyle(k), report.Percent(k.Share)).
		put(styleDim, fmt.Sprintf("  surely between %s and %s", report.Percent(k.ShareLow), report.Percent(k.ShareHigh))))
	v.add(v.field("").draw(stateStyle(k), v.m.glyphs.bar(k.Share, k.ShareLow, k.ShareHigh, 1, min(max(v.width-detailIndent-1, 0), 100))))
	l := v.field("accesses").put(styleText, report.Rate(k.AccessesPerSecond)+"/s").put(styleDim, fmt.Sprintf("  %d in %s", k.Accesses, v.span()))
	if k.AccessesError > 0 {
		l.put(styleDim, fmt.Sprintf(", up to %d more while it was not tracked", k.AccessesError))
	}
	v.add(l)
	if k.Unwatched() {
		v.add(v.field("reads").put(styleDim, "and writes, bytes, clients: not known, it has too few accesses"))
		v.chart(k)
		return
	}
	v.add(v.field("reads").put(styleText, strconv.FormatUint(k.Reads, 10)).put(styleDim, "  writes ").put(styleText, strconv.FormatUint(k.Writes, 10)).
		put(styleDim, "  "+k.ReadsWrites()+" %"))
	v.add(v.field("bytes").put(styleText, report.Bytes(k.RequestBytes)).put(styleDim, " of requests  ").
		put(styleText, report.Bytes(k.ReplyBytes)).put(styleDim, " of replies"))
	l = v.field("clients").put(styleText, strconv.FormatUint(k.Clients, 10))
	if k.TopClient != nil {
		l.put(styleDim, "  the heaviest ").put(styleText, k.TopClientText())
	}
	v.add(l)
	v.commands(k)
	v.chart(k)
}

// identity says what the key is and how it stands.
func (v *view) identity(k *report.Key) *line {
	size := int64(len(k.Key))
	if k.KeyBase64 != "" {
		size = int64(base64.StdEncoding.DecodedLen(len(k.KeyBase64)))
		if raw, err := base64.StdEncoding.DecodeString(k.KeyBase64); err == nil {
			size = int64(len(raw))
		}
	}
	state := k.State
	if state == "none" {
		state = "not hot"
	}
	l := v.line().draw(styleText, " ").put(stateStyle(k), state)
	if k.Since != nil {
		l.put(styleDim, " for "+report.Age(v.report.To.Sub(*k.Since))+", since "+k.Since.UTC().Format("15:04:05Z"))
	}
	text := fmt.Sprintf("  port %d  %d bytes long", k.Port, max(size, k.KeyBytes))
	if k.KeyBytes > size {
		text += fmt.Sprintf(", its first %d shown", size)
	}
	if k.KeyBase64 != "" {
		text += ", binary"
	}
	if k.Rule != "" {
		text += "  rule " + k.Rule
	}
	if k.Action != "" && k.Action != "none" {
		text += "  advice " + k.Action
	}
	return l.put(styleDim, text)
}

// span is the time that the report covers.
func (v *view) span() string {
	return time.Duration(v.seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}

// commands lists the commands of a key, the most frequent first.
func (v *view) commands(k *report.Key) {
	type entry struct {
		name string
		n    uint64
	}
	var all []entry
	total := uint64(0)
	for name, n := range k.Commands {
		all = append(all, entry{name, n})
		total += n
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	label := "commands"
	for i, e := range all {
		if i == detailCommands-1 && len(all) > detailCommands {
			v.add(v.field("").draw(styleDim, fmt.Sprintf("and %d more", len(all)-i)))
			break
		}
		share := float64(e.n) / float64(max(total, 1))
		text, used := clip(e.name, 16, v.m.opts.ASCII)
		v.add(v.field(label).draw(styleText, pad(text, used, 16, true)).
			draw(styleText, fmt.Sprintf(" %6s  ", report.ShortPercent(share))).
			draw(styleDim, v.m.glyphs.bar(share, share, share, 1, min(max(v.width-detailIndent-26, 0), 30))))
		label = ""
	}
}

// chart draws the share over the last minute in what room is left.
func (v *view) chart(k *report.Key) {
	height := min(v.height-len(v.out)-3, chartLines)
	width := min(v.width-detailIndent-1, 120)
	if height < 1 || width < 10 {
		return
	}
	values := v.m.history.buckets(idOf(k), v.report.To, width)
	top := 0.0
	for _, share := range values {
		top = max(top, share)
	}
	scale := scaleOf(top)
	v.add(v.line())
	for i, text := range v.m.glyphs.chart(values, scale, height) {
		label := ""
		switch {
		case i == 0:
			label = report.ShortPercent(scale)
		case i == height-1:
			label = "0%"
		case i == height/2 && height > 4:
			label = "last 60s"
		}
		v.add(v.line().draw(styleDim, fmt.Sprintf(" %*s ", detailIndent-2, label)).draw(stateStyle(k), text))
	}
}
