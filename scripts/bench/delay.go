package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	delayRate  = 5000 // requests a second
	delayShare = 0.26 // of the key of a step, from nothing

	// A step lasts for stepOn; its key must be on the channel within that.
	// The pause after it, up to twice stepOff, gives the steps all phases
	// against hotsniff's clock.
	stepOn  = 1800 * time.Millisecond
	stepOff = 600 * time.Millisecond

	// delayGoal is the second within which hotsniff promises to say it.
	delayGoal = 1.0
)

// steps is the schedule: each key has a name of its own.
type steps struct {
	begin []time.Duration // since the start of the load
}

func newSteps(n int) *steps {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := &steps{}
	at := 2 * time.Second // the windows are full of cold keys
	for range n {
		s.begin = append(s.begin, at)
		at += stepOn + stepOff + time.Duration(rnd.Int64N(int64(stepOff)))
	}
	return s
}

func (s *steps) end() time.Duration { return s.begin[len(s.begin)-1] + stepOn }

// now returns the step that goes on at t, or -1.
func (s *steps) now(t time.Duration) int {
	i, found := slices.BinarySearch(s.begin, t)
	if !found {
		i--
	}
	if i >= 0 && t < s.begin[i]+stepOn {
		return i
	}
	return -1
}

func stepKey(i int) string { return fmt.Sprint("step:", i) }

// arrivals notes when each key first came over the channel.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (a *arrivals) message(payload string) {
	now := time.Now()
	l, err := hotlist.Decode([]byte(payload))
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range l.Entries {
		if _, seen := a.at[l.Entries[i].Key]; !seen {
			a.at[l.Entries[i].Key] = now
		}
	}
}

// delay measures from the first request of a step, the moment at which a key
// that nobody read begins to take 26 %, to the message that lists it, at a
// subscriber of the channel: capture, windows, list, PUBLISH and all waits.
func delay(ctx context.Context, s *settings, t *table) error {
	server, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer server.Stop()
	daemon, err := testkit.StartDaemon(s.bin, server.Port, "--publish.redis-url", "redis://"+server.Addr(), "--node", "bench")
	if err != nil {
		return err
	}
	defer daemon.Kill()
	plan := newSteps(s.steps)
	ctx, cancel := context.WithTimeout(ctx, plan.end())
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	defer client.Close()
	seen := &arrivals{at: make(map[string]time.Time)}
	up := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		var once sync.Once
		hotlist.Listen(ctx, client, hotlist.ListenConfig{OnMessage: seen.message, OnUp: func(context.Context) { once.Do(func() { close(up) }) }})
	})
	select {
	case <-up:
	case <-time.After(5 * time.Second):
		return errors.New("cannot subscribe")
	}
	first, err := drive(ctx, server.Addr(), plan)
	if err != nil {
		return err
	}
	cancel()
	wg.Wait()
	var delays []float64
	for i := range s.steps {
		if at, ok := seen.at[stepKey(i)]; ok {
			delays = append(delays, at.Sub(first[stepKey(i)]).Seconds())
		}
	}
	addDelays(t, delays, s.steps)
	return announced(t, daemon)
}

// drive sends the load of the plan and returns when the first request of each
// step was about to be sent.
func drive(ctx context.Context, addr string, plan *steps) (map[string]time.Time, error) {
	load := &testkit.Workload{Addr: addr, Conns: 10, Rate: delayRate, Keys: 100000, Seed: 1}
	var mu sync.Mutex
	first := make(map[string]time.Time)
	load.Share = func(t time.Duration) float64 {
		if plan.now(t) < 0 {
			return 0
		}
		return delayShare
	}
	load.HotKeyAt = func(t time.Duration) string {
		key := stepKey(plan.now(t))
		mu.Lock()
		defer mu.Unlock()
		if _, seen := first[key]; !seen {
			first[key] = time.Now()
		}
		return key
	}
	err := load.Run(ctx)
	mu.Lock()
	defer mu.Unlock()
	return first, err
}

// addDelays adds the percentiles. The control is one half of the steps beside
// the other: they come in turn.
func addDelays(t *table, delays []float64, steps int) {
	name := fmt.Sprintf("g. first packet of a step from 0 to %.0f %% of %s requests/s to the message at a subscriber: ", delayShare*100, thousands(delayRate))
	t.add(line{what: name + "keys that came", unit: "%", goal: atLeast(100), values: []float64{100 * float64(len(delays)) / float64(steps)}})
	if len(delays) == 0 {
		return
	}
	var even, odd []float64
	for i, d := range delays {
		if i%2 == 0 {
			even = append(even, d)
		} else {
			odd = append(odd, d)
		}
	}
	slices.Sort(delays)
	control := []float64{median(even) / median(odd)}
	t.add(line{what: name + "all", unit: "s", values: delays, goal: atMost(delayGoal), control: control},
		line{what: name + "p90", unit: "s", values: []float64{percentile(delays, 0.9)}},
		line{what: name + "p99", unit: "s", values: []float64{percentile(delays, 0.99)}, goal: atMost(delayGoal)})
}

// percentile returns the value of sorted v below which a part q lies.
func percentile(v []float64, q float64) float64 { return v[min(int(q*float64(len(v))), len(v)-1)] }

// announced adds what hotsniff itself says about the delay from the packet that
// made a key hot to the announcement.
func announced(t *table, daemon *testkit.Daemon) error {
	page, err := lab.Scrape(daemon.URL)
	if err != nil {
		return err
	}
	if n := page.Sum("hotsniff_detection_delay_seconds_count"); n > 0 {
		t.add(line{what: "g. packet time at which a key became hot to its announcement: mean", unit: "s",
			values: []float64{page.Sum("hotsniff_detection_delay_seconds_sum") / n}})
	}
	return nil
}
