package top

import "fmt"

// help draws what every key does and what the graphs mean.
func (v *view) help() {
	g := v.m.glyphs
	v.add(v.line().draw(styleText, " ").draw(styleBold, "hotsniff top").draw(styleDim, "  which keys take an outsized share of the traffic"))
	v.add(v.line())
	arrows := "arrows"
	for _, row := range [][2]string{
		{arrows + ", j k", "select a key; page up and down, home and end as well"},
		{"enter", "everything about the selected key; esc goes back"},
		{"w", "window: the last 60 s, or the last 5 s"},
		{"space", "pause the view, capturing goes on; again: continue"},
		{"f", "freeze the order of the rows, their figures go on; again: let go"},
		{"/", "show keys with a text only; esc shows all"},
		{"s S r", "sort by the next column, by the one before, the other way round"},
		{"1 2 3 4 5", "sort by key, share, accesses/s, writes, bytes/s"},
		{"6 7 8 9 0", "sort by clients, heaviest client, command, state, age"},
		{"q", "quit"},
	} {
		v.add(v.line().draw(styleText, " ").draw(styleBold, fmt.Sprintf("%-12s", row[0])).draw(styleText, row[1]))
	}
	v.add(v.line())
	bar := g.bar(0.5, 0.35, 0.65, 1, 10)
	for _, row := range [][2]string{
		{bar, "share: sure up to the solid part, at most up to the hatched part"},
		{g.spark([]float64{0, .2, .4, .6, .8, 1, .8, .6}, 1), "share in the last minute; as high as its largest one, or 2 %"},
	} {
		v.add(v.line().draw(styleText, " ").draw(styleText, pad(row[0], len([]rune(row[0])), 12, true)).draw(styleText, row[1]))
	}
	for _, row := range []struct {
		s          style
		name, text string
	}{
		{styleHot, "hot", "its share is surely at the threshold or above"},
		{styleWarn, "probable", "its share seems to be, but that is not sure yet (maybe)"},
		{styleWarn, "cooling", "it was hot; it leaves the list after a minute below half (cool)"},
		{stylePinned, "pinned", "on the list by hand (pin)"},
	} {
		v.add(v.line().draw(styleText, " ").draw(row.s, fmt.Sprintf("%-12s", row.name)).draw(styleText, row.text))
	}
	v.footer(v.line().draw(styleText, " ").draw(styleBold, "any key").draw(styleDim, " back"))
}
