package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotsniff/hotsniff/hotlist"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

const (
	apps    = 10
	appRate = 600 // reads a second of each

	loopStep  = 2 * time.Second // the key's share jumps to highShare
	loopStop  = 9 * time.Second // hotsniff ends, and with it the list
	loopTotal = 11 * time.Second

	// loopWithin is how soon after the step the load must be off Redis,
	// loopServed the part of the key's reads that Redis may still serve then.
	loopWithin = 2 * time.Second
	loopServed = 0.01

	sampleEvery = 100 * time.Millisecond
)

// reads counts what the applications read of the hot key since the start.
type reads struct{ hot, wrong, failed atomic.Int64 }

// app is one instance of an application: an ordinary client, with a hook that
// serves hot keys from memory.
type app struct {
	plain, rdb *redis.Client
	watch      *hotlist.Watcher
	hook       *hotlist.Hook
}

func newApp(addr string, i int) *app {
	// Each has an address of its own, as on ten hosts.
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}}
	opt := redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dial.DialContext(ctx, network, addr)
		}}
	plainOpt := opt
	a := &app{plain: redis.NewClient(&plainOpt), rdb: redis.NewClient(&opt)}
	a.watch = hotlist.Watch(context.Background(), a.plain, hotlist.WatchConfig{})
	a.hook = hotlist.NewHook(a.watch, hotlist.HookConfig{})
	a.rdb.AddHook(a.hook)
	return a
}

func (a *app) close() {
	a.hook.Close()
	a.watch.Close()
	a.rdb.Close()
	a.plain.Close()
}

// run reads on schedule: the hot key with HGET, which nobody else uses, so that
// Redis' own statistics tell its reads apart; all other keys with GET.
func (a *app) run(ctx context.Context, start time.Time, seed uint64, n *reads) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	next := start.Add(time.Duration(rnd.Float64() * float64(time.Second) / appRate))
	for ctx.Err() == nil {
		time.Sleep(time.Until(next))
		next = next.Add(time.Second / appRate)
		share := lowShare
		if time.Since(start) >= loopStep {
			share = highShare
		}
		if rnd.Float64() >= share {
			if err := a.rdb.Get(ctx, fmt.Sprint("item:", rnd.IntN(100000))).Err(); err != nil && err != redis.Nil && ctx.Err() == nil {
				n.failed.Add(1)
			}
			continue
		}
		v, err := a.rdb.HGet(ctx, hotKey, "price").Result()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			n.failed.Add(1)
		case v != "42":
			n.wrong.Add(1)
		default:
			n.hot.Add(1)
		}
	}
}

// sample is what was read and served up to a moment.
type sample struct {
	at          time.Duration
	hot, served int64 // reads of the hot key by applications, by Redis
	copies      int
}

// loop runs the closed loop; an error means that it did not close.
func loop(ctx context.Context, bin string) error {
	srv, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer srv.Stop()
	admin := redis.NewClient(&redis.Options{Addr: srv.Addr(), Protocol: 2, DisableIdentity: true})
	defer admin.Close()
	if err := admin.HSet(ctx, hotKey, "price", "42").Err(); err != nil {
		return err
	}
	sniffer, err := testkit.StartDaemon(bin, srv.Port, "--publish.redis-url", "redis://"+srv.Addr(), "--node", "demo")
	if err != nil {
		return err
	}
	defer sniffer.Kill()
	var all []*app
	for i := range apps {
		a := newApp(srv.Addr(), i)
		defer a.close()
		all = append(all, a)
		select {
		case <-a.watch.Ready():
		case <-time.After(5 * time.Second):
			return fmt.Errorf("an application does not get the list: %v", a.watch.Status().LastError)
		}
	}
	fmt.Printf(`the closed loop: %d applications read %d keys a second from redis-server on port %d; hotsniff publishes its list there
  %q jumps from %.1f %% to %.0f %% of the reads at %.0f s; hotsniff is stopped at %.0f s
  time   reads of the key   of which Redis served (its own count, INFO commandstats)   copies
`, apps, apps*appRate, srv.Port, hotKey, lowShare*100, highShare*100, loopStep.Seconds(), loopStop.Seconds())

	var n reads
	loadCtx, cancel := context.WithTimeout(ctx, loopTotal)
	defer cancel()
	var wg sync.WaitGroup
	start := time.Now()
	for i, a := range all {
		wg.Go(func() { a.run(loadCtx, start, uint64(i), &n) })
	}
	var stopped time.Duration // when the empty list was out
	wg.Go(func() {
		select {
		case <-loadCtx.Done():
		case <-time.After(time.Until(start.Add(loopStop))):
			sniffer.Stop()
			stopped = time.Since(start)
		}
	})
	samples, err := follow(loadCtx, admin, start, &n, all)
	cancel()
	wg.Wait()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return verdict(samples, stopped, &n)
}

// follow takes a sample ten times a second and prints one a second.
func follow(ctx context.Context, admin *redis.Client, start time.Time, n *reads, all []*app) ([]sample, error) {
	samples := []sample{{}}
	var last sample
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return samples, nil
		case <-tick.C:
		}
		served, err := commandCalls(ctx, admin, "hget")
		if ctx.Err() != nil {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		s := sample{at: time.Since(start), hot: n.hot.Load(), served: served}
		for _, a := range all {
			s.copies += a.hook.Stats().Entries
		}
		samples = append(samples, s)
		if s.at-last.at >= time.Second-sampleEvery/2 {
			fmt.Printf("%5.1f s  %7.0f/s           %7.0f/s %31s %19d\n", s.at.Seconds(), perSecond(last, s, s.hot-last.hot),
				perSecond(last, s, s.served-last.served), percent(s.served-last.served, s.hot-last.hot), s.copies)
			last = s
		}
	}
}

func perSecond(from, to sample, n int64) float64 { return float64(n) / (to.at - from.at).Seconds() }

func percent(part, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(of))
}

// commandCalls asks Redis how often it ran a command.
func commandCalls(ctx context.Context, admin *redis.Client, name string) (int64, error) {
	info, err := admin.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(info, "cmdstat_"+name+":calls=")
	if !ok {
		return 0, nil
	}
	calls, _, _ := strings.Cut(rest, ",")
	return strconv.ParseInt(calls, 10, 64)
}

// between returns the reads of the hot key in a span, and those Redis served.
func between(samples []sample, from, to time.Duration) (hot, served int64, seconds float64) {
	var a, b *sample
	for i := range samples {
		if s := &samples[i]; a == nil && s.at >= from {
			a = s
		} else if a != nil && s.at <= to {
			b = s
		}
	}
	if a == nil || b == nil {
		return 0, 0, 0
	}
	return b.hot - a.hot, b.served - a.served, (b.at - a.at).Seconds()
}

// takenOff returns how long after the step the load was off Redis: the end of
// the last tenth of a second before hotsniff stopped in which Redis served more
// than a tenth of the reads.
func takenOff(samples []sample) time.Duration {
	off := loopStep
	for i := 1; i < len(samples) && samples[i].at <= loopStop; i++ {
		s, before := samples[i], samples[i-1]
		if s.at > loopStep && 10*(s.served-before.served) > s.hot-before.hot {
			off = s.at
		}
	}
	return off - loopStep
}

func verdict(samples []sample, stopped time.Duration, n *reads) error {
	off := takenOff(samples)
	hot0, served0, sec0 := between(samples, loopStep, loopStep+off)
	hot1, served1, sec1 := between(samples, loopStep+off, loopStop)
	hot2, served2, _ := between(samples, stopped+300*time.Millisecond, loopTotal)
	copies := samples[len(samples)-1].copies
	if sec0 == 0 || sec1 == 0 {
		return fmt.Errorf("the load of %s was never taken off Redis", hotKey)
	}
	fmt.Printf(`
the loop
  taken off        %.1f s after the step (counted in tenths of a second)
  before that      Redis served %d of %d reads of the key (%s), %.0f/s
  after that       Redis served %d of %d reads of the key (%s), %.0f/s
  list gone        Redis served %d of %d reads of the key (%s), %d copies left
  wrong values     %d; failed reads %d
`, off.Seconds(), served0, hot0, percent(served0, hot0), float64(served0)/sec0,
		served1, hot1, percent(served1, hot1), float64(served1)/sec1,
		served2, hot2, percent(served2, hot2), copies, n.wrong.Load(), n.failed.Load())
	switch {
	case hot1 < apps*appRate/10:
		return fmt.Errorf("the applications read the key %d times only", hot1)
	case off > loopWithin:
		return fmt.Errorf("the load was taken off %.1f s after the step, later than %v", off.Seconds(), loopWithin)
	case float64(served1) > loopServed*float64(hot1):
		return fmt.Errorf("after that, Redis served %s of the reads, more than %.0f %%", percent(served1, hot1), loopServed*100)
	case copies != 0 || 10*served2 < 9*hot2:
		return fmt.Errorf("the list is gone, but %d copies are left and Redis serves %d of %d reads", copies, served2, hot2)
	case n.wrong.Load()+n.failed.Load() > 0:
		return fmt.Errorf("%d wrong values, %d failed reads", n.wrong.Load(), n.failed.Load())
	}
	return nil
}
