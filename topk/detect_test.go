package topk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

const second = int64(time.Second)

// stream feeds Poisson accesses of 100,000 background keys at the given rate
// from t to end; share(t) of them go to key 1.
func (f *feeder) stream(rng *rand.Rand, t, end int64, rate float64, share func(t int64) float64) int64 {
	for {
		t += int64(rng.ExpFloat64() / rate * 1e9)
		if t >= end {
			return end
		}
		id := 2 + rng.Uint64N(100_000)
		if rng.Float64() < share(t) {
			id = 1
		}
		f.add(t, id)
	}
}

// hotAfter returns when key 1 became hot, in seconds after from, -1 if never.
// Another key or an entry before from is an error.
func (f *feeder) hotAfter(from int64) (float64, error) {
	at := -1.0
	for _, e := range f.drain() {
		if e.Kind != EventHot {
			continue
		}
		if string(e.Key) != "key:1" || e.T < from {
			return 0, fmt.Errorf("%s hot %v s after the step", e.Key, float64(e.T-from)/1e9)
		}
		at = float64(e.T-from) / 1e9
	}
	return at, nil
}

func TestAStepToHotIsSeenWithinThreeQuartersOfASecond(t *testing.T) {
	runs := 40
	if raceEnabled {
		runs = 4
	}
	for _, rate := range []float64{1000, 10_000} {
		worst, sum := 0.0, 0.0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 31))
			f := newFeeder(Config{})
			// The step comes at any phase of the slices.
			step := t0 + 12*second + rng.Int64N(second)
			f.stream(rng, t0, step+2*second, rate, func(t int64) float64 {
				if t < step {
					return 0.003
				}
				return 0.26
			})
			delay, err := f.hotAfter(step)
			if err != nil || delay < 0 || delay > 0.75 {
				t.Errorf("%v/s, seed %d: hot after %.3f s (%v); want 0 to 0.75", rate, seed, delay, err)
			}
			worst = max(worst, delay)
			sum += delay
		}
		t.Logf("%v accesses/s: hot after %.3f s on average, %.3f at most", rate, sum/float64(runs), worst)
	}
}

func TestARampIsSeenWithinSevenSecondsOfTheCrossing(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector: 7 million accesses")
	}
	const crossing = (0.02 - 0.003) / (0.26 - 0.003) * 600 // seconds
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 32))
		f := newFeeder(Config{})
		start := t0 + 10*second
		f.stream(rng, t0, start+50*second, 50_000, func(t int64) float64 {
			return 0.003 + 0.257*max(float64(t-start)/1e9, 0)/600
		})
		delay, err := f.hotAfter(start)
		if err != nil || delay < crossing || delay > crossing+7 {
			t.Errorf("seed %d: hot %.2f s after the start of the ramp (%v); want %.2f to %.2f", seed, delay, err, crossing, crossing+7)
		}
		t.Logf("hot %.2f s after the crossing", delay-crossing)
	}
}

func TestADayNearTheThreshold(t *testing.T) {
	if raceEnabled {
		t.Skip("skipped under the race detector: 8.6 million accesses a case")
	}
	day := int64(24 * time.Hour)
	for _, c := range []struct {
		share   float64
		entries uint64
		seeds   uint64
	}{{0.015, 0, 2}, {0.02, 1, 1}} {
		for seed := range c.seeds {
			t.Run(fmt.Sprintf("share %v seed %d", c.share, seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 33))
				f := newFeeder(Config{})
				f.stream(rng, t0, t0+day, 100, func(int64) float64 { return c.share })
				n := f.d.Snapshot().Counters
				if n.BecameHot > c.entries || n.BecameGone > 0 {
					t.Errorf("%d entries, %d gone in 24 h; want at most %d and none", n.BecameHot, n.BecameGone, c.entries)
				}
			})
		}
	}
}

func TestAKeyCoolsStaysTheCooldownAndGoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 34))
	f := newFeeder(Config{})
	phase := t0 + 10*second
	end := phase + 90*second
	f.stream(rng, t0, end+200*second, 500, func(t int64) float64 {
		if t >= phase && t < end {
			return 0.3
		}
		return 0.001
	})
	want := []struct {
		kind     EventKind
		from, to float64 // seconds after phase (hot) or end (others)
	}{{EventHot, 0, 1}, {EventCooling, 50, 62}, {EventGone, 110, 122}}
	got := f.drain()
	if len(got) != len(want) {
		t.Fatalf("%d events: %+v; want %d", len(got), got, len(want))
	}
	for i, w := range want {
		base := end
		if w.kind == EventHot {
			base = phase
		}
		at := float64(got[i].T-base) / 1e9
		if got[i].Kind != w.kind || string(got[i].Key) != "key:1" || at < w.from || at > w.to {
			t.Errorf("event %d: %s of %s at %.2f s; want %s between %v and %v", i, got[i].Kind, got[i].Key, at, w.kind, w.from, w.to)
		}
	}
	if stay := got[2].T - got[1].T; stay != 60*second {
		t.Errorf("cooling for %v; want the cooldown of 60 s", time.Duration(stay))
	}
	if k := f.d.Snapshot().Hot; k != 0 {
		t.Errorf("%d keys listed at the end; want 0", k)
	}
}

func TestAShortBurstStaysHotForTheMinimumStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 35))
	f := newFeeder(Config{})
	phase := t0 + 10*second
	f.stream(rng, t0, phase+100*second, 1000, func(t int64) float64 {
		if t >= phase && t < phase+2*second {
			return 0.3
		}
		return 0.0001
	})
	got := f.drain()
	if len(got) != 2 || got[0].Kind != EventHot || got[1].Kind != EventCooling {
		t.Fatalf("events %+v; want hot, cooling", got)
	}
	if stay := got[1].T - got[0].T; stay < 60*second || stay > 62*second {
		t.Errorf("hot for %v; want the minimum stay of 60 s", time.Duration(stay))
	}
	if got[0].WindowSeconds != 5 || got[1].WindowSeconds != 60 {
		t.Errorf("windows %d and %d; want 5 and 60", got[0].WindowSeconds, got[1].WindowSeconds)
	}
}

// timeline feeds a schedule like that of timeline.pcap: per 10 s the accesses of
// all keys, the steady key (2) and the key of the hot phase (1).
func (f *feeder) timeline(rng *rand.Rand, per10s [][3]int) {
	for i, n := range per10s {
		ids := make([]uint64, 0, n[0])
		for range n[1] {
			ids = append(ids, 2)
		}
		for range n[2] {
			ids = append(ids, 1)
		}
		for len(ids) < n[0] {
			ids = append(ids, 10+rng.Uint64N(5000))
		}
		rng.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
		for j, id := range ids {
			f.add(t0+int64(i)*10*second+int64(j)*10*second/int64(len(ids)), id)
		}
	}
	f.d.Advance(t0 + int64(len(per10s))*10*second)
}

// timelineSchedule draws the script of the capture: 14.4 accesses/s, the steady
// key 6 %, the other one 1 % for 60 s, 40 % for 60 s, then nothing.
func timelineSchedule(rng *rand.Rand) [][3]int {
	var out [][3]int
	for i := range 24 {
		share := 0.01
		if i >= 6 {
			share = 0.4
		}
		if i >= 12 {
			share = 0
		}
		n := [3]int{130 + rng.IntN(30)}
		for range n[0] {
			switch u := rng.Float64(); {
			case u < share:
				n[2]++
			case u < share+0.06*(1-share):
				n[1]++
			}
		}
		out = append(out, n)
	}
	return out
}

// timelineTruth reads the counts of the capture itself, nil where it is not there.
func timelineTruth() [][3]int {
	raw, err := os.ReadFile("../../shared/captures/timeline.pcap.truth.json")
	if err != nil {
		return nil
	}
	var truth struct {
		Script struct {
			Per10s []map[string]int `json:"per_10s"`
		} `json:"script"`
	}
	if json.Unmarshal(raw, &truth) != nil {
		return nil
	}
	var out [][3]int
	for _, m := range truth.Script.Per10s {
		out = append(out, [3]int{m["_requests"], m["config:global"], m["promo:banner"]})
	}
	return out
}

func TestTimelineOfASlowServer(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 36))
	runs := [][][3]int{}
	if truth := timelineTruth(); truth != nil {
		runs = append(runs, truth)
	} else {
		t.Log("the capture's truth file is not there: drawn schedules only")
	}
	drawn := 50
	if raceEnabled {
		drawn = 5
	}
	for range drawn {
		runs = append(runs, timelineSchedule(rng))
	}
	for i, schedule := range runs {
		f := newFeeder(Config{})
		f.timeline(rng, schedule)
		at := map[string]float64{}
		for _, e := range f.drain() {
			at[string(e.Key)+" "+e.Kind.String()] = float64(e.T-t0) / 1e9
			if k := string(e.Key); k != "key:1" && k != "key:2" || e.WindowSeconds != 60 {
				t.Errorf("run %d: %s listed by the %d s window", i, k, e.WindowSeconds)
			}
		}
		check := func(event string, from, to float64) {
			if v, ok := at[event]; !ok || v < from || v > to {
				t.Errorf("run %d: %s at %.1f s (%v); want %v to %v", i, event, v, ok, from, to)
			}
		}
		check("key:1 hot", 60, 72)
		check("key:1 cooling", 120, 182)
		check("key:2 hot", 0, 45)
		if v, ok := at["key:2 cooling"]; ok {
			t.Errorf("run %d: the steady key cools at %.1f s", i, v)
		}
	}
}
