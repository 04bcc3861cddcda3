package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// The figures of reports as people read them: the table, the terminal view and
// the page share these, so that a number looks the same wherever it stands.

// Percent returns a share of 0..1 in percent with two decimals, as in 26.18%.
func Percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + "%" }

// ShortPercent returns a share of 0..1 in percent in at most five characters,
// as in 26.2% and 100%. It never rounds something to nothing, or not quite
// everything to everything.
func ShortPercent(share float64) string {
	switch {
	case share <= 0 || math.IsNaN(share):
		return "0%"
	case share < 0.0005:
		return "<0.1%"
	case share >= 1:
		return "100%"
	case share >= 0.9995:
		return "99.9%"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64) + "%"
}

// Bounds returns the bounds of a share in percent, as in 25.9-26.5%.
func Bounds(low, high float64) string {
	return strconv.FormatFloat(low*100, 'f', 1, 64) + "-" + ShortPercent(high)
}

// Rate returns a number a second, with a decimal below 100.
func Rate(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Short returns a number of 0 or more in at most five characters, with a
// decimal unit where it is large: 14.4, 862, 12.3k, 4.1M.
func Short(v float64) string {
	if !(v > 0) {
		return "0"
	}
	unit := 0
	for v >= 999.5 && unit < len(shortUnits) {
		v, unit = v/1000, unit+1
	}
	if v >= 999.5 {
		return ">999" + shortUnits[len(shortUnits)-1:]
	}
	decimals := 0
	if v < 99.95 && (unit > 0 || v != math.Trunc(v)) {
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if s == "0.0" {
		s = "<0.1"
	}
	if unit > 0 {
		s += shortUnits[unit-1 : unit]
	}
	return s
}

// shortUnits are the units of Short, each a thousand times the one before.
const shortUnits = "kMGTPE"

// Bytes returns a number of bytes in a binary unit, as in 2.0 KiB.
func Bytes(n uint64) string {
	v, unit := float64(n), 0
	for v >= 1024 && unit < 4 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return count(n) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + "KMGT"[unit-1:unit] + "iB"
}

// Age returns a time that has gone by in at most four characters: 12s, 5m, 3h,
// 12d. Less than nothing, which clocks of two machines can make, is 0s.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return ">2y"
}

// ReadsWrites returns the parts of reads and writes in percent, as in 99/1.
// Neither is 0 that is not.
func (k *Key) ReadsWrites() string {
	total := k.Reads + k.Writes
	if total == 0 || k.Unwatched() {
		return "-"
	}
	writes := int(math.Round(100 * float64(k.Writes) / float64(total)))
	if k.Writes > 0 && k.Reads > 0 {
		writes = min(max(writes, 1), 99)
	}
	return fmt.Sprintf("%d/%d", 100-writes, writes)
}

// TopCommand names the most frequent command of the key, "-" for none.
func (k *Key) TopCommand() string {
	best := "-"
	for name, n := range k.Commands {
		if best == "-" || n > k.Commands[best] || n == k.Commands[best] && name < best {
			best = name
		}
	}
	return best
}

// TopClientText returns the heaviest client and the part of the accesses that
// it surely has, as in 10.0.0.7 40%, "-" for none. The part is left out where it
// says nothing: one of n clients has an n-th at least, and of many that are alike
// less than that is sure.
func (k *Key) TopClientText() string {
	switch {
	case k.TopClient == nil:
		return "-"
	case k.TopClient.Share < 0.01 || k.TopClient.Share*float64(k.Clients) < 1:
		return k.TopClient.Address
	}
	return fmt.Sprintf("%s %.0f%%", k.TopClient.Address, k.TopClient.Share*100)
}

// Unwatched reports whether nothing but the accesses of the key is known. Its
// writes, bytes, clients and commands are followed from when it has enough of
// them; the zeros before say nothing.
func (k *Key) Unwatched() bool { return k.Accesses > 0 && k.Clients == 0 }

// known returns a text about writes, bytes or clients of the key, "-" where they are
// not known.
func (k *Key) known(text string) string {
	if k.Unwatched() {
		return "-"
	}
	return text
}

// Bytes returns the bytes of requests and replies together.
func (k *Key) Bytes() uint64 { return k.RequestBytes + k.ReplyBytes }

// Seconds is the length of what the report covers: the window, or what there
// was of it since the capture began. At least a millisecond, so that rates are
// numbers.
func (r *Report) Seconds() float64 {
	covered := r.To.Sub(r.From).Seconds()
	if r.WindowSeconds > 0 && (covered <= 0 || covered > r.WindowSeconds) {
		covered = r.WindowSeconds
	}
	return max(covered, 0.001)
}

// Covered is Seconds as people read it: whole seconds, the one that is not over
// yet included. A whole window of 60 s ends with such a second and so covers 59
// and a part.
func (r *Report) Covered() float64 {
	covered := math.Floor(r.Seconds()) + 1
	if r.WindowSeconds > 0 {
		covered = min(covered, r.WindowSeconds)
	}
	return covered
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
func count(n uint64) string  { return strconv.FormatUint(n, 10) }
