package export

import (
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

// keys sends the series of each key. Keys that have become one label are one
// row: the sum of what can be added up, the first of what cannot.
func (e emitter) keys(port string, t *topk.Snapshot) {
	rows := make(map[string]*topk.KeyStat, len(t.Keys))
	order := make([]string, 0, len(t.Keys))
	rest := 1.0
	for _, k := range pipeline.TopKeys(t.Keys, e.top) { // copies: rows are added up
		rest -= k.Share
		label := keyLabel(k.Key)
		if row, ok := rows[label]; ok {
			merge(row, &k)
			continue
		}
		rows[label] = &k
		order = append(order, label)
	}
	for _, label := range order {
		e.key(port, label, t, rows[label])
	}
	if t.Accesses > 0 {
		e.send(otherShare, max(rest, 0), port)
	}
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

// key sends the series of one row.
func (e emitter) key(port, label string, t *topk.Snapshot, k *topk.KeyStat) {
	e.send(keyShare, k.Share, port, label)
	e.send(keyShareLow, k.ShareLow, port, label)
	seconds := max(float64(t.T-t.From)/1e9, 1)
	writes := 0.0
	if k.Reads+k.Writes > 0 {
		writes = k.Rate * float64(k.Writes) / float64(k.Reads+k.Writes)
	}
	e.send(keyRate, k.Rate-writes, port, label, "read")
	e.send(keyRate, writes, port, label, "write")
	e.send(keyBytes, float64(k.RequestBytes)/seconds, port, label, "request")
	e.send(keyBytes, float64(k.ReplyBytes)/seconds, port, label, "reply")
	e.send(keyClients, float64(k.Clients), port, label)
	if k.Since == 0 {
		e.send(keyHot, 0, port, label)
		return
	}
	e.send(keyHot, 1, port, label)
	e.send(keySince, float64(k.Since)/1e9, port, label)
}
