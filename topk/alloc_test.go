package topk

import (
	"math/rand/v2"
	"testing"
)

// allocationFree reports whether one of a few runs of f does not allocate; the
// runtime itself does now and then.
func allocationFree(f func()) bool {
	for range 3 {
		if testing.AllocsPerRun(1, f) == 0 {
			return true
		}
	}
	return false
}

func TestDetectorAddDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector, which allocates")
	}
	keys := benchKeys(1.0, 1<<14)
	d := New(Config{Seed: 1, Rules: mustRules(t, Rule{Name: "all", Match: MatchPrefix, Pattern: "product:"})})
	rng := rand.New(rand.NewPCG(1, 2))
	now := t0
	run := func() {
		for _, k := range keys {
			now += 100_000 // passes ticks, slices and seconds
			a := Access{T: now, Key: k, Command: uint16(len(k) % 3), Bytes: 100, Client: client(rng.Uint32N(20))}
			d.AddReply(d.Add(&a), 500, false)
		}
	}
	for range 4 {
		run() // the list is formed
	}
	if !allocationFree(run) {
		t.Error("Add allocates")
	}
	d.SetEventSampleEvery(3)
	for range 40 {
		run() // a key more or less is listed, which allocates
	}
	if !allocationFree(run) {
		t.Error("Add allocates with event sampling")
	}
}

func TestCounterAddDoesNotAllocateForKnownKeys(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector, which allocates")
	}
	keys := benchKeys(1.0, 1<<14)
	c := NewCounter(Config{Seed: 1})
	run := func() {
		for i, k := range keys {
			c.AddReply(c.Add(&Access{T: t0, Key: k, Command: uint16(i & 1), Client: client(uint32(i & 3))}), 500, false)
		}
	}
	run()
	run()
	if !allocationFree(run) {
		t.Error("Add allocates")
	}
}

func TestAnIdleDetectorHasNoTable(t *testing.T) {
	d := New(Config{})
	for i := range int64(100) {
		d.Advance(t0 + i*second)
	}
	s := d.Snapshot()
	if d.t != nil || s.Accesses != 0 || len(s.Keys) != 0 {
		t.Error("an idle port costs something")
	}
	d.AddReply(5, 100, false)
	d.Reconfigure(Config{Threshold: 0.1})
}
