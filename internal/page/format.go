package page

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

// These, what they take from report, and assets/js/10-format.js are one: what
// Go says the script says.

// none stands where there is nothing to say.
const none = "-"

// cellKeyWidth is the room of a key in the table and the hot list; the detail
// of a key shows all of it.
const cellKeyWidth = 64

// bounds writes between which shares the true one is.
func bounds(k *report.Key) string {
	return strings.TrimSuffix(report.Percent(k.ShareLow), "%") + "–" + report.Percent(k.ShareHigh)
}

// percent0 writes a share without decimals; what is there is never 0%.
func percent0(share float64) string {
	if share > 0 && share < 0.01 {
		return "<1%"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + "%"
}

// number writes an integer with thousands set apart.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// age writes how long something lasts.
func age(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	switch {
	case s < 60:
		return n(s) + " s"
	case s < 3600:
		return n(s/60) + " min " + n(s%60) + " s"
	case s < 86400:
		return n(s/3600) + " h " + n(s%3600/60) + " min"
	}
	return n(s/86400) + " d " + n(s%86400/3600) + " h"
}

// bytesPerSecond writes the bytes of a key, requests and replies together.
func bytesPerSecond(r *report.Report, k *report.Key) string {
	if k.Unwatched() {
		return none
	}
	s := report.Bytes(uint64(float64(k.Bytes())/r.Seconds())) + "/s"
	if k.ReplyEstimated {
		s = "~" + s
	}
	return s
}

// clientsText writes the number of clients of a key.
func clientsText(k *report.Key) string {
	if k.Unwatched() {
		return none
	}
	return number(float64(k.Clients))
}

// topCommand names the most frequent command and its part.
func topCommand(k *report.Key) string {
	all := uint64(0)
	for _, n := range k.Commands {
		all += n
	}
	best := k.TopCommand()
	if all > 0 {
		best += " " + percent0(float64(k.Commands[best])/float64(all))
	}
	return best
}

// coordinate writes a coordinate of a drawing, with as many digits as show.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
