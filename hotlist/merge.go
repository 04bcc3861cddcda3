package hotlist

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// MaxNodes is the most nodes that a watcher follows: as many as a
	// Redis Cluster may have masters.
	MaxNodes = 1024
	// MaxWatchBytes bounds the lists of all nodes together, as they came
	// over the wire. A list of 100 keys is about 25 kB.
	MaxWatchBytes = 32 << 20
)

// Hot is a key as all nodes together see it. Like the list it comes from, it
// is never changed.
type Hot struct {
	Key   string
	Port  uint16 // server port at the node with most of the traffic; 0: pinned for any
	State State  // pinned if any node says so, else hot if any does
	// Share of the accesses of all nodes: each node's share weighs as much
	// as its accesses per second.
	Share float64
	// ShareLow is the lower confidence bound, weighted as Share; 0 when unknown.
	ShareLow float64
	// NodeShare is the largest share at any one node: what saturates.
	NodeShare         float64
	AccessesPerSecond float64 // summed over nodes
	WriteRatio        float64 // weighted as Share
	Clients           int64   // of the node that sees most; clients of several nodes overlap
	SinceMs           int64   // earliest, unix ms
	Nodes             int     // how many list it

	// What the node with most of the traffic advises; a pinned entry goes
	// before all others.
	Action Action
	Reason Reason
	TTL    time.Duration // advised life of a local copy
	Copies int

	// gen is the generation of the key's local copies, of all caches of the
	// watcher: a copy is good as long as the generation is the one it was
	// made in. It is the same counter for as long as the key is listed, and
	// each counter begins above all earlier ones.
	gen *atomic.Uint64
}

// Cacheable reports whether copies are advised at all, local or replicated.
func (h *Hot) Cacheable() bool { return h.Action == ActionLocalize || h.Action == ActionReplicate }

// view is the merged list, immutable.
type view struct {
	keys map[string]*Hot
	list []*Hot // by share, then key
}

// nodeList is what is known of one node.
type nodeList struct {
	list     *List
	size     int       // bytes on the wire
	received time.Time // on our clock
	stale    time.Time // when the list lapses unless renewed
	next     time.Time // when the first entry ends, or an empty list lapses
}

// schedule works next out; the list has changed.
func (n *nodeList) schedule() {
	n.next = n.stale
	for i := range n.list.Entries {
		if end := n.entryEnd(&n.list.Entries[i]); i == 0 || end.Before(n.next) {
			n.next = end
		}
	}
}

// verdict says what became of a list that was offered.
type verdict uint8

const (
	accepted  verdict = iota
	outOfDate         // not newer than what is known of that node
	lapsed            // a retained list past its ttl
	refused           // too many nodes or bytes
)

// merger orders and merges lists. It is pure: the time is passed in. One
// goroutine.
type merger struct {
	nodes map[string]*nodeList
	bytes int
	gaps  uint64 // seq numbers that never came
}

func newMerger() *merger { return &merger{nodes: make(map[string]*nodeList)} }

// offer takes a list in if it is newer than what its node said before. A
// message of the channel is new when it arrives, whatever the clocks of the
// two machines say; a retained list is as old as its own time says.
func (m *merger) offer(l *List, size int, retained bool, now time.Time) verdict {
	ttl := time.Duration(l.TTLMs) * time.Millisecond
	if retained {
		left := time.UnixMilli(l.AtMs).Add(ttl).Sub(now)
		if left <= 0 {
			return lapsed
		}
		ttl = min(ttl, left)
	}
	old := m.nodes[l.Node]
	oldSize := 0
	if old != nil {
		oldSize = old.size
		switch {
		case l.EpochMs < old.list.EpochMs, l.EpochMs == old.list.EpochMs && l.Seq <= old.list.Seq:
			return outOfDate
		case l.EpochMs == old.list.EpochMs:
			m.gaps += l.Seq - old.list.Seq - 1
		}
	}
	if old == nil && len(m.nodes) >= MaxNodes || m.bytes-oldSize+size > MaxWatchBytes {
		return refused
	}
	m.bytes += size - oldSize
	n := &nodeList{list: l, size: size, received: now, stale: now.Add(ttl)}
	n.schedule()
	m.nodes[l.Node] = n
	return accepted
}

// expire forgets what lapsed: a list that was not renewed adds nothing, its
// entries live out their own ttl. It reports whether the merged list changed.
// A node without a list is forgotten with its order, so that a forged number
// or a clock that was set back cannot keep its true lists out for longer.
func (m *merger) expire(now time.Time) (changed bool) {
	for name, n := range m.nodes {
		if now.Before(n.next) {
			continue
		}
		rest := *n.list
		rest.Entries = slices.DeleteFunc(slices.Clone(rest.Entries), func(e Entry) bool { return !now.Before(n.entryEnd(&e)) })
		changed = true
		n.list = &rest
		n.schedule()
		if len(rest.Entries) == 0 {
			m.bytes -= n.size
			delete(m.nodes, name)
		}
	}
	return changed
}

func (n *nodeList) entryEnd(e *Entry) time.Time {
	return n.stale.Add(time.Duration(e.TTLMs) * time.Millisecond)
}

// next returns when expire has something to do, and whether it ever has.
func (m *merger) next() (at time.Time, ok bool) {
	for _, n := range m.nodes {
		if !ok || n.next.Before(at) {
			at, ok = n.next, true
		}
	}
	return at, ok
}

// merge builds the view of all nodes.
func (m *merger) merge() *view {
	v := &view{keys: make(map[string]*Hot)}
	names := make([]string, 0, len(m.nodes))
	total := 0.0
	for name, n := range m.nodes {
		names = append(names, name)
		total += n.list.AccessesPerSecond
	}
	slices.Sort(names) // ties between nodes are broken the same way everywhere
	best := make(map[string]float64)
	for _, name := range names {
		n := m.nodes[name]
		for i := range n.list.Entries {
			v.add(&n.list.Entries[i], n.list.AccessesPerSecond, best)
		}
	}
	for _, h := range v.keys {
		if h.AccessesPerSecond > 0 {
			h.WriteRatio /= h.AccessesPerSecond
		}
		low := h.ShareLow
		h.Share, h.ShareLow = h.NodeShare, 0
		if total > 0 {
			h.Share, h.ShareLow = min(h.AccessesPerSecond/total, 1), min(low/total, 1)
		}
		v.list = append(v.list, h)
	}
	slices.SortFunc(v.list, func(a, b *Hot) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key))
	})
	return v
}

// add joins an entry into its key. Until merge is done, WriteRatio holds the
// writes per second and ShareLow the accesses that are sure.
func (v *view) add(e *Entry, nodeRate float64, best map[string]float64) {
	rate := e.AccessesPerSecond
	if rate == 0 {
		rate = e.Share * nodeRate
	}
	weight := rate
	if e.State == StatePinned {
		weight += maxRate * MaxNodes // above any rate
	}
	h := v.keys[e.Key]
	if h == nil {
		h = &Hot{Key: e.Key, State: e.State, SinceMs: e.SinceMs}
		v.keys[e.Key] = h
	}
	if h.Nodes == 0 || weight > best[e.Key] {
		best[e.Key] = weight
		h.Port, h.Action, h.Reason, h.Copies = e.Port, e.Action, e.Reason, e.Copies
		h.TTL = time.Duration(e.TTLMs) * time.Millisecond
	}
	if stateRank(e.State) > stateRank(h.State) {
		h.State = e.State
	}
	h.NodeShare = max(h.NodeShare, e.Share)
	h.AccessesPerSecond += rate
	h.WriteRatio += e.WriteRatio * rate
	if e.Share > 0 {
		h.ShareLow += rate * min(e.ShareLow/e.Share, 1)
	}
	h.Clients = max(h.Clients, e.Clients)
	h.SinceMs = min(h.SinceMs, e.SinceMs)
	h.Nodes++
}

func stateRank(s State) int {
	switch s {
	case StatePinned:
		return 2
	case StateHot:
		return 1
	}
	return 0
}

// changes lists what a differs in from b: keys that came and keys that left.
func changes(from, to *view) (entered, left []*Hot) {
	for _, h := range to.list {
		if _, had := from.keys[h.Key]; !had {
			entered = append(entered, h)
		}
	}
	for _, h := range from.list {
		if _, has := to.keys[h.Key]; !has {
			left = append(left, h)
		}
	}
	return entered, left
}
