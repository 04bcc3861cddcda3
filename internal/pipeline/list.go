package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/topk"
)

// List returns the hot list of the snapshot with advice for each key, the
// largest share first. The publisher fills in node, numbering and times.
// Keys that are known by a prefix only are left out: nobody could use them.
func (s *Snapshot) List(cfg actions.AdviceConfig) *hotlist.List {
	l := &hotlist.List{WindowSeconds: Window.Seconds(), SampleEvery: int64(max(s.Sampling.Every, 1))}
	for i := range s.Ports {
		p := &s.Ports[i]
		l.SampleEvery = max(l.SampleEvery, int64(p.Slow.SampleEvery*p.Slow.EventEvery))
		if seconds := float64(p.Slow.T-p.Slow.From) / 1e9; seconds > 0 {
			l.AccessesPerSecond += float64(p.Slow.Accesses) / seconds
		}
		clients := p.leastClients()
		for j := range p.Slow.Keys {
			k := &p.Slow.Keys[j]
			if k.State == topk.StatePinned && k.Accesses == 0 {
				continue // not of this port: the publisher adds it once for all
			}
			if e, ok := s.listEntry(cfg, p.Port, k, clients); ok && !k.Truncated {
				l.Entries = append(l.Entries, e)
			}
		}
	}
	slices.SortStableFunc(l.Entries, func(a, b hotlist.Entry) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Key, b.Key))
	})
	return l
}

var listStates = map[topk.State]hotlist.State{
	topk.StateHot: hotlist.StateHot, topk.StateCooling: hotlist.StateCooling, topk.StatePinned: hotlist.StatePinned,
}

// leastClients is a lower bound of the client addresses of the port: those of
// its most widely used key. All of them are not counted.
func (p *PortSnapshot) leastClients() int64 {
	n := 0
	for i := range p.Slow.Keys {
		n = max(n, p.Slow.Keys[i].Clients)
	}
	return int64(n)
}

// listEntry turns a key into an entry; false when it is not listed. clients is
// the number of clients of the port.
func (s *Snapshot) listEntry(cfg actions.AdviceConfig, port uint16, k *topk.KeyStat, clients int64) (hotlist.Entry, bool) {
	state, listed := listStates[k.State]
	if !listed {
		return hotlist.Entry{}, false
	}
	e := hotlist.Entry{
		Key: string(k.Key), Port: port, State: state, Share: k.Share, ShareLow: k.ShareLow,
		AccessesPerSecond: k.Rate, Clients: int64(k.Clients), SinceMs: k.Since / 1e6,
	}
	if all := k.Reads + k.Writes; all > 0 {
		e.WriteRatio = float64(k.Writes) / float64(all)
	}
	wish := actions.Rule{TTLMs: k.TTL.Milliseconds(), Copies: k.Copies}
	wish.Action, wish.ActionSet = hotlist.ParseAction(k.Action)
	if p, ok := s.pins[string(k.Key)]; ok && k.State == topk.StatePinned {
		wish = p.rule // as the publisher does: a pin's wishes replace a rule's
	}
	a := actions.Advise(cfg, actions.Figures{
		Share: k.Share, ShareLow: k.ShareLow, AccessesPerSecond: k.Rate, WriteRatio: e.WriteRatio,
		ByteShare: k.BytesShare, Clients: e.Clients, NodeClients: clients, TopClientShare: k.TopClientShare,
		Pinned: k.State == topk.StatePinned, Rule: wish,
	})
	e.Action, e.Reason, e.TTLMs, e.Copies = a.Action, a.Reason, a.TTLMs, a.Copies
	return e, true
}
