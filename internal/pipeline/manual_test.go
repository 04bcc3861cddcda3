package pipeline

import (
	"fmt"
	"math"
	"testing"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/topk"
)

// traffic sends 4,000 requests within 4 s of which every fourth reads star and
// the others one of 100 keys.
func (c *client) traffic() {
	for i := range 4000 {
		key := "star"
		if i%4 != 0 {
			key = fmt.Sprint("plain:", i%100)
		}
		c.t += 1e6
		c.send(testkit.ACK, testkit.AppendCommand(nil, "GET", key))
	}
}

func find(keys []report.Key, name string) *report.Key {
	for i := range keys {
		if keys[i].Key == name {
			return &keys[i]
		}
	}
	return nil
}

func TestPinsAndBansRuleTheSnapshot(t *testing.T) {
	e := newEngine(t, Config{Top: 5})
	c := newClient(e, 1)
	c.traffic()
	if k := find(e.Latest().Report("n", 5).Keys, "star"); k == nil || k.State != "hot" {
		t.Fatalf("got %+v; want star to be hot before anything is set", k)
	}
	begin := c.t
	e.SetManual([]actions.ManualEntry{
		{Key: "star", Op: actions.OpBan},
		{Key: "plain:1", Op: actions.OpPin, Rule: actions.Rule{Action: hotlist.ActionReplicate, ActionSet: true}},
		{Key: "asleep", Op: actions.OpPin, UntilMs: math.MaxInt64},
		{Key: "later", Op: actions.OpPin, FromMs: begin/1e6 + 10_000},
		{Key: "over", Op: actions.OpPin, UntilMs: begin/1e6 - 1},
	})
	c.traffic()
	s := e.Latest()
	r, fast := s.Report("n", 5), s.FastReport("n", 5)
	if find(r.Keys, "star") != nil || find(fast.Keys, "star") != nil {
		t.Error("the banned key is still there")
	}
	if k := find(r.Keys, "plain:1"); k == nil || k.State != "pinned" || k.Since == nil || k.Action != "replicate" {
		t.Errorf("got %+v; want plain:1 pinned, with the action that was wished for", k)
	}
	if k := find(r.Keys, "asleep"); k == nil || k.State != "pinned" || k.Accesses != 0 || k.Since.UnixNano() < begin {
		t.Errorf("got %+v; want asleep pinned without traffic, since it was pinned", k)
	}
	if find(r.Keys, "later") != nil || find(r.Keys, "over") != nil {
		t.Error("pins hold before their time or after it")
	}
	if len(r.Keys) != 5 {
		t.Errorf("got %d keys; want 5 although one is banned", len(r.Keys))
	}
	l := s.List(actions.AdviceConfig{})
	if len(l.Entries) != 1 || l.Entries[0].Key != "plain:1" || l.Entries[0].Reason != hotlist.ReasonManual || l.Entries[0].Copies == 0 {
		t.Errorf("got %+v; want plain:1 alone, by hand", l.Entries)
	}
	c.t = begin + 11e9
	c.traffic()
	if k := find(e.Latest().Report("n", 5).Keys, "later"); k == nil || k.State != "pinned" {
		t.Errorf("got %+v; want later pinned when its time has come", k)
	}
	e.SetManual(nil)
	c.traffic()
	r = e.Latest().Report("n", 5)
	if k := find(r.Keys, "star"); k == nil || k.State != "hot" || find(r.Keys, "asleep") != nil {
		t.Errorf("got %+v; want star hot again and no pin left", r.Keys)
	}
}

// TestPortsMetLaterKnowTheBans: the set comes before the first request.
func TestPortsMetLaterKnowTheBans(t *testing.T) {
	e := newEngine(t, Config{})
	e.SetManual([]actions.ManualEntry{{Key: "star", Op: actions.OpBan}})
	c := newClient(e, 1)
	c.traffic()
	r := e.Latest().Report("n", 20)
	if r.Accesses == 0 || find(r.Keys, "star") != nil {
		t.Errorf("got %d accesses, %+v; want no star among them", r.Accesses, find(r.Keys, "star"))
	}
}

// TestOneClientOfManyIsLimited: the clients of the port are told from its most
// widely used key.
func TestOneClientOfManyIsLimited(t *testing.T) {
	s := &PortSnapshot{Slow: window(keyStat("wide", 9), keyStat("narrow", 1))}
	if n := s.leastClients(); n != 9 {
		t.Errorf("got %d clients; want 9", n)
	}
	snap := &Snapshot{Ports: []PortSnapshot{*s}}
	for _, e := range snap.List(actions.AdviceConfig{}).Entries {
		if want := map[string]hotlist.Action{"wide": hotlist.ActionLocalize, "narrow": hotlist.ActionLimit}[e.Key]; e.Action != want {
			t.Errorf("%s: got %v; want %v", e.Key, e.Action, want)
		}
	}
}

func keyStat(name string, clients int) topk.KeyStat {
	k := topk.KeyStat{Key: []byte(name), State: topk.StateHot, Since: 1, Accesses: 60_000, Rate: 1000, Reads: 60_000, Share: 0.3, Clients: clients}
	if clients == 1 {
		k.TopClientShare = 1
	}
	return k
}

func window(keys ...topk.KeyStat) *topk.Snapshot {
	return &topk.Snapshot{T: 60e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 200_000, Keys: keys}
}
