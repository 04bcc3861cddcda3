package pipeline

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/topk"
)

// headMasker shows what stands before the colon, hides "gone:" keys and the
// last byte of addresses.
type headMasker struct{ calls int }

func (m *headMasker) Key(key []byte) (string, bool) {
	m.calls++
	head, _, _ := bytes.Cut(key, []byte(":"))
	return string(head), string(head) != "gone"
}

func (m *headMasker) Client(a [16]byte) ([16]byte, bool) {
	a[15] = 0
	return a, a[14] != 0xee
}

func maskedSnapshot() *Snapshot {
	view := &topk.Snapshot{T: 2e9, From: 1e9, Accesses: 100, Keys: []topk.KeyStat{
		{Key: []byte("user:1"), KeyLen: 6, Hash: 1, Accesses: 40, Share: 0.4, ShareLow: 0.3, ShareHigh: 0.5, Rate: 4, Reads: 30, Writes: 10,
			Clients: 2, TopClient: [16]byte{14: 1, 15: 9}, TopClientShare: 0.5,
			Commands: []topk.CommandCount{{Command: 1, Count: 40}}, History: []uint32{1, 2, 3}},
		{Key: []byte("promo"), KeyLen: 5, Accesses: 30, Share: 0.3, TopClient: [16]byte{14: 0xee}, TopClientShare: 1},
		{Key: []byte("user:2"), KeyLen: 6, Accesses: 10, Share: 0.1, ShareLow: 0.05, ShareHigh: 0.9, Rate: 1, Reads: 10,
			State: topk.StateHot, Since: 7, Rule: "r", Clients: 5,
			Commands: []topk.CommandCount{{Command: 1, Count: 4}, {Command: 2, Count: 6}}, History: []uint32{5}},
		{Key: []byte("gone:1"), KeyLen: 6, Accesses: 5},
	}}
	return &Snapshot{T: 2e9, Ports: []PortSnapshot{{Port: 6379, Slow: view}}, pins: map[string]pin{"user:1": {}, "gone:1": {}}}
}

func TestMaskedMergesRowsAndLeavesTheOriginal(t *testing.T) {
	s, same := maskedSnapshot(), maskedSnapshot()
	got := s.Masked(&headMasker{})
	if !reflect.DeepEqual(s, same) {
		t.Error("masking changed the snapshot")
	}
	want := []topk.KeyStat{
		{Key: []byte("user"), KeyLen: 4, Accesses: 50, Share: 0.5, ShareLow: 0.35, ShareHigh: 1, Rate: 5, Reads: 40, Writes: 10,
			State: topk.StateHot, Since: 7, Rule: "r", Clients: 5, TopClient: [16]byte{14: 1}, TopClientShare: 0.4,
			Commands: []topk.CommandCount{{Command: 1, Count: 44}, {Command: 2, Count: 6}}, History: []uint32{1, 2, 8}},
		{Key: []byte("promo"), KeyLen: 5, Accesses: 30, Share: 0.3, TopClient: [16]byte{14: 0xee}},
	}
	if keys := got.Ports[0].Slow.Keys; !reflect.DeepEqual(keys, want) {
		t.Errorf("got\n%+v\nwant\n%+v", keys, want)
	}
	if len(got.pins) != 1 || got.Ports[0].Fast != nil {
		t.Errorf("got pins %v, fast %v", got.pins, got.Ports[0].Fast)
	}
}

func TestMaskedSnapshotsAreMadeOnce(t *testing.T) {
	m := &headMasker{}
	s := maskedSnapshot()
	latest := MaskLatest(func() *Snapshot { return s }, m)
	first := latest()
	calls := m.calls
	if latest() != first || m.calls != calls || calls == 0 {
		t.Errorf("masked again: %d calls, then %d", calls, m.calls)
	}
	s = maskedSnapshot()
	if latest() == first {
		t.Error("a new snapshot is not masked")
	}
	s = nil
	if latest() != nil {
		t.Error("no snapshot became one")
	}
}

func TestMaskedEventsHoldNoClearName(t *testing.T) {
	ev := Event{Event: topk.Event{Key: []byte("user:secret"), KeyLen: 11}}
	if got := ev.Masked(&headMasker{}); string(got.Key) != "user" || got.KeyLen != 4 || strings.Contains(got.Report("n").Key, "secret") {
		t.Errorf("got %q", got.Key)
	}
	if string(ev.Key) != "user:secret" {
		t.Error("masking changed the event")
	}
}

// TestMergedRowsAreNoSingleClient: each key has one client, and only where it is
// the same one has the row of both; whether addresses are shown or not.
func TestMergedRowsAreNoSingleClient(t *testing.T) {
	one, other, hidden := [16]byte{15: 1}, [16]byte{15: 2}, [16]byte{14: 0xee, 15: 1}
	hiddenToo := [16]byte{14: 0xee, 15: 2}
	for _, c := range []struct {
		what    string
		clients [3][16]byte
		want    int
		share   float64
	}{
		{"one client", [3][16]byte{one, one, one}, 1, 1},
		{"two in one network", [3][16]byte{one, other, one}, 2, 0.75},
		{"two that are not shown", [3][16]byte{hidden, hiddenToo, hidden}, 2, 0},
		{"the last is another", [3][16]byte{one, one, other}, 2, 0.75},
	} {
		view := &topk.Snapshot{}
		for i, client := range c.clients {
			k := topk.KeyStat{Key: []byte{'u', ':', byte('1' + i)}, Accesses: 20, Clients: 1, TopClient: client, TopClientShare: 1}
			if i == 0 {
				k.Accesses = 40
			}
			view.Keys = append(view.Keys, k)
		}
		s := &Snapshot{Ports: []PortSnapshot{{Slow: view}}}
		keys := s.Masked(&headMasker{}).Ports[0].Slow.Keys
		if len(keys) != 1 || keys[0].Clients != c.want || keys[0].TopClientShare != c.share || keys[0].TopClient[15] != 0 {
			t.Errorf("%s: got %+v; want %d clients and a share of %v", c.what, keys, c.want, c.share)
		}
	}
}
