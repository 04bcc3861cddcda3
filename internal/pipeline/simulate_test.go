package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/hotsniff/hotsniff/capture"
	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// TestSimulateTraffic runs the whole path over simulated captures with loss,
// reordering, duplicates, cuts, starts in the middle and clocks that are set,
// beside the exact truth. HOTSNIFF_SIM_RUNS sets the number of runs,
// HOTSNIFF_SIM_SEED repeats one.
func TestSimulateTraffic(t *testing.T) {
	runs, first := 1000, uint64(1)
	if raceEnabled || testing.Short() {
		runs = 100
	}
	if v, err := strconv.Atoi(os.Getenv("HOTSNIFF_SIM_RUNS")); err == nil {
		runs = v
	}
	if v, err := strconv.ParseUint(os.Getenv("HOTSNIFF_SIM_SEED"), 10, 64); err == nil {
		runs, first = 1, v
	}
	exact := 0
	for i := range runs {
		seed := first + uint64(i)
		traffic := testkit.Simulate(seed, 6379)
		if traffic.Exact {
			exact++
		}
		if err := simulateRun(t, seed, traffic); err != nil {
			t.Fatalf("HOTSNIFF_SIM_SEED=%d: %v", seed, err)
		}
	}
	if runs >= 100 && (exact < runs/5 || exact > runs*4/5) {
		t.Errorf("%d of %d runs were undamaged: the simulator does not do its work", exact, runs)
	}
}

func simulateRun(t *testing.T, seed uint64, traffic *testkit.Traffic) error {
	whole := simulated(t, traffic, Config{Whole: true, Top: AllKeys})
	if err := compare(whole, traffic); err != nil {
		return err
	}
	if again := simulated(t, traffic, Config{Whole: true, Top: AllKeys}); seed%10 == 0 && !reflect.DeepEqual(whole, again) {
		return fmt.Errorf("two runs over the same packets differ")
	}
	// The same through the windows, with the clock set in the middle, where
	// the slow window holds it all.
	if n := len(traffic.Frames); n > 0 && traffic.Frames[n-1].T-traffic.Frames[0].T > int64(Window)*9/10 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	if n := len(traffic.Frames); n > 0 && rng.IntN(2) == 0 {
		testkit.Shift(traffic.Frames, rng.IntN(n), -int64(rng.IntN(7200))*1e9)
	}
	cfg := Config{Top: AllKeys}
	cfg.Detector.Seed = seed | 1
	return compare(simulated(t, traffic, cfg), traffic)
}

// simulated runs the engine over the traffic, and wants that nothing is left
// in its tables afterwards.
func simulated(t *testing.T, traffic *testkit.Traffic, cfg Config) *report.Report {
	t.Helper()
	src := &packets{}
	for _, f := range traffic.Frames {
		src.all = append(src.all, capture.Packet{Data: f.Data, WireLen: f.Wire, T: f.T, Link: capture.LinkTypeEthernet})
	}
	e, err := New(cfg, src)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := e.Latest()
	if a, d := &s.Assembler, &s.Decoder; a.Flows != 0 || a.BufferedBytes != 0 || d.Partials != 0 || d.Holds != 0 {
		t.Fatalf("left over: %+v %+v", *a, *d)
	}
	return s.Report("", 0)
}

func compare(r *report.Report, traffic *testkit.Traffic) error {
	got := count(r)
	for _, k := range r.Keys {
		sent, sure := traffic.Sent.Keys[k.Key], traffic.Sure.Keys[k.Key]
		if n := int(k.Accesses); n > sent || traffic.Exact && n != sent || n < sure {
			return fmt.Errorf("key %q: got %d accesses; %d were sent, %d are sure", k.Key, n, sent, sure)
		}
		if writes := traffic.Writes[k.Key]; int(k.Writes) > writes || traffic.Exact && int(k.Writes) != writes {
			return fmt.Errorf("key %q: got %d writes; %d were sent", k.Key, k.Writes, writes)
		}
		if share := float64(k.Accesses) / float64(r.Accesses); k.ShareLow > share || k.ShareHigh < share {
			return fmt.Errorf("key %q: share %v is outside [%v, %v]", k.Key, share, k.ShareLow, k.ShareHigh)
		}
	}
	for name, n := range got.commands {
		if sent := traffic.Sent.Commands[name]; n > sent || traffic.Exact && n != sent {
			return fmt.Errorf("command %s: got %d; %d were sent", name, n, sent)
		}
	}
	if got.accesses < traffic.Sure.KeyAccesses || got.requests < traffic.Sure.Requests {
		return fmt.Errorf("got %d requests, %d accesses; sure are %d, %d", got.requests, got.accesses, traffic.Sure.Requests, traffic.Sure.KeyAccesses)
	}
	if traffic.Exact && (got.requests != traffic.Sent.Requests || len(r.Keys) != traffic.Sent.DistinctKeys) {
		return fmt.Errorf("got %d requests, %d keys; want %d, %d", got.requests, len(r.Keys), traffic.Sent.Requests, traffic.Sent.DistinctKeys)
	}
	return nil
}
