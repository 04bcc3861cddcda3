package topk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheListIsBoundedAndKeepsTheLargest(t *testing.T) {
	rules := mustRules(t, Rule{Name: "all", Match: MatchGlob, Pattern: "*", Share: 0.001})
	d := New(Config{Seed: 1, MaxHot: 20, Rules: rules, Top: 50})
	rng := rand.New(rand.NewPCG(1, 71))
	w := newWeighted(rng, 120, func(i int) float64 { return 200 - float64(i) })
	for i := range int64(600_000) {
		// The larger half comes 10 s later than the rest.
		id := w.next()
		if i < 100_000 && id <= 60 {
			continue
		}
		d.Add(&Access{T: t0 + i*100_000, Key: fmt.Appendf(nil, "k%03d", id), Read: true})
	}
	s := d.Snapshot()
	if s.Hot != 20 || s.Counters.Overflow == 0 {
		t.Errorf("%d listed, overflow %d; want 20 and some", s.Hot, s.Counters.Overflow)
	}
	if s.Counters.BecameHot > 60 {
		t.Errorf("%d entries into a list of 20: it churns", s.Counters.BecameHot)
	}
	ev := d.Events(nil)
	listed := map[string]bool{}
	for _, e := range ev {
		listed[string(e.Key)] = e.Kind != EventGone
	}
	n := 0
	for _, on := range listed {
		if on {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d keys listed by the events; want 20", n)
	}
}

func TestPinnedAndBanned(t *testing.T) {
	f := newFeeder(Config{})
	rng := rand.New(rand.NewPCG(1, 72))
	now := f.stream(rng, t0, t0+10*second, 1000, func(int64) float64 { return 0.3 })
	refused := f.d.SetManual([]Manual{
		{Key: []byte("sale"), Until: now + 20*second},
		{Key: []byte("key:1"), Banned: true},
		{Key: []byte("key:1")}, // the ban wins
		{Key: []byte("key:77")},
	})
	if refused != 0 {
		t.Errorf("%d refused", refused)
	}
	now = f.stream(rng, now, now+10*second, 1000, func(int64) float64 { return 0.3 })
	s := f.d.Snapshot()
	if k := keyOf(t, s, "key:1"); k.State != StateBanned || k.Since != 0 {
		t.Errorf("banned key is %s", k.State)
	}
	if k := keyOf(t, s, "sale"); k.State != StatePinned || k.Cause != CauseManual || k.Accesses != 0 {
		t.Errorf("pinned key without traffic: %+v", *k)
	}
	if k := keyOf(t, s, "key:77"); k.State != StatePinned {
		t.Errorf("pinned key with traffic is %s", k.State)
	}
	if s.Hot != 2 || s.Banned != 1 {
		t.Errorf("%d listed, %d banned; want 2 and 1", s.Hot, s.Banned)
	}
	var kinds []string
	for _, e := range f.drain() {
		kinds = append(kinds, e.Kind.String())
	}
	if !slices.Equal(kinds, []string{"hot", "gone"}) {
		t.Errorf("events %v; want hot, then gone by the ban", kinds)
	}
	f.stream(rng, now, now+20*second, 1000, func(int64) float64 { return 0 })
	s = f.d.Snapshot()
	if got := states(s, StatePinned); !slices.Equal(got, []string{"key:77"}) {
		t.Errorf("pinned %v after the end of sale; want key:77", got)
	}
	f.d.SetManual(nil)
	if s := f.d.Snapshot(); s.Hot != 0 || s.Banned != 0 {
		t.Errorf("%d listed, %d banned after all manual entries went", s.Hot, s.Banned)
	}
}

func TestManualEntriesAreBounded(t *testing.T) {
	d := New(Config{Seed: 1})
	m := make([]Manual, MaxManual+10)
	for i := range m {
		m[i].Key = fmt.Append(nil, i)
	}
	if n := d.SetManual(m); n != 10 {
		t.Errorf("%d refused; want 10", n)
	}
}

func TestAPinOnAnIdlePortIsShown(t *testing.T) {
	d := New(Config{Seed: 1})
	d.SetManual([]Manual{{Key: []byte("sale")}})
	d.Advance(t0)
	s := d.Snapshot()
	if k := keyOf(t, s, "sale"); k.State != StatePinned || k.ShareLow != 0 || k.ShareHigh != 1 {
		t.Errorf("%+v; want pinned with nothing known", *k)
	}
	if d.t != nil {
		t.Error("an idle port has a table")
	}
}

func TestLongKeysAreReportedWhole(t *testing.T) {
	d, c := New(Config{Seed: 1}), NewCounter(Config{Seed: 1})
	whole := bytes.Repeat([]byte("x"), 1000)
	cut := bytes.Repeat([]byte("y"), MaxKeyBytes)
	exact := bytes.Repeat([]byte("z"), slotBytes)
	for i := range int64(3000) {
		for _, a := range []Access{
			{Key: whole, KeyLen: 1000}, {Key: cut, KeyLen: 5000}, {Key: cut, KeyLen: 5001}, {Key: exact}, {Key: nil},
		} {
			a.T, a.Read = t0+i*1e6, true
			d.Add(&a)
			c.Add(&a)
		}
	}
	d.Advance(t0 + 6*second)
	for i, s := range []*Snapshot{d.Snapshot(), c.Snapshot()} {
		if len(s.Keys) != 5 || s.Hot != 5 {
			t.Fatalf("view %d: %d keys, %d hot; want 5", i, len(s.Keys), s.Hot)
		}
		lens := map[int64]int{}
		for j := range s.Keys {
			k := &s.Keys[j]
			lens[k.KeyLen] = len(k.Key)
			if k.Truncated != (k.KeyLen > MaxKeyBytes) || k.Accesses != 3000 {
				t.Errorf("view %d: key of %d: truncated %v, %d accesses", i, k.KeyLen, k.Truncated, k.Accesses)
			}
		}
		for length, known := range map[int64]int{1000: 1000, 5000: 1024, 5001: 1024, 128: 128, 0: 0} {
			if lens[length] != known {
				t.Errorf("view %d: %d bytes of the key of %d; want %d", i, lens[length], length, known)
			}
		}
	}
}

func TestALongHotKeyGetsItsTextAmongManyLongKeys(t *testing.T) {
	d := New(Config{Seed: 1})
	rng := rand.New(rand.NewPCG(1, 73))
	pad := strings.Repeat("p", 300)
	for i := range int64(200_000) {
		key := fmt.Appendf(nil, "%s:%d", pad, rng.IntN(20_000))
		if i > 100_000 && rng.IntN(10) == 0 {
			key = fmt.Appendf(nil, "%s:hot", pad)
		}
		d.Add(&Access{T: t0 + i*100_000, Key: key, Read: true})
	}
	s := d.Snapshot()
	if k := &s.Keys[0]; !strings.HasSuffix(string(k.Key), ":hot") || k.Truncated || k.State != StateHot {
		t.Errorf("top key ends in %q, truncated %v, %s", k.Key[max(len(k.Key)-8, 0):], k.Truncated, k.State)
	}
	for _, e := range d.Events(nil) {
		if !strings.HasSuffix(string(e.Key), ":hot") {
			t.Errorf("event of a key of %d bytes, %d known", e.KeyLen, len(e.Key))
		}
	}
}

func TestNothingIsListedWhenTrafficStarts(t *testing.T) {
	// The first packets are one pipeline of one client.
	f := newFeeder(Config{})
	for i := range int64(500) {
		f.add(t0+i*1000, 1)
	}
	rng := rand.New(rand.NewPCG(1, 74))
	f.stream(rng, t0+second, t0+120*second, 2000, func(int64) float64 { return 0.001 })
	if ev := f.drain(); len(ev) != 0 {
		t.Errorf("events %+v; want none", ev)
	}
}

func TestTenAccessesAreTheLeast(t *testing.T) {
	for _, n := range []int64{9, 10} {
		f := newFeeder(Config{})
		for i := range n {
			f.add(t0+i*second, 1)
		}
		f.d.Advance(t0 + 12*second)
		if got := len(f.drain()); got != int(n-9) {
			t.Errorf("%d accesses: %d events; want %d", n, got, n-9)
		}
	}
}

func TestASnapshotNeverChanges(t *testing.T) {
	f := newFeeder(Config{})
	rng := rand.New(rand.NewPCG(1, 75))
	f.stream(rng, t0, t0+10*second, 1000, func(int64) float64 { return 0.3 })
	s := f.d.Snapshot()
	before := fmt.Sprintf("%+v", *s)
	f.stream(rng, t0+10*second, t0+30*second, 1000, func(int64) float64 { return 0.1 })
	f.d.Snapshot()
	if after := fmt.Sprintf("%+v", *s); after != before {
		t.Error("the snapshot changed")
	}
}

func TestTheFastSnapshotHasFiveSeconds(t *testing.T) {
	f := newFeeder(Config{})
	rng := rand.New(rand.NewPCG(1, 76))
	f.stream(rng, t0, t0+30*second, 1000, func(int64) float64 { return 0.3 })
	f.stream(rng, t0+30*second, t0+40*second, 1000, func(int64) float64 { return 0.1 })
	s := f.d.SnapshotWindow(WindowFast, 3)
	k := keyOf(t, s, "key:1")
	if s.WindowSeconds != 5 || s.Accesses < 4600 || s.Accesses > 5300 || k.Share < 0.08 || k.Share > 0.12 || len(s.Keys) > 3 {
		t.Errorf("window %d s, %d accesses, share %.3f, %d keys", s.WindowSeconds, s.Accesses, k.Share, len(s.Keys))
	}
	if d := time.Duration(s.T - s.From); d < 4500*time.Millisecond || d > 5*time.Second {
		t.Errorf("covers %v; want about 5 s", d)
	}
}

func TestTheRateOfAnEventIsThatOfItsWindow(t *testing.T) {
	f := newFeeder(Config{FastRate: 1e9}) // the slow window decides
	for i := range int64(1000) {
		f.add(t0+i*second/10, 1)
	}
	ev := f.drain()
	if len(ev) != 1 || ev[0].Rate < 9.9 || ev[0].Rate > 10.1 {
		t.Fatalf("events %+v; want one with 10 accesses/s", ev)
	}
	if k := keyOf(t, f.d.Snapshot(), "key:1"); k.Rate < 9.9 || k.Rate > 10.1 {
		t.Errorf("rate %v; want 10", k.Rate)
	}
}

func TestReplayGivesIdenticalSnapshotsAndEvents(t *testing.T) {
	run := func() string {
		f := newFeeder(Config{Seed: 7})
		rng := rand.New(rand.NewPCG(1, 77))
		f.d.SetEventSampleEvery(3)
		f.stream(rng, t0, t0+40*second, 3000, func(t int64) float64 { return float64(t-t0) / 4e11 })
		return fmt.Sprintf("%+v %+v", *f.d.Snapshot(), f.drain())
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs differ")
	}
}

func TestOtherWindowLengths(t *testing.T) {
	for _, w := range []time.Duration{6 * time.Second, 10 * time.Second, 30 * time.Second, 61 * time.Second} {
		f := newFeeder(Config{Window: w, FastWindow: 2 * time.Second})
		rng := rand.New(rand.NewPCG(1, 78))
		f.stream(rng, t0, t0+100*second, 500, func(int64) float64 { return 0.1 })
		s := f.d.Snapshot()
		want := float64(min(int(w/time.Second), 60)) * 500
		if float64(s.Accesses) < 0.85*want || float64(s.Accesses) > 1.1*want {
			t.Errorf("window %v: %d accesses; want about %.0f", w, s.Accesses, want)
		}
		if err := checkTable(f.d); err != nil {
			t.Errorf("window %v: %v", w, err)
		}
		if k := keyOf(t, s, "key:1"); k.State != StateHot || k.Reads != k.Accesses || k.Extrapolated {
			t.Errorf("window %v: %+v", w, *k)
		}
	}
}
