// The demo shows the main job on real traffic: it starts a redis-server on a
// free loopback port, drives a load at it in which one key grows from 0.3 % to
// 26 % of the requests, runs `hotsniff run` on the port with live capture, and
// prints what hotsniff says beside what the load truly was. Then it closes the
// loop: ten applications follow the list that hotsniff publishes and keep the
// key's reads off Redis (loop.go). It ends by itself and leaves nothing running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

const (
	hotKey    = "product:star"
	threshold = 0.02

	before = 6 * time.Second  // at the low share
	ramp   = 6 * time.Second  // from the low to the high share
	total  = 24 * time.Second // of load

	lowShare, highShare = 0.003, 0.26
)

// share is the true share of the hot key.
func share(t time.Duration) float64 {
	grown := float64(t-before) / float64(ramp)
	return lowShare + (highShare-lowShare)*min(max(grown, 0), 1)
}

func main() {
	bin := flag.String("hotsniff", "bin/hotsniff", "the program to show")
	rate := flag.Int("rate", 20000, "requests a second")
	only := flag.Bool("loop", false, "the closed loop only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if !*only {
		err = demo(ctx, *bin, *rate)
		fmt.Println()
	}
	if err == nil {
		err = loop(ctx, *bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, bin string, rate int) error {
	redis, err := testkit.StartRedis()
	if err != nil {
		return err
	}
	defer redis.Stop()
	sniffer, err := testkit.StartDaemon(bin, redis.Port)
	if err != nil {
		return err
	}
	defer sniffer.Kill()
	load := &testkit.Workload{Addr: redis.Addr(), Conns: 20, Pipeline: 4, Rate: rate,
		HotKey: hotKey, Share: share, Keys: 100000, Seed: 1}
	fmt.Printf("redis-server on port %d, %d requests a second over %d connections; %q grows from %.1f %% to %.0f %% between %.0f s and %.0f s\n\n",
		redis.Port, rate, load.Conns, hotKey, lowShare*100, highShare*100, before.Seconds(), (before + ramp).Seconds())
	loadCtx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	var wg sync.WaitGroup
	var loadErr error
	wg.Go(func() { loadErr = load.Run(loadCtx) })
	w := &watcher{sniffer: sniffer, load: load}
	w.watch(loadCtx)
	wg.Wait()
	if loadErr != nil {
		return loadErr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	time.Sleep(500 * time.Millisecond) // two ticks: the last packets are in
	return w.summary()
}
