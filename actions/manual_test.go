package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/hotlist/redistest"
)

func TestPinAndBanReachEverySubscriber(t *testing.T) {
	s := redistest.Start(t)
	ctx := context.Background()
	w := hotlist.Watch(ctx, subscriber(t, s.Addr), hotlist.WatchConfig{})
	t.Cleanup(w.Close)
	<-w.Ready()
	p1 := start(t, Config{Node: "n1", Connection: conn(s), Manual: true})
	p2 := start(t, Config{Node: "n2", Connection: conn(s), Manual: true})
	p1.Publish(listOf("a", "b"))
	p2.Publish(listOf())
	hot := func(want string) {
		t.Helper()
		redistest.Eventually(t, patience, "hot: "+want, func() bool {
			l := &hotlist.List{}
			for _, h := range w.Hot() {
				l.Entries = append(l.Entries, hotlist.Entry{Key: h.Key})
			}
			return keys(l) == want
		})
	}
	hot("a b")

	m := ManualTarget{Client: subscriber(t, s.Addr)}
	if err := m.Pin(ctx, "sale", time.Time{}, time.Hour, Rule{Action: hotlist.ActionReplicate, ActionSet: true, Copies: 8, TTLMs: 700}); err != nil {
		t.Fatal(err)
	}
	hot("a b sale")
	redistest.Eventually(t, patience, "pinned by both nodes", func() bool { h, ok := w.Lookup("sale"); return ok && h.Nodes == 2 })
	h, _ := w.Lookup("sale")
	if h.State != hotlist.StatePinned || h.Action != hotlist.ActionReplicate || h.Reason != hotlist.ReasonManual || h.Copies != 8 || h.TTL != 700*time.Millisecond {
		t.Errorf("pinned as %+v", h)
	}
	if err := m.Ban(ctx, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	hot("b sale")
	if err := m.Pin(ctx, "b", time.Time{}, time.Hour, Rule{}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "b is pinned and keeps its figures", func() bool {
		h, ok := w.Lookup("b")
		return ok && h.State == hotlist.StatePinned && h.AccessesPerSecond == 100
	})
	for _, k := range []string{"sale", "a", "b"} {
		if had, err := m.Unpin(ctx, k); !had || err != nil {
			t.Errorf("unpin %s: %v, %v", k, had, err)
		}
	}
	hot("a b")
	if had, err := m.Unpin(ctx, "never"); had || err != nil {
		t.Errorf("unpin of what is not pinned: %v, %v", had, err)
	}
}

func TestPinBeginsAndEndsByItself(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s), Manual: true})
	p.Publish(listOf("a"))
	tp.wait(t, "a")
	m := ManualTarget{Client: s.Client()}
	if err := m.Pin(context.Background(), "sale", time.Now().Add(time.Second), time.Second, Rule{}); err != nil {
		t.Fatal(err)
	}
	tp.wait(t, "a sale")
	tp.wait(t, "a")
	for _, l := range tp.all() {
		if keys(l) == "a sale" && l.AtMs < p.Manual().Load().Entries()[0].FromMs {
			t.Errorf("pinned %d ms too early", p.Manual().Load().Entries()[0].FromMs-l.AtMs)
		}
	}
}

func TestConfiguredEntriesHoldWithoutRedisRights(t *testing.T) {
	s := redistest.Start(t)
	tp := listen(t, s.Client(), hotlist.DefaultChannel)
	p := start(t, Config{Connection: conn(s), Configured: []ManualEntry{{Key: "p", Op: OpPin}, {Key: "b", Op: OpBan}}})
	p.Publish(listOf("a", "b"))
	tp.wait(t, "a p")
	p.Manual().Configure(nil)
	tp.wait(t, "a b")
}

func TestManualHashIsNotTrusted(t *testing.T) {
	s := redistest.Start(t)
	set := func(k, v string) { s.Do("HSET", hotlist.ManualKey, k, v) }
	set("good", `{"schema":"hotsniff.manual/v1","op":"pin","until":9999999999999,"action":"what","copies":-1,"ttl_ms":-1,"more":[]}`)
	set("not json", `{`)
	set("other schema", `{"schema":"hotsniff.manual/v2","op":"pin","until":9999999999999}`)
	set("other op", `{"schema":"hotsniff.manual/v1","op":"explode","until":9999999999999}`)
	set("without end", `{"schema":"hotsniff.manual/v1","op":"pin"}`)
	set("huge", `{"schema":"hotsniff.manual/v1","op":"pin","until":9999999999999,"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	set(strings.Repeat("k", 2000), `{"schema":"hotsniff.manual/v1","op":"pin","until":9999999999999}`)
	got, ignored, err := readManual(context.Background(), s.Client())
	if err != nil || ignored != 6 {
		t.Errorf("ignored %d, %v", ignored, err)
	}
	if d := cmp.Diff([]ManualEntry{{Key: "good", Op: OpPin, UntilMs: 9999999999999}}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestManualBounds(t *testing.T) {
	s := redistest.Start(t)
	ctx := context.Background()
	m := ManualTarget{Client: s.Client()}
	args := []any{"HSET", hotlist.ManualKey}
	for i := range MaxManual {
		args = append(args, fmt.Sprint("k", i), fmt.Sprintf(`{"schema":"hotsniff.manual/v1","op":"ban","until":%d}`, 9999999990000+i))
	}
	s.Do(args...)
	if err := m.Pin(ctx, "one more", time.Time{}, 0, Rule{}); !errors.Is(err, ErrManualFull) {
		t.Errorf("one too many: %v", err)
	}
	if err := m.Pin(ctx, "k7", time.Time{}, 0, Rule{}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	s.Do("HSET", hotlist.ManualKey, "k8", `{"schema":"hotsniff.manual/v1","op":"pin","until":1}`)
	if err := m.Pin(ctx, "one more", time.Time{}, 0, Rule{}); err != nil {
		t.Errorf("one that takes the place of an old one: %v", err)
	}
	if got := s.Do("HEXISTS", hotlist.ManualKey, "k8"); got != "0" {
		t.Error("the old one is still there")
	}
	s.Do("HSET", hotlist.ManualKey, "even more", `{"schema":"hotsniff.manual/v1","op":"ban","until":5}`)
	got, ignored, err := readManual(ctx, s.Client())
	if len(got) != MaxManual || ignored != 1 || err != nil {
		t.Errorf("read %d, ignored %d, %v", len(got), ignored, err)
	}
	for _, ttl := range []time.Duration{-1, MaxManualTTL + 1} {
		if err := m.Ban(ctx, "k", ttl); err == nil {
			t.Errorf("ttl %v is accepted", ttl)
		}
	}
	if err := m.Ban(ctx, strings.Repeat("k", hotlist.MaxKeyBytes+1), 0); err == nil {
		t.Error("a long key is accepted")
	}
}

func TestEntriesListsWhatHolds(t *testing.T) {
	s := redistest.Start(t)
	m := ManualTarget{Client: s.Client()}
	ctx := context.Background()
	for _, k := range []string{"b", "a"} {
		if err := m.Ban(ctx, k, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.Do("HSET", hotlist.ManualKey, "old", `{"schema":"hotsniff.manual/v1","op":"pin","until":1}`)
	got, err := m.Entries(ctx)
	if err != nil || len(got) != 2 || got[0].Key != "a" || got[0].Op != OpBan {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMergeDoesNotChangeTheDetectorsList(t *testing.T) {
	l := listOf("a", "b")
	set := &ManualSet{entries: []ManualEntry{{Key: "a", Op: OpBan}, {Key: "b", Op: OpPin}, {Key: "c", Op: OpPin, FromMs: 5}, {Key: "d", Op: OpPin, UntilMs: 5}}}
	for now, want := range map[int64]string{4: "b d", 5: "b c"} {
		if got := keys(set.merge(l, now)); got != want {
			t.Errorf("at %d: %q, want %q", now, got, want)
		}
	}
	if keys(l) != "a b" || l.Entries[1].State != hotlist.StateHot {
		t.Error("the list was changed")
	}
	if got := set.next(4); got != 5 {
		t.Errorf("next change at %d", got)
	}
	if got := (&ManualSet{}).merge(l, 1); got != l {
		t.Error("without entries the list is copied for nothing")
	}
}
