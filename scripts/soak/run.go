package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	// A cycle: a new key is hot for hotFor; then a pause. What is done to the
	// world begins at most trouble after the start of the cycle and takes a few
	// seconds, so hotsniff has ten seconds in peace to find the key.
	cycle   = 25 * time.Second
	hotFor  = 20 * time.Second
	trouble = 5 * time.Second

	sampleEvery = time.Second
)

// disturbance is one of the things that are done to the world, one a cycle.
type disturbance struct {
	name string
	do   func(w *world) error
}

// disturbances returns those that this build and these settings allow.
func (w *world) disturbances() []disturbance {
	all := []disturbance{{"nothing", func(*world) error { return nil }}}
	if w.canReload {
		all = append(all, disturbance{"reload", (*world).reload}, disturbance{"bad configuration", (*world).reloadBad})
	}
	all = append(all, disturbance{"device down and up", (*world).flap}, disturbance{"restart of Redis", (*world).restartRedis},
		disturbance{"crowd of clients", func(w *world) error { _, err := w.tell("storm"); return err }})
	if w.recreate {
		all = append(all, disturbance{"new device", (*world).replaceDevice})
	}
	return all
}

// reload writes another configuration and sends SIGHUP.
func (w *world) reload() error {
	w.reloads++
	if err := w.writeConfig(goodConfig(w.reloads)); err != nil {
		return err
	}
	return w.daemon.Process.Signal(syscall.SIGHUP)
}

// reloadBad does so with a configuration that must be refused, and then with a
// good one.
func (w *world) reloadBad() error {
	if err := w.writeConfig(badConfig); err != nil {
		return err
	}
	if err := w.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	if p, err := lab.Scrape(baseURL); err != nil || p.Sum("hotsniff_config_last_reload_successful") != 0 {
		return errors.Join(errors.New("a bad configuration was not refused"), err)
	}
	return w.reload()
}

func (w *world) flap() error {
	if err := lab.IP("link set " + serverDevice + " down"); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	return lab.IP("link set " + serverDevice + " up")
}

func (w *world) replaceDevice() error {
	if err := lab.IP("link del " + serverDevice); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	return w.makeDevice()
}

func (w *world) restartRedis() error {
	w.stopRedis()
	time.Sleep(time.Second)
	return w.startRedis()
}

// run lets cycle after cycle pass until ctx ends.
func (w *world) run(ctx context.Context, v *verdict) error {
	begin := time.Now()
	all := w.disturbances()
	for i := 0; ctx.Err() == nil; i++ {
		start := begin.Add(time.Duration(i) * cycle)
		key := fmt.Sprint("hot:", i)
		if _, err := w.tell("hot " + key); err != nil {
			return err
		}
		// Some disturb the detection, some the quiet.
		if err := w.sampleUntil(ctx, start.Add(time.Duration(i*7%5)*trouble/5)); err != nil {
			return err
		}
		if ctx.Err() == nil {
			d := all[i%len(all)]
			fmt.Printf("%6.0f s  %s is hot; %s\n", time.Since(begin).Seconds(), key, d.name)
			if err := d.do(w); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		if err := w.sampleUntil(ctx, start.Add(hotFor)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break // the last key did not have its time
		}
		w.planted = append(w.planted, key)
		if !w.log.reported(key) {
			v.fail("%s took %.0f %% of the requests for %v and was not reported", key, hotShare*100, hotFor)
		}
		if _, err := w.tell("hot"); err != nil {
			return err
		}
		if err := w.sampleUntil(ctx, start.Add(cycle)); err != nil {
			return err
		}
	}
	return nil
}

// sampleUntil waits until t, or the end of ctx, and takes a sample now and then.
func (w *world) sampleUntil(ctx context.Context, t time.Time) error {
	for {
		next := min(time.Until(t), sampleEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-w.exited:
			return fmt.Errorf("hotsniff ended (%v):\n%s", w.daemon.ProcessState, w.log.text())
		case <-time.After(max(next, 0)):
		}
		if next <= 0 || time.Now().After(t) {
			return nil
		}
		s, err := w.sample()
		if err != nil {
			return err
		}
		w.samples = append(w.samples, s)
	}
}

// sample is what hotsniff uses at one moment.
type sample struct{ rss, goroutines, descriptors float64 }

func (w *world) sample() (sample, error) {
	pid := w.daemon.Process.Pid
	m, err := lab.MemoryOf(pid)
	if err != nil {
		return sample{}, err
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return sample{}, err
	}
	p, err := lab.Scrape(baseURL)
	if err != nil {
		return sample{}, err
	}
	return sample{rss: lab.MiB(m.RSS), goroutines: p.Sum("go_goroutines"), descriptors: float64(len(fds))}, nil
}
