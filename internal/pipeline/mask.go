package pipeline

import (
	"slices"
	"sync/atomic"

	"github.com/hotsniff/hotsniff/topk"
)

// Masker says what is shown instead of a key and of a client's address.
// ok false means that nothing is. Methods may be called from any goroutine;
// privacy.Policy is one.
type Masker interface {
	Key(key []byte) (shown string, ok bool)
	Client(address [16]byte) (shown [16]byte, ok bool)
}

// Masked returns s as m lets it be seen. Keys of a port that are shown under
// one name become one row: what can be added up is the sum, the rest is that
// of the row with the most accesses. s stays as it is.
func (s *Snapshot) Masked(m Masker) *Snapshot {
	out := *s
	out.Ports = slices.Clone(s.Ports)
	for i := range out.Ports {
		p := &out.Ports[i]
		p.Slow, p.Fast = maskView(p.Slow, m), maskView(p.Fast, m)
	}
	out.pins = make(map[string]pin, len(s.pins))
	for key, x := range s.pins {
		if shown, ok := m.Key([]byte(key)); ok {
			out.pins[shown] = x
		}
	}
	return &out
}

// Masked returns the event as m lets it be seen.
func (ev Event) Masked(m Masker) Event {
	shown, _ := m.Key(ev.Key)
	ev.Key = []byte(shown)
	ev.KeyLen = int64(len(ev.Key))
	return ev
}

// MaskLatest returns latest behind m. A snapshot is masked once, however many
// ask for it.
func MaskLatest(latest func() *Snapshot, m Masker) func() *Snapshot {
	type pair struct{ from, to *Snapshot }
	var last atomic.Pointer[pair]
	return func() *Snapshot {
		s := latest()
		if s == nil {
			return nil
		}
		if p := last.Load(); p != nil && p.from == s {
			return p.to
		}
		p := &pair{s, s.Masked(m)}
		last.Store(p)
		return p.to
	}
}

func maskView(t *topk.Snapshot, m Masker) *topk.Snapshot {
	if t == nil {
		return nil
	}
	out := *t
	out.Keys = make([]topk.KeyStat, 0, len(t.Keys))
	row := make(map[string]int, len(t.Keys))
	for i := range t.Keys {
		k := t.Keys[i]
		shown, ok := m.Key(k.Key)
		if !ok {
			continue
		}
		if shown != string(k.Key) {
			k.Key, k.KeyLen, k.Truncated, k.Hash = []byte(shown), int64(len(shown)), false, 0
		}
		if at, ok := row[shown]; ok {
			mergeKey(&out.Keys[at], &k)
			continue
		}
		row[shown] = len(out.Keys)
		out.Keys = append(out.Keys, k)
	}
	for i := range out.Keys {
		maskClient(&out.Keys[i], m) // after merging, which compares addresses
	}
	slices.SortFunc(out.Keys, topk.CompareKeys)
	return &out
}

func maskClient(k *topk.KeyStat, m Masker) {
	shown, ok := m.Client(k.TopClient)
	if k.TopClient = shown; !ok {
		k.TopClientShare = 0 // which says that there is none to show
	}
}

// listRank orders states by how much they matter to who reads a row.
var listRank = [...]int{topk.StateNone: 0, topk.StateBanned: 1, topk.StateProbable: 2, topk.StateCooling: 3, topk.StatePinned: 4, topk.StateHot: 5}

// mergeKey adds k to the row of a key with at least as many accesses.
func mergeKey(row, k *topk.KeyStat) {
	mergeClients(row, k)
	if listRank[k.State] > listRank[row.State] {
		row.State, row.Cause, row.Rule, row.Group, row.Action, row.TTL, row.Copies = k.State, k.Cause, k.Rule, k.Group, k.Action, k.TTL, k.Copies
	}
	if k.Since != 0 && (row.Since == 0 || k.Since < row.Since) {
		row.Since = k.Since
	}
	row.Share = min(row.Share+k.Share, 1)
	row.ShareLow = min(row.ShareLow+k.ShareLow, 1)
	row.ShareHigh = min(row.ShareHigh+k.ShareHigh, 1)
	row.Accesses += k.Accesses
	row.AccessesError += k.AccessesError
	row.SampledAccesses += k.SampledAccesses
	row.Rate += k.Rate
	row.Reads += k.Reads
	row.Writes += k.Writes
	row.RequestBytes += k.RequestBytes
	row.ReplyBytes += k.ReplyBytes
	row.ReplyBytesEstimated = row.ReplyBytesEstimated || k.ReplyBytesEstimated
	row.BytesShare = min(row.BytesShare+k.BytesShare, 1)
	row.Detailed = row.Detailed && k.Detailed
	row.Extrapolated = row.Extrapolated || k.Extrapolated
	row.OtherCommands += k.OtherCommands
	row.Commands = mergeCommands(row.Commands, k.Commands)
	row.History = mergeHistory(row.History, k.History)
}

// mergeClients goes before the accesses are added up. Clients may be the same
// ones, so their number is that of the largest set, a floor; two keys with one
// client each are no single client unless it is the same.
func mergeClients(row, k *topk.KeyStat) {
	known := row.TopClientShare > 0 && k.TopClientShare > 0
	same := known && row.TopClient == k.TopClient
	if row.Clients == 1 && k.Clients == 1 && known && !same {
		row.Clients = 2
	}
	row.Clients = max(row.Clients, k.Clients)
	total := float64(row.Accesses + k.Accesses)
	if total == 0 {
		return
	}
	accesses := row.TopClientShare * float64(row.Accesses) // surely its part still
	if same {
		accesses += k.TopClientShare * float64(k.Accesses)
	}
	row.TopClientShare = min(accesses/total, 1)
}

// mergeCommands returns the sum of both; neither is changed.
func mergeCommands(a, b []topk.CommandCount) []topk.CommandCount {
	out := slices.Clone(a)
next:
	for _, c := range b {
		for i := range out {
			if out[i].Command == c.Command {
				out[i].Count += c.Count
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// mergeHistory returns the sum of both, whose last elements are of one second;
// neither is changed.
func mergeHistory(a, b []uint32) []uint32 {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	skip := len(a) - len(b)
	for i, n := range b {
		out[skip+i] += n
	}
	return out
}
