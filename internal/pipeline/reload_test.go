package pipeline

import (
	"testing"
	"time"

	"github.com/hotsniff/hotsniff/topk"
)

func rules(t *testing.T, list ...topk.Rule) *topk.RuleSet {
	t.Helper()
	set, err := topk.CompileRules(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestReconfigureKeepsWindowsAndHistory: new thresholds and rules judge what
// was counted before, and what was hot stays hot since then.
func TestReconfigureKeepsWindowsAndHistory(t *testing.T) {
	e := newEngine(t, Config{Top: 5})
	c := newClient(e, 1)
	c.traffic()
	before := e.Latest().Report("n", 5)
	star := find(before.Keys, "star")
	if star == nil || star.State != "hot" || len(before.Keys) != 5 {
		t.Fatalf("got %+v; want star to be hot among 5 keys", before.Keys)
	}
	e.Reconfigure(topk.Config{Threshold: .004, Rules: rules(t, topk.Rule{Match: topk.MatchExact, Pattern: "plain:1", Ignore: true},
		topk.Rule{Name: "the star", Match: topk.MatchPrefix, Pattern: "sta", Copies: 7})}, 8)
	c.traffic()
	after := e.Latest().Report("n", 8)
	if after.Accesses < before.Accesses+3900 || !after.From.Equal(before.From) {
		t.Errorf("got %d accesses from %v; want those from before, %d from %v, and the new ones", after.Accesses, after.From, before.Accesses, before.From)
	}
	now := find(after.Keys, "star")
	if now == nil || now.State != "hot" || !now.Since.Equal(*star.Since) || now.Rule != "the star" || now.Accesses < star.Accesses+900 {
		t.Errorf("got %+v; want star hot since %v with all its accesses and the new rule", now, star.Since)
	}
	if find(after.Keys, "plain:1") != nil || len(after.Keys) < 8 {
		t.Errorf("got %+v; want at least 8 keys without the ignored one", after.Keys)
	}
	if k := find(e.Latest().Report("n", 200).Keys, "plain:2"); k == nil || k.State != "hot" || !k.Since.After(*star.Since) {
		t.Errorf("got %+v; want plain:2 hot by the lower threshold, since then", k)
	}

	e.Reconfigure(topk.Config{Threshold: .9, Cooldown: time.Second}, 5)
	for range 20 {
		c.traffic()
	}
	if k := find(e.Latest().Report("n", 5).Keys, "star"); k == nil || k.State == "hot" || k.State == "cooling" {
		t.Errorf("got %+v; want star off the list by the higher threshold", k)
	}
}

// TestPortsMetLaterAreReconfiguredToo: the reload comes before the first request.
func TestPortsMetLaterAreReconfiguredToo(t *testing.T) {
	e := newEngine(t, Config{})
	e.Reconfigure(topk.Config{Threshold: .9}, 5)
	c := newClient(e, 1)
	c.traffic()
	if k := find(e.Latest().Report("n", 5).Keys, "star"); k == nil || k.State != "none" {
		t.Errorf("got %+v; want star judged by the new threshold", k)
	}
}
