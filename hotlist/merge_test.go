package hotlist

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var t0 = time.UnixMilli(1767225600000)

// nodeListOf makes a list of ttl 15 s, made at t0, whose keys have a ttl of 2 s.
func nodeListOf(node string, epoch int64, seq uint64, rate float64, entries ...Entry) *List {
	for i := range entries {
		entries[i].TTLMs = 2000
	}
	return &List{Node: node, EpochMs: epoch, Seq: seq, AtMs: t0.UnixMilli(), TTLMs: 15000, AccessesPerSecond: rate, Entries: entries}
}

func hotNames(m *merger) string {
	var names []string
	for _, h := range m.merge().list {
		names = append(names, h.Key)
	}
	return strings.Join(names, " ")
}

func TestOrderIsByEpochThenSeq(t *testing.T) {
	m := newMerger()
	f := func(epoch int64, seq uint64, key string, want verdict, list string) {
		t.Helper()
		if got := m.offer(nodeListOf("n", epoch, seq, 1, Entry{Key: key}), 1, false, t0); got != want {
			t.Errorf("(%d,%d): verdict %d, want %d", epoch, seq, got, want)
		}
		if got := hotNames(m); got != list {
			t.Errorf("(%d,%d): list %q, want %q", epoch, seq, got, list)
		}
	}
	f(5, 7, "a", accepted, "a")
	f(5, 7, "b", outOfDate, "a")
	f(5, 6, "b", outOfDate, "a")
	f(4, 99, "b", outOfDate, "a")
	f(5, 8, "c", accepted, "c")
	f(5, 12, "d", accepted, "d") // 9, 10 and 11 never came
	f(6, 1, "e", accepted, "e")  // the publisher started again
	if m.gaps != 3 {
		t.Errorf("gaps = %d, want 3", m.gaps)
	}
}

func TestSilentNodeLosesItsKeysAfterTheirOwnTTL(t *testing.T) {
	m := newMerger()
	l := nodeListOf("n", 1, 1, 1, Entry{Key: "short"}, Entry{Key: "long"})
	l.Entries[1].TTLMs = 10000
	m.offer(l, 100, false, t0)
	f := func(after time.Duration, want string) {
		t.Helper()
		m.expire(t0.Add(after))
		if got := hotNames(m); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
	f(14*time.Second, "long short")
	f(16*time.Second, "long short") // stale since 15 s, short lives for 2 s more
	f(17*time.Second, "long")
	f(25*time.Second, "")
	if m.bytes != 0 || len(m.nodes) != 0 {
		t.Errorf("%d nodes of %d bytes are left", len(m.nodes), m.bytes)
	}
	// Its order is forgotten with it: a clock that was set back is no matter.
	if got := m.offer(nodeListOf("n", 0, 1, 1, Entry{Key: "x"}), 1, false, t0.Add(26*time.Second)); got != accepted {
		t.Errorf("after the node was forgotten: verdict %d", got)
	}
}

func TestRetainedListIsAsOldAsItSays(t *testing.T) {
	m := newMerger()
	if got := m.offer(nodeListOf("n", 1, 1, 1, Entry{Key: "a"}), 1, true, t0.Add(15*time.Second)); got != lapsed {
		t.Errorf("past its ttl: verdict %d", got)
	}
	if got := m.offer(nodeListOf("n", 1, 1, 1, Entry{Key: "a"}), 1, true, t0.Add(10*time.Second)); got != accepted {
		t.Errorf("within its ttl: verdict %d", got)
	}
	if m.expire(t0.Add(17 * time.Second)); hotNames(m) != "" {
		t.Error("it lives for longer than at + ttl + the entry's ttl")
	}
	// A clock ahead of ours does not make a list live longer than its ttl.
	ahead := nodeListOf("f", 1, 1, 1, Entry{Key: "a"})
	ahead.AtMs += 3600_000
	m.offer(ahead, 1, true, t0)
	if m.expire(t0.Add(17 * time.Second)); hotNames(m) != "" {
		t.Error("a list from the future outlives its ttl")
	}
	// A message of the channel is new whatever its clock says.
	if got := m.offer(nodeListOf("n", 1, 1, 1, Entry{Key: "a"}), 1, false, t0.Add(time.Hour)); got != accepted {
		t.Errorf("a message an hour behind our clock: verdict %d", got)
	}
}

func TestEmptyListTakesTheKeysAwayAtOnce(t *testing.T) {
	m := newMerger()
	m.offer(nodeListOf("n", 1, 1, 1, Entry{Key: "a"}), 1, false, t0)
	m.offer(nodeListOf("n", 1, 2, 1), 1, false, t0)
	if got := hotNames(m); got != "" {
		t.Errorf("left: %q", got)
	}
}

func TestNodesAreMergedByTheirRates(t *testing.T) {
	m := newMerger()
	m.offer(nodeListOf("a", 1, 1, 9000,
		Entry{Key: "k", Port: 6379, State: StateCooling, Share: 0.1, ShareLow: 0.09, AccessesPerSecond: 900, WriteRatio: 0.5, Clients: 7, SinceMs: 50, Action: ActionAggregate, Copies: 2},
		Entry{Key: "p", State: StatePinned, Action: ActionLimit, Reason: ReasonManual},
	), 1, false, t0)
	m.offer(nodeListOf("b", 1, 1, 1000,
		Entry{Key: "k", Port: 7000, State: StateHot, Share: 0.3, ShareLow: 0.2, WriteRatio: 0, Clients: 3, SinceMs: 20, Action: ActionLocalize, Copies: 4}, // 300/s by its share
		Entry{Key: "p", State: StateHot, Share: 0.9, AccessesPerSecond: 900, Action: ActionLocalize},
	), 1, false, t0)
	want := []*Hot{
		{Key: "k", Port: 6379, State: StateHot, Share: 0.12, ShareLow: 0.101, NodeShare: 0.3, AccessesPerSecond: 1200, WriteRatio: 0.375, Clients: 7, SinceMs: 20, Nodes: 2, Action: ActionAggregate, TTL: 2 * time.Second, Copies: 2},
		{Key: "p", State: StatePinned, Share: 0.09, NodeShare: 0.9, AccessesPerSecond: 900, Nodes: 2, Action: ActionLimit, Reason: ReasonManual, TTL: 2 * time.Second},
	}
	if d := cmp.Diff(want, m.merge().list, cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(Hot{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestWatcherBounds(t *testing.T) {
	m := newMerger()
	for i := range MaxNodes {
		if got := m.offer(nodeListOf(fmt.Sprint("n", i), 1, 1, 1), 10, false, t0); got != accepted {
			t.Fatalf("node %d: verdict %d", i, got)
		}
	}
	if got := m.offer(nodeListOf("one more", 1, 1, 1), 10, false, t0); got != refused {
		t.Errorf("one node too many: verdict %d", got)
	}
	if got := m.offer(nodeListOf("n1", 1, 2, 1), 10, false, t0); got != accepted {
		t.Errorf("a node that is known: verdict %d", got)
	}
	if got := m.offer(nodeListOf("n1", 1, 3, 1), MaxWatchBytes, false, t0); got != refused {
		t.Errorf("too many bytes: verdict %d", got)
	}
	m.expire(t0.Add(time.Minute))
	if got := m.offer(nodeListOf("one more", 1, 1, 1), 10, false, t0.Add(time.Minute)); got != accepted {
		t.Errorf("after the others lapsed: verdict %d", got)
	}
}

// TestMergerAgainstAModel offers random lists in random order and compares
// with what a subscriber that knows everything would hold.
func TestMergerAgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		m := newMerger()
		type last struct {
			epoch, seq int
			key        string
		}
		model := map[string]last{}
		for range 100 {
			node := fmt.Sprint("n", rnd.IntN(3))
			l := last{1 + rnd.IntN(3), 1 + rnd.IntN(20), fmt.Sprint("k", rnd.IntN(5))}
			m.offer(nodeListOf(node, int64(l.epoch), uint64(l.seq), 1, Entry{Key: l.key}), 1, false, t0)
			if old := model[node]; l.epoch > old.epoch || l.epoch == old.epoch && l.seq > old.seq {
				model[node] = l
			}
		}
		want := map[string]bool{}
		for _, l := range model {
			want[l.key] = true
		}
		v := m.merge()
		if len(v.keys) != len(want) {
			t.Fatalf("seed %d: %d keys, want %d", seed, len(v.keys), len(want))
		}
		for k := range want {
			if v.keys[k] == nil {
				t.Fatalf("seed %d: %s is missing", seed, k)
			}
		}
	}
}
