package page

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
)

// These and assets/js/format.js are one: what one says the other says.

// none stands where there is nothing to say.
const none = "–"

// cellKeyWidth is the room of a key in the table and the hot list; the detail
// of a key shows all of it.
const cellKeyWidth = 64

// percent writes a share.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + "%" }

// bounds writes between which shares the true one is.
func bounds(k *report.Key) string {
	return strings.TrimSuffix(percent(k.ShareLow), "%") + "–" + percent(k.ShareHigh)
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

// rate writes events per second.
func rate(v float64) string {
	if v >= 100 {
		return number(v)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// bytes writes a number of bytes.
func bytes(v float64) string {
	unit := 0
	for v >= 1024 && unit < 4 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + "KMGT"[unit-1:unit] + "iB"
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

// seconds is the length of the time that a report covers.
func seconds(r *report.Report) float64 {
	if s := r.To.Sub(r.From).Seconds(); s > 0 && (r.WindowSeconds <= 0 || s < r.WindowSeconds) {
		return max(s, 1)
	}
	return max(r.WindowSeconds, 1)
}

// bytesPerSecond writes the bytes of a key, requests and replies together.
func bytesPerSecond(r *report.Report, k *report.Key) string {
	s := bytes(float64(k.RequestBytes+k.ReplyBytes)/seconds(r)) + "/s"
	if k.ReplyEstimated {
		s = "~" + s
	}
	return s
}

// readsWrites writes the parts of reads and writes in percent. The smaller
// part is rounded up, so that a few writes never look like none.
func readsWrites(k *report.Key) string {
	all := float64(k.Reads + k.Writes)
	if all == 0 {
		return none
	}
	w := float64(k.Writes) / all * 100
	if w <= 50 {
		w = math.Ceil(w)
	} else {
		w = math.Floor(w)
	}
	return strconv.FormatFloat(100-w, 'f', 0, 64) + "/" + strconv.FormatFloat(w, 'f', 0, 64)
}

// topClient names the heaviest client and the share that it surely has.
func topClient(k *report.Key) string {
	if k.TopClient == nil {
		return none
	}
	if k.TopClient.Share < 0.01 {
		return k.TopClient.Address
	}
	return k.TopClient.Address + " ≥" + percent0(k.TopClient.Share)
}

// topCommand names the most frequent command.
func topCommand(k *report.Key) string {
	best, all := "", uint64(0)
	for name, n := range k.Commands {
		all += n
		if best == "" || n > k.Commands[best] || n == k.Commands[best] && name < best {
			best = name
		}
	}
	if all == 0 {
		return none
	}
	return best + " " + percent0(float64(k.Commands[best])/float64(all))
}

// coordinate writes a coordinate of a drawing, with as many digits as show.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
