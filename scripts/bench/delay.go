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
)

const (
	delayRate  = 5000 // requests a second
	delayShare = 0.26 // of the key of a step, from nothing

	// A step lasts for stepOn; its key must be on the channel within that.
	// The pause after it, up to twice stepOff, gives the steps all phases
	// against hotsniff's clock.
	stepOn  = 1800 * time.Millisecond
	stepOff = 600 * time.Millisecond
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
func delay(bin string, n int) error {
	server, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer server.Stop()
	daemon, err := testkit.StartDaemon(bin, server.Port, "--publish.redis-url", "redis://"+server.Addr(), "--node", "bench")
	if err != nil {
		return err
	}
	defer daemon.Kill()
	plan := newSteps(n)
	fmt.Printf("from packet to subscriber: %d steps of a new key from 0 to %.0f %% of %d requests/s, %.0f s:\n",
		n, delayShare*100, delayRate, plan.end().Seconds())
	ctx, cancel := context.WithTimeout(context.Background(), plan.end())
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
	load := &testkit.Workload{Addr: server.Addr(), Conns: 10, Rate: delayRate, Keys: 100000, Seed: 1}
	var mu sync.Mutex
	first := make(map[string]time.Time) // when the first request of a step was about to be sent
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
	if err := load.Run(ctx); err != nil {
		return err
	}
	cancel()
	wg.Wait()
	var delays []time.Duration
	for i := range n {
		if at, ok := seen.at[stepKey(i)]; ok {
			delays = append(delays, at.Sub(first[stepKey(i)]))
		}
	}
	return printDelays(delays, n)
}

func printDelays(delays []time.Duration, n int) error {
	if len(delays) < n {
		return fmt.Errorf("%d of %d keys never came over the channel", n-len(delays), n)
	}
	slices.Sort(delays)
	at := func(q float64) float64 { return delays[min(int(q*float64(n)), n-1)].Seconds() }
	fmt.Printf("  p50 %.2f s, p90 %.2f s, p99 %.2f s, least %.2f s, most %.2f s\n", at(0.5), at(0.9), at(0.99), at(0), at(1))
	return nil
}
