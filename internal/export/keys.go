package export

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// row is one key of one port: one label value, which may be of several keys.
type row struct {
	label, port         string
	share, low          float64
	reads, writes       float64 // a second
	request, reply      float64 // bytes a second
	clients, hot, since float64 // since when it is in the list, 0 if it is not
}

// addRows adds the top keys of a port to rows. Keys that have become one label
// are one row: the sum of what can be added up, the first of what cannot.
func (b *families) addRows(rows []row, port string, t *topk.Snapshot) []row {
	first := len(rows)
	byLabel := make(map[string]int, b.top)
	rest := 1.0
	seconds := max(float64(t.T-t.From)/1e9, 1)
	keys := pipeline.TopKeys(t.Keys, b.top)
	for i := range keys {
		r := newRow(&keys[i], port, seconds)
		rest -= r.share
		if at, ok := byLabel[r.label]; ok {
			rows[first+at].merge(&r)
			continue
		}
		byLabel[r.label] = len(rows) - first
		rows = append(rows, r)
	}
	if t.Accesses > 0 {
		b.send(otherShare, max(rest, 0), port)
	}
	return rows
}

// newRow takes from a key what is exported; its window is so many seconds long.
func newRow(k *topk.KeyStat, port string, seconds float64) row {
	r := row{label: keyLabel(k.Key, k.KeyLen), port: port, share: k.Share, low: k.ShareLow, reads: k.Rate,
		request: float64(k.RequestBytes) / seconds, reply: float64(k.ReplyBytes) / seconds, clients: float64(k.Clients)}
	if all := k.Reads + k.Writes; all > 0 {
		r.writes = k.Rate * float64(k.Writes) / float64(all)
		r.reads -= r.writes
	}
	if k.Since != 0 {
		r.hot, r.since = 1, float64(k.Since)/1e9
	}
	return r
}

func (r *row) merge(o *row) {
	r.share += o.share
	r.low += o.low
	r.reads += o.reads
	r.writes += o.writes
	r.request += o.request
	r.reply += o.reply
	r.clients = max(r.clients, o.clients)
	r.hot = max(r.hot, o.hot)
	if r.since == 0 || o.since != 0 && o.since < r.since {
		r.since = o.since
	}
}

// keys adds the series of all rows, sorted by their labels.
func (b *families) keys(rows []row) {
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(strings.Compare(x.label, y.label), strings.Compare(x.port, y.port))
	})
	n := len(rows)
	if n == 0 {
		return
	}
	labels := make([]string, n)
	names := []string{"key", "port"}
	for i := range rows {
		labels[i] = labelText(names, []string{rows[i].label, rows[i].port})
	}
	each := func(d *desc, value func(r *row) float64) {
		f := b.family(d, n)
		for i := range rows {
			f.series = append(f.series, series{labels: labels[i], value: value(&rows[i])})
		}
	}
	each(keyShare, func(r *row) float64 { return r.share })
	each(keyShareLow, func(r *row) float64 { return r.low })
	each(keyClients, func(r *row) float64 { return r.clients })
	each(keyHot, func(r *row) float64 { return r.hot })
	b.typed(rows, labels)
}

// typed adds the series that have a label beside key and port, or are not of
// every row.
func (b *families) typed(rows []row, labels []string) {
	rate, bytes := b.family(keyRate, 2*len(rows)), b.family(keyBytes, 2*len(rows))
	for i := range rows {
		r := &rows[i]
		rate.series = append(rate.series,
			series{labels: labels[i], tail: `,type="read"`, value: r.reads}, series{labels: labels[i], tail: `,type="write"`, value: r.writes})
		if r.since != 0 {
			f := b.family(keySince, 1)
			f.series = append(f.series, series{labels: labels[i], value: r.since})
		}
		bytes.series = append(bytes.series, series{head: `direction="reply",`, labels: labels[i], value: r.reply})
	}
	for i := range rows {
		bytes.series = append(bytes.series, series{head: `direction="request",`, labels: labels[i], value: rows[i].request})
	}
}
