package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// column is one column of the table and of the CSV file: one list for both,
// so that they cannot drift apart.
type column struct {
	name  string // CSV header, and in upper case with spaces the table's
	table func(k *Key) string
	csv   func(k *Key) string
}

// keyWidth is the room of a key in the table: with it a row of an ordinary
// report fits 160 columns.
const keyWidth = 40

var columns = []column{
	{"key", func(k *Key) string { return PrintableKey(k.Key, keyWidth) }, func(k *Key) string { return PrintableKey(k.Key, 0) }},
	{"port", func(k *Key) string { return strconv.Itoa(int(k.Port)) }, nil},
	{"state", func(k *Key) string { return k.State }, nil},
	{"share", func(k *Key) string { return percent(k.Share) }, func(k *Key) string { return float(k.Share) }},
	{"low", func(k *Key) string { return percent(k.ShareLow) }, func(k *Key) string { return float(k.ShareLow) }},
	{"high", func(k *Key) string { return percent(k.ShareHigh) }, func(k *Key) string { return float(k.ShareHigh) }},
	{"accesses", accesses, func(k *Key) string { return count(k.Accesses) }},
	{"per_second", func(k *Key) string { return rate(k.AccessesPerSecond) }, func(k *Key) string { return float(k.AccessesPerSecond) }},
	{"reads", func(k *Key) string { return count(k.Reads) }, nil},
	{"writes", func(k *Key) string { return count(k.Writes) }, nil},
	{"request_bytes", func(k *Key) string { return bytesText(k.RequestBytes) }, func(k *Key) string { return count(k.RequestBytes) }},
	{"reply_bytes", replyBytes, func(k *Key) string { return count(k.ReplyBytes) }},
	{"clients", func(k *Key) string { return count(k.Clients) }, nil},
	{"top_client", topClient, topClient},
	{"command", topCommand, topCommand},
}

// WriteTable writes the keys as an aligned table, then the summary: what was
// counted, and what could not be seen.
func (r *Report) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		fmt.Fprintf(tw, "%s\t", strings.ToUpper(strings.ReplaceAll(c.name, "_", " ")))
	}
	fmt.Fprintln(tw)
	for i := range r.Keys {
		for _, c := range columns {
			fmt.Fprintf(tw, "%s\t", c.table(&r.Keys[i]))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s\n", r.counted(), r.unseen())
	return err
}

// WriteCSV writes the keys as CSV with a header line.
func (r *Report) WriteCSV(w io.Writer) error {
	cw := csv.NewWriter(w)
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	cw.Write(row)
	for i := range r.Keys {
		for j, c := range columns {
			text := c.csv
			if text == nil {
				text = c.table
			}
			row[j] = text(&r.Keys[i])
		}
		cw.Write(row)
	}
	cw.Flush()
	return cw.Error()
}

// counted is the first summary line.
func (r *Report) counted() string {
	s := fmt.Sprintf("%d requests, %d key accesses of about %d keys in %s at %s",
		r.Requests, r.Accesses, r.DistinctKeys,
		time.Duration(r.WindowSeconds*float64(time.Second)).Round(time.Millisecond), strings.Join(printable(r.Sources), ", "))
	if r.SampleEvery > 1 {
		s += fmt.Sprintf(" (sampled 1 in %d: %d accesses)", r.SampleEvery, r.SampledAccesses)
	}
	return s
}

// unseen is the second summary line: what the figures do not cover.
func (r *Report) unseen() string {
	c := &r.Capture
	s := fmt.Sprintf("not seen: %d packets dropped, %d gaps, %d of %d connections encrypted",
		c.Dropped, c.Gaps, c.EncryptedConnections, c.Connections)
	reasons := make([]string, 0, len(c.DecodeErrors))
	for name, n := range c.DecodeErrors {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%s %d", name, n))
		}
	}
	slices.Sort(reasons)
	if len(reasons) > 0 {
		s += "; not decoded: " + strings.Join(reasons, ", ")
	}
	return s + "; keys used only inside scripts and on unix sockets never show"
}

func printable(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = PrintableKey(n, 0)
	}
	return out
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + "%" }
func float(v float64) string       { return strconv.FormatFloat(v, 'g', 6, 64) }
func count(n uint64) string        { return strconv.FormatUint(n, 10) }

func rate(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func accesses(k *Key) string {
	if k.AccessesError == 0 {
		return count(k.Accesses)
	}
	return fmt.Sprintf("%d (-%d)", k.Accesses, k.AccessesError)
}

func bytesText(n uint64) string {
	v, unit := float64(n), 0
	for v >= 1024 && unit < 4 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return count(n) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + "KMGT"[unit-1:unit] + "iB"
}

// replyBytes marks what was shared out over the requests of pipelines.
func replyBytes(k *Key) string {
	if k.ReplyEstimated {
		return "~" + bytesText(k.ReplyBytes)
	}
	return bytesText(k.ReplyBytes)
}

func topClient(k *Key) string {
	if k.TopClient == nil {
		return "-"
	}
	return fmt.Sprintf("%s %.0f%%", k.TopClient.Address, k.TopClient.Share*100)
}

// topCommand names the most frequent command of the key.
func topCommand(k *Key) string {
	best := "-"
	for name, n := range k.Commands {
		if best == "-" || n > k.Commands[best] || n == k.Commands[best] && name < best {
			best = name
		}
	}
	return best
}
