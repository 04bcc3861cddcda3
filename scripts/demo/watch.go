package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/report"
	"github.com/hotsniff/hotsniff/internal/testkit"
)

// watcher compares what hotsniff reports with what the load truly was.
type watcher struct {
	sniffer *testkit.Daemon
	load    truth
	last    report.Report
	hotAt   time.Duration // since the start of the load; 0 while it is not hot
}

// truth is what the load knows about itself.
type truth interface {
	Start() time.Time
	Sent() int64
	TrueShare(now time.Time, window time.Duration) (float64, int64)
}

// report asks hotsniff for its report.
func (w *watcher) report(ctx context.Context, window string) (report.Report, error) {
	var r report.Report
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.sniffer.URL+"/api/v1/hotkeys?window="+window, nil)
	if err != nil {
		return r, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return r, errors.New(resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&r)
	return r, err
}

// watch prints a line a second, and one at the moment the key becomes hot.
func (w *watcher) watch(ctx context.Context) {
	fmt.Println("  time   what hotsniff reports over 5 s                   true share   others at the top")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var lastLine time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r, err := w.report(ctx, "5s")
		if err != nil || w.load.Start().IsZero() {
			continue
		}
		w.last = r
		key := find(&r, hotKey)
		became := w.hotAt == 0 && key != nil && key.State == "hot" && key.Since != nil
		if became {
			w.hotAt = key.Since.Sub(w.load.Start())
		}
		if became || time.Since(lastLine) >= time.Second {
			lastLine = time.Now()
			w.line(&r, key)
		}
	}
}

func find(r *report.Report, name string) *report.Key {
	for i := range r.Keys {
		if r.Keys[i].Key == name {
			return &r.Keys[i]
		}
	}
	return nil
}

// line prints one report.
func (w *watcher) line(r *report.Report, key *report.Key) {
	said := "not among the top keys"
	if key != nil {
		said = fmt.Sprintf("%-8s %6.2f %% [%5.2f .. %5.2f]  %6.0f/s", key.State, key.Share*100,
			key.ShareLow*100, key.ShareHigh*100, key.AccessesPerSecond)
	}
	real, _ := w.load.TrueShare(r.To, 5*time.Second)
	fmt.Printf("%5.1f s  %-47s %7.2f %%   %s\n", r.To.Sub(w.load.Start()).Seconds(), said, real*100, others(r))
}

// others lists the two largest keys beside the hot one.
func others(r *report.Report) string {
	var parts []string
	for i := range r.Keys {
		if k := &r.Keys[i]; k.Key != hotKey && len(parts) < 2 {
			parts = append(parts, fmt.Sprintf("%s %.2f %%", report.PrintableKey(k.Key, 20), k.Share*100))
		}
	}
	return strings.Join(parts, ", ")
}

// crossing returns when the share first reached the threshold over the given
// window of the load.
func (w *watcher) crossing(window time.Duration) time.Duration {
	for t := time.Duration(0); t < total; t += 50 * time.Millisecond {
		if s, n := w.load.TrueShare(w.load.Start().Add(t), window); n > 1000 && s >= threshold {
			return t
		}
	}
	return 0
}

// summary prints the outcome; an error means that the demo did not show what
// it promises.
func (w *watcher) summary() error {
	if r, err := w.report(context.Background(), "60s"); err == nil {
		w.last = r
	}
	log, took := w.sniffer.Stop()
	fmt.Printf("\nhotsniff's log:\n%s\n", indent(log))
	key := find(&w.last, hotKey)
	if key == nil || w.hotAt == 0 {
		return fmt.Errorf("%s never became hot", hotKey)
	}
	real, _ := w.load.TrueShare(w.last.To, time.Minute)
	now, five := w.crossing(500*time.Millisecond), w.crossing(5*time.Second)
	c := &w.last.Capture
	usage := w.sniffer.State()
	cpu := usage.UserTime() + usage.SystemTime()
	fmt.Printf(`summary
  became hot       at %.2f s: %.2f s after its share crossed %.0f %%, %.2f s after its share over 5 s did
  share over 60 s  %.2f %% [%.2f .. %.2f] reported, %.2f %% true
  requests         %d seen of %d sent, %d packets dropped by the kernel
  cost             %.2f s CPU for %d packets (%.1f %% of one core)
  stopped          in %.2f s
`, w.hotAt.Seconds(), (w.hotAt - now).Seconds(), threshold*100, (w.hotAt - five).Seconds(),
		key.Share*100, key.ShareLow*100, key.ShareHigh*100, real*100,
		w.last.Requests, w.load.Sent(), c.Dropped,
		cpu.Seconds(), c.Packets, 100*cpu.Seconds()/total.Seconds(), took.Seconds())
	for i := range w.last.Keys {
		if k := &w.last.Keys[i]; k.State == "hot" && k.Key != hotKey {
			return fmt.Errorf("%s is listed as hot and is not", report.PrintableKey(k.Key, 0))
		}
	}
	return nil
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}
