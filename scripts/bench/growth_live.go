package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hotsniff/hotsniff/internal/testkit"
	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	// injectRate is what the live daemon gets: with pipelines of 16 it uses a
	// fifth of a core, and is sure to lose nothing.
	injectRate  = 1_000_000 // requests/s
	injectBatch = 64        // frames a system call
	injectLeast = 1_000_000 // requests of a size

	injectRateSingle = 200_000 // without pipelines: packets/s
)

// growthLive lets one daemon meet ever more keys, then ever more connections,
// and looks at its memory and its metrics after each.
func growthLive(ctx context.Context, s *settings, t *table) error {
	const inside, outside = "hsg0", "hsg1"
	if err := lab.IP("link add " + inside + " type veth peer name " + outside); err != nil {
		return err
	}
	defer lab.IP("link del " + inside)
	for _, d := range []string{inside, outside} {
		if err := lab.IP("link set " + d + " up"); err != nil {
			return err
		}
	}
	// Without a budget, or a slow machine would count only about as many.
	w, err := sniffer("--port", "6379", "--interface", inside, "--sampling.cpu-budget=0")(ctx, s, &testkit.Redis{Port: 6379})
	if err != nil {
		return err
	}
	defer w.stop()
	sender, err := newRawSender(outside, injectBatch)
	if err != nil {
		return err
	}
	defer sender.close()
	var loads []growthLoad
	for keys := 1_000; keys <= 10_000_000; keys *= 10 {
		loads = append(loads, growthLoad{keys: keys, conns: growthConns, depth: 16, requests: max(injectLeast, keys)})
	}
	for conns := 1; conns <= 100_000; conns *= 10 {
		loads = append(loads, growthLoad{keys: growthKeys, conns: conns, depth: 1, requests: injectRateSingle})
	}
	var rss, size []float64
	sent := 0
	for i := range loads {
		loads[i].network = byte(i + 1)
		if err := loads[i].inject(ctx, sender); err != nil {
			return err
		}
		sent += loads[i].requests
		p, err := lab.Settled(w.daemon.URL, func(p lab.Page) bool { return p.Command("GET") >= float64(sent) })
		if err != nil {
			return err
		}
		m, err := lab.MemoryOf(w.daemon.PID())
		if err != nil {
			return err
		}
		rss, size = append(rss, lab.MiB(m.RSS)), append(size, float64(len(p))/1e6)
		t.note("daemon after %s keys, %s connections: %s; scrape %.3f MB; %.0f of %d requests seen, %.0f packets lost", thousands(loads[i].keys), thousands(loads[i].conns),
			m, float64(len(p))/1e6, p.Command("GET"), sent, p.Sum("hotsniff_capture_dropped_total"))
		if i == len(loads)-1 {
			t.add(line{what: "m. live, 1,000 to 10,000,000 keys, 1 to 100,000 connections: requests seen", unit: "%",
				values: []float64{100 * p.Command("GET") / float64(sent)}, goal: atLeast(100)})
		}
	}
	t.add(line{what: "m. the same: largest RSS", unit: "MiB", values: []float64{most(rss)}, goal: atMost(64)},
		line{what: "m. the same: RSS", unit: "MiB", values: rss},
		line{what: "m. the same: largest scrape", unit: "MB", values: []float64{most(size)}, goal: atMost(1)})
	return nil
}

func most(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

// inject sends the load out of a device, on schedule.
func (g *growthLoad) inject(ctx context.Context, sender *rawSender) error {
	rate := injectRate
	if g.depth == 1 {
		rate = injectRateSingle
	}
	var batch [][]byte
	var failed error
	begin, done := time.Now(), 0
	frames := 0
	flush := func() bool {
		if len(batch) > 0 {
			failed = sender.send(batch)
		}
		batch = batch[:0]
		// SYNs take their time too.
		due := begin.Add(time.Duration(max(done, frames)) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		return failed == nil && ctx.Err() == nil
	}
	g.frames(func(_ int64, requests int, frame []byte) bool {
		if len(batch) < cap(batch) { // reuse the frame that stands there
			batch = batch[:len(batch)+1]
			batch[len(batch)-1] = append(batch[len(batch)-1][:0], frame...)
		} else {
			batch = append(batch, append([]byte(nil), frame...))
		}
		stranger(batch[len(batch)-1])
		done += requests
		frames++
		return len(batch) < injectBatch || flush()
	})
	flush()
	if failed != nil {
		return fmt.Errorf("inject: %w", failed)
	}
	return ctx.Err()
}
