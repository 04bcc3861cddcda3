package export

import (
	"cmp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// row is one key of one port: one label value, which may be of several keys.
type row struct {
	port, label string
	seconds     float64 // length of the window
	topk.KeyStat
}

// addRows adds the top keys of a port to rows. Keys that have become one label
// are one row: the sum of what can be added up, the first of what cannot.
func (e emitter) addRows(rows []row, port string, t *topk.Snapshot) []row {
	first := len(rows)
	byLabel := make(map[string]int, e.top)
	rest := 1.0
	seconds := max(float64(t.T-t.From)/1e9, 1)
	for _, k := range pipeline.TopKeys(t.Keys, e.top) {
		rest -= k.Share
		label := keyLabel(k.Key)
		if i, ok := byLabel[label]; ok {
			merge(&rows[first+i].KeyStat, &k)
			continue
		}
		byLabel[label] = len(rows) - first
		rows = append(rows, row{port, label, seconds, k})
	}
	if t.Accesses > 0 {
		e.send(otherShare, max(rest, 0), port)
	}
	return rows
}

func merge(row, k *topk.KeyStat) {
	row.Share += k.Share
	row.ShareLow += k.ShareLow
	row.Rate += k.Rate
	row.Accesses += k.Accesses
	row.Reads += k.Reads
	row.Writes += k.Writes
	row.RequestBytes += k.RequestBytes
	row.ReplyBytes += k.ReplyBytes
	row.Clients = max(row.Clients, k.Clients)
	if k.Since != 0 && (row.Since == 0 || k.Since < row.Since) {
		row.Since, row.State = k.Since, k.State
	}
}

// keys sends the series of all rows: metric by metric and sorted by label, as
// they leave the registry, which then has nothing to sort.
func (e emitter) keys(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.label, b.label), strings.Compare(a.port, b.port))
	})
	both := make([][]*dto.LabelPair, len(rows)) // key and port of each row
	names := []string{"key", "port"}
	for i := range rows {
		both[i] = pairs(names, []string{rows[i].label, rows[i].port})
	}
	for i := range rows {
		r := &rows[i]
		e.pairs(keyShare, r.Share, both[i])
		e.pairs(keyShareLow, r.ShareLow, both[i])
		e.pairs(keyClients, float64(r.Clients), both[i])
		if r.Since == 0 {
			e.pairs(keyHot, 0, both[i])
		} else {
			e.pairs(keyHot, 1, both[i])
			e.pairs(keySince, float64(r.Since)/1e9, both[i])
		}
		writes := 0.0
		if all := r.Reads + r.Writes; all > 0 {
			writes = r.Rate * float64(r.Writes) / float64(all)
		}
		e.pairs(keyRate, r.Rate-writes, append(slices.Clip(both[i]), typeRead))
		e.pairs(keyRate, writes, append(slices.Clip(both[i]), typeWrite))
	}
	for i := range rows {
		e.pairs(keyBytes, float64(rows[i].ReplyBytes)/rows[i].seconds, append([]*dto.LabelPair{directionReply}, both[i]...))
	}
	for i := range rows {
		e.pairs(keyBytes, float64(rows[i].RequestBytes)/rows[i].seconds, append([]*dto.LabelPair{directionRequest}, both[i]...))
	}
}

// Label pairs that every row shares; nobody changes them.
var (
	typeRead         = pairs([]string{"type"}, []string{"read"})[0]
	typeWrite        = pairs([]string{"type"}, []string{"write"})[0]
	directionReply   = pairs([]string{"direction"}, []string{"reply"})[0]
	directionRequest = pairs([]string{"direction"}, []string{"request"})[0]
)
