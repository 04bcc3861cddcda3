package top

import (
	"cmp"
	"strings"

	"github.com/hotsniff/hotsniff/internal/report"
)

// column is one column of the table.
type column struct {
	title string
	name  string // as help says it
	key   string // that sorts by it; "": nothing does
	left  bool   // aligned to the left
	// width is what it takes, most what it can use; rank tells which columns go
	// first where there is no room: the higher ones. Rank 0 always stays.
	width, most, rank int
	// text is what stands there, any text; draw, if set, draws it instead, in
	// exactly so many cells.
	text  func(v *view, k *report.Key) string
	draw  func(v *view, k *report.Key, width int) string
	look  func(k *report.Key) style
	order func(a, b *report.Key) int // what comes first
}

// Indexes of columns that others name.
const (
	sortShare  = 2
	columnPort = 1
	columnBar  = 3
	trendIndex = 13
)

func descending[T cmp.Ordered](of func(k *report.Key) T) func(a, b *report.Key) int {
	return func(a, b *report.Key) int { return cmp.Compare(of(b), of(a)) }
}

func ascending[T cmp.Ordered](of func(k *report.Key) T) func(a, b *report.Key) int {
	return func(a, b *report.Key) int { return cmp.Compare(of(a), of(b)) }
}

// columns from left to right. It is a table of the program and never changes.
var columns = [...]column{
	{title: "KEY", name: "key", key: "1", left: true, width: 12, most: 1 << 10, look: stateStyle,
		draw:  drawKey,
		order: ascending(func(k *report.Key) string { return k.Key })},
	{title: "PORT", width: 5, rank: 1, look: dim,
		text: func(_ *view, k *report.Key) string { return portText(k) }},
	{title: "SHARE", name: "share", key: "2", width: 6, look: stateStyle,
		text:  func(_ *view, k *report.Key) string { return report.ShortPercent(k.Share) },
		order: descending(func(k *report.Key) float64 { return k.Share })},
	{title: "", left: true, width: 8, most: 40, rank: 4, look: stateStyle,
		draw: func(v *view, k *report.Key, width int) string {
			return v.m.glyphs.bar(k.Share, k.ShareLow, k.ShareHigh, v.scale, width)
		}},
	{title: "BOUNDS", left: true, width: 11, rank: 10, look: dim,
		text: func(_ *view, k *report.Key) string { return report.Bounds(k.ShareLow, k.ShareHigh) }},
	{title: "ACC/S", name: "accesses a second", key: "3", width: 6, rank: 2,
		text:  func(_ *view, k *report.Key) string { return report.Short(k.AccessesPerSecond) },
		order: descending(func(k *report.Key) float64 { return k.AccessesPerSecond })},
	{title: "R/W", name: "reads and writes in percent", key: "4", width: 5, rank: 6,
		text:  func(_ *view, k *report.Key) string { return k.ReadsWrites() },
		order: descending(writeRatio)},
	{title: "B/S", name: "bytes a second, requests and replies", key: "5", width: 6, rank: 7,
		text:  func(v *view, k *report.Key) string { return watched(k, float64(k.Bytes())/v.seconds) },
		order: descending((*report.Key).Bytes)},
	{title: "CLNT", name: "clients", key: "6", width: 4, rank: 8,
		text:  func(_ *view, k *report.Key) string { return watched(k, float64(k.Clients)) },
		order: descending(func(k *report.Key) uint64 { return k.Clients })},
	{title: "TOP CLIENT", name: "heaviest client", key: "7", left: true, width: 18, most: 45, rank: 11,
		text:  func(_ *view, k *report.Key) string { return k.TopClientText() },
		order: descending(topClientShare)},
	{title: "COMMAND", name: "command", key: "8", left: true, width: 8, most: 14, rank: 9,
		text:  func(_ *view, k *report.Key) string { return k.TopCommand() },
		order: ascending((*report.Key).TopCommand)},
	{title: "STATE", name: "state", key: "9", left: true, width: 5, most: 8, rank: 3, look: stateStyle,
		draw:  drawState,
		order: ascending(stateRank)},
	{title: "AGE", name: "time on the list", key: "0", width: 3, most: 4, rank: 5,
		text:  func(v *view, k *report.Key) string { return v.age(k) },
		order: ascending(listedSince)},
	{title: "60s", name: "", left: true, width: 8, most: 60, rank: 5, look: trendStyle,
		draw: drawTrend},
}

func dim(*report.Key) style { return styleDim }

// watched draws a figure of the bytes or clients of a key, where they are known.
func watched(k *report.Key, v float64) string {
	if k.Unwatched() {
		return "-"
	}
	return report.Short(v)
}

// drawKey draws the key, and says where only the beginning of it is known.
func drawKey(v *view, k *report.Key, width int) string {
	key := k.Key
	if key == "" {
		key = `""`
	}
	if k.KeyBytes > int64(len(key)) {
		key += v.m.glyphs.ends
	}
	text, used := clip(key, width, v.m.opts.ASCII)
	return pad(text, used, width, true)
}

// drawState draws a state in short where there is little room.
func drawState(v *view, k *report.Key, width int) string {
	text := k.State
	switch {
	case text == "none":
		text = ""
	case width < 8 && text == "cooling":
		text = "cool"
	case width < 8 && text == "probable":
		text = "maybe"
	case width < 8 && text == "pinned":
		text = "pin"
	case width < 8 && text == "banned":
		text = "ban"
	}
	text, used := clip(text, width, v.m.opts.ASCII)
	return pad(text, used, width, true)
}

// trendStyle keeps the graphs of ordinary keys in the background.
func trendStyle(k *report.Key) style {
	if s := stateStyle(k); s != styleText {
		return s
	}
	return styleDim
}

// drawTrend draws the share over the last minute. Its height is the largest of
// the key's own shares: how large they are is in the bar.
func drawTrend(v *view, k *report.Key, width int) string {
	values := v.m.history.buckets(idOf(k), v.report.To, width)
	return v.m.glyphs.spark(values, trendScale(values))
}

// leastTrend is the least height of a key's graph, the threshold by default:
// what moves far below it is no news.
const leastTrend = 0.02

// trendScale is the top of a key's own graph.
func trendScale(values []float64) float64 {
	top := leastTrend
	for _, v := range values {
		top = max(top, v)
	}
	return top
}

func writeRatio(k *report.Key) float64 {
	return float64(k.Writes) / float64(max(k.Reads+k.Writes, 1))
}

func topClientShare(k *report.Key) float64 {
	if k.TopClient == nil {
		return 0
	}
	return k.TopClient.Share
}

// stateRank puts what needs a look first.
func stateRank(k *report.Key) int {
	if i := strings.Index("hot     probable cooling pinned", k.State); i >= 0 && k.State != "" {
		return i
	}
	return 100
}

// listedSince puts the newest entries of the list first, others last.
func listedSince(k *report.Key) int64 {
	if k.Since == nil {
		return 1
	}
	return -k.Since.Unix()
}
