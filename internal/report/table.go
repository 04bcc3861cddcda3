package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Column is one column of a report with a row for each key.
type Column struct {
	Name string              // as in the header of a CSV file
	Text func(k *Key) string // for people
	CSV  func(k *Key) string // for programs; nil: as for people
}

// Title is the name as people read it.
func (c *Column) Title() string { return strings.ToUpper(strings.ReplaceAll(c.Name, "_", " ")) }

// Value is the field of k in a CSV file.
func (c *Column) Value(k *Key) string {
	if c.CSV == nil {
		return c.Text(k)
	}
	return c.CSV(k)
}

// keyWidth is the room of a key in the table: with it a row of an ordinary
// report fits 160 columns.
const keyWidth = 40

// Columns returns the columns of the table, the CSV file and the page: one
// list for all, so that they cannot drift apart.
func Columns() []Column {
	return []Column{
		{"key", func(k *Key) string { return PrintableKey(k.Key, keyWidth) }, func(k *Key) string { return PrintableKey(k.Key, 0) }},
		{"port", func(k *Key) string { return strconv.Itoa(int(k.Port)) }, nil},
		{"state", func(k *Key) string { return k.State }, nil},
		{"share", func(k *Key) string { return Percent(k.Share) }, func(k *Key) string { return float(k.Share) }},
		{"low", func(k *Key) string { return Percent(k.ShareLow) }, func(k *Key) string { return float(k.ShareLow) }},
		{"high", func(k *Key) string { return Percent(k.ShareHigh) }, func(k *Key) string { return float(k.ShareHigh) }},
		{"accesses", accesses, func(k *Key) string { return count(k.Accesses) }},
		{"per_second", func(k *Key) string { return Rate(k.AccessesPerSecond) }, func(k *Key) string { return float(k.AccessesPerSecond) }},
		{"reads", func(k *Key) string { return k.known(count(k.Reads)) }, func(k *Key) string { return count(k.Reads) }},
		{"writes", func(k *Key) string { return k.known(count(k.Writes)) }, func(k *Key) string { return count(k.Writes) }},
		{"request_bytes", func(k *Key) string { return k.known(Bytes(k.RequestBytes)) }, func(k *Key) string { return count(k.RequestBytes) }},
		{"reply_bytes", func(k *Key) string { return k.known(replyBytes(k)) }, func(k *Key) string { return count(k.ReplyBytes) }},
		{"clients", func(k *Key) string { return k.known(count(k.Clients)) }, func(k *Key) string { return count(k.Clients) }},
		{"top_client", (*Key).TopClientText, nil},
		{"command", (*Key).TopCommand, nil},
	}
}

// WriteTable writes the keys as an aligned table, then the summary: what was
// counted, and what could not be seen.
func (r *Report) WriteTable(w io.Writer) error {
	columns := Columns()
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range columns {
		fmt.Fprintf(tw, "%s\t", columns[i].Title())
	}
	fmt.Fprintln(tw)
	for i := range r.Keys {
		for j := range columns {
			fmt.Fprintf(tw, "%s\t", columns[j].Text(&r.Keys[i]))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s\n", r.Counted(), r.Unseen())
	return err
}

// Counted says in a line what was counted.
func (r *Report) Counted() string {
	s := fmt.Sprintf("%d requests, %d key accesses of about %d keys in %s at %s",
		r.Requests, r.Accesses, r.DistinctKeys,
		time.Duration(r.WindowSeconds*float64(time.Second)).Round(time.Millisecond), strings.Join(printable(r.Sources), ", "))
	if r.SampleEvery > 1 {
		s += fmt.Sprintf(" (sampled 1 in %d: %d accesses)", r.SampleEvery, r.SampledAccesses)
	}
	return s
}

// Unseen says in a line what the figures do not cover.
func (r *Report) Unseen() string {
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

func accesses(k *Key) string {
	if k.AccessesError == 0 {
		return count(k.Accesses)
	}
	return fmt.Sprintf("%d (-%d)", k.Accesses, k.AccessesError)
}

// replyBytes marks what was shared out over the requests of pipelines.
func replyBytes(k *Key) string {
	if k.ReplyEstimated {
		return "~" + Bytes(k.ReplyBytes)
	}
	return Bytes(k.ReplyBytes)
}
