package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

// maxCards bounds the hot list above the table, which has the rest.
const maxCards = 12

// view is what page.html is filled with.
type view struct {
	Live         bool // served, and not a file
	Fast         bool // of the window of 5 s
	Node         string
	Sources      string
	AtDate, At   string // when it is of, for people
	AtTime       string // the same for machines
	Window       string
	Headline     string
	Figures      []figure
	Health       []tile
	Cards        []row
	MoreCards    int
	Rows         []row
	LeftOut      int // keys that a file has no room for
	SeveralPorts bool
	Trends       bool // there is a history of some key
	Version      string
	inline
}

// figure is one number of the head.
type figure struct{ Name, Value string }

// tile is one thing that may be wrong, and whether it is: its Level is ok,
// note or warn.
type tile struct{ Name, Value, Level string }

// row is one key as it is shown.
type row struct {
	Key, Port, Raw                    string
	State, Age, Since, Action         string
	Share, Bounds                     string
	Bar                               bar
	Rate, ReadsWrites, Bytes, Clients string
	TopClient, Command                string
	Spark                             string // points of a line in a box of 60 x 16
}

// bar is a share with its bounds in a box that is 100 wide.
type bar struct{ Low, Band, At string }

// newView makes the view of a report. st is nil for a file.
func newView(r *report.Report, st *Status) *view {
	v := &view{
		Live: st != nil, Node: report.PrintableKey(r.Node, 0), At: none, Window: windowText(r, st != nil),
		Headline: headline(r), Figures: figures(r), Health: health(r, st),
	}
	var names []string
	for _, s := range r.Sources {
		names = append(names, report.PrintableKey(s, 0))
	}
	v.Sources = strings.Join(names, ", ")
	if !r.To.IsZero() {
		to := r.To.UTC()
		v.AtDate, v.At, v.AtTime = to.Format(time.DateOnly), to.Format("15:04:05 UTC"), to.Format(time.RFC3339)
	}
	scale, port := scaleOf(r.Keys), uint16(0)
	for i := range r.Keys {
		k := &r.Keys[i]
		v.SeveralPorts = v.SeveralPorts || port != 0 && port != k.Port
		port = k.Port
		v.Rows = append(v.Rows, newRow(r, k, scale))
		v.Trends = v.Trends || v.Rows[i].Spark != ""
	}
	for i := range r.Keys {
		switch {
		case !listed(&r.Keys[i]):
		case len(v.Cards) < maxCards:
			v.Cards = append(v.Cards, v.Rows[i])
		default:
			v.MoreCards++
		}
	}
	return v
}

func newRow(r *report.Report, k *report.Key, scale float64) row {
	x := func(share float64) string { return coordinate(min(share/scale, 1) * 100) }
	out := row{
		Key: report.PrintableKey(k.Key, cellKeyWidth), Port: strconv.Itoa(int(k.Port)), State: k.State, Action: k.Action,
		Share: report.Percent(k.Share), Bounds: bounds(k),
		Bar:  bar{x(k.ShareLow), x(k.ShareHigh - k.ShareLow), x(k.Share)},
		Rate: report.Rate(k.AccessesPerSecond), ReadsWrites: k.ReadsWrites(), Bytes: bytesPerSecond(r, k), Clients: clientsText(k),
		TopClient: k.TopClientText(), Command: topCommand(k), Spark: spark(k.History),
	}
	if k.Since != nil {
		out.Age, out.Since = age(r.To.Sub(*k.Since)), k.Since.UTC().Format(time.RFC3339)
	}
	return out
}

// listed reports whether the key is on the hot list.
func listed(k *report.Key) bool {
	return k.State == "hot" || k.State == "cooling" || k.State == "pinned"
}

// scales are the shares that a whole bar may stand for: in few steps, so that
// bars keep their length from one second to the next.
var scales = []float64{.05, .1, .25, .5}

func scaleOf(keys []report.Key) float64 {
	most := 0.0
	for i := range keys {
		most = max(most, keys[i].ShareHigh)
	}
	for _, s := range scales {
		if most <= s {
			return s
		}
	}
	return 1
}

// spark draws counts per second, oldest first. The last second is not over and
// is left out.
func spark(history []uint32) string {
	if len(history) < 3 {
		return ""
	}
	history = history[:len(history)-1]
	most := uint32(1)
	for _, n := range history {
		most = max(most, n)
	}
	var b strings.Builder
	step := 60 / float64(len(history)-1)
	for i, n := range history {
		fmt.Fprintf(&b, "%s,%s ", coordinate(float64(i)*step), coordinate(15-14*float64(n)/float64(most)))
	}
	return strings.TrimSuffix(b.String(), " ")
}

// headline is the answer to the question that one comes with.
func headline(r *report.Report) string {
	hot, cooling, pinned := 0, 0, 0
	var sum uint64
	for i := range r.Keys {
		switch r.Keys[i].State {
		case "hot":
			hot++
			sum += r.Keys[i].Accesses
		case "cooling":
			cooling++
		case "pinned":
			pinned++
		}
	}
	part := percent0(min(float64(sum)/max(float64(r.Accesses), 1), 1))
	switch {
	case hot == 1:
		return "1 hot key takes " + part + " of all accesses"
	case hot > 1:
		return strconv.Itoa(hot) + " hot keys take " + part + " of all accesses"
	case cooling > 0:
		return "No key is hot; " + strconv.Itoa(cooling) + " cooling"
	case pinned > 0:
		return "No key is hot; " + strconv.Itoa(pinned) + " pinned"
	case r.Accesses == 0:
		return "No traffic has been seen"
	}
	return "No key is hot"
}

func windowText(r *report.Report, live bool) string {
	if live {
		return "last " + number(r.Covered()) + " s"
	}
	return age(time.Duration(r.WindowSeconds * float64(time.Second)))
}

func figures(r *report.Report) []figure {
	return []figure{
		{"accesses/s", number(float64(r.Accesses) / r.Seconds())},
		{"distinct keys", number(float64(r.DistinctKeys))},
	}
}
