package main

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/hotsniff/hotsniff/scripts/lab"
)

const (
	// leastDuration gives each disturbance a turn.
	leastDuration = 3 * time.Minute

	// warmUp is not compared: windows fill, the heap finds its size.
	warmUp = 60 * time.Second

	// What the medians of the last quarter may have more than those of the
	// first. A leak of one goroutine or descriptor a cycle shows at ten cycles.
	moreRSS         = 4.0 // MiB
	moreGoroutines  = 4.0
	moreDescriptors = 2.0

	// leastSeen is the part of the answered requests that hotsniff must have
	// seen: it may miss a second after its device was replaced.
	leastSeen = 0.95
)

// verdict collects what is wrong.
type verdict struct {
	faults []string
	lines  []string
}

func (v *verdict) fail(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func (v *verdict) say(format string, args ...any) {
	v.lines = append(v.lines, fmt.Sprintf(format, args...))
}

// print writes the verdict and returns an error unless it is good.
func (v *verdict) print(w io.Writer) error {
	for _, l := range v.lines {
		fmt.Fprintln(w, l)
	}
	for _, f := range v.faults {
		fmt.Fprintln(w, "FAIL:", f)
	}
	if len(v.faults) > 0 {
		return fmt.Errorf("%d faults", len(v.faults))
	}
	fmt.Fprintln(w, "pass")
	return nil
}

// flat compares the first quarter of values with the last one.
func (v *verdict) flat(what string, values []float64, more float64) {
	quarter := len(values) / 4
	if quarter == 0 {
		v.fail("%s: too few samples", what)
		return
	}
	first, last := middle(values[:quarter]), middle(values[len(values)-quarter:])
	v.say("%-12s %.1f in the first quarter, %.1f in the last one, %.1f .. %.1f in all", what, first, last, slices.Min(values), slices.Max(values))
	if last > first+more {
		v.fail("%s grew from %.1f to %.1f: at most %.1f more are allowed", what, first, last, more)
	}
}

// middle is the median.
func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// finish judges what was seen and ends hotsniff.
func (w *world) finish(v *verdict) {
	samples := w.samples[min(int(warmUp/sampleEvery), len(w.samples)):]
	column := func(f func(s *sample) float64) []float64 {
		out := make([]float64, len(samples))
		for i := range samples {
			out[i] = f(&samples[i])
		}
		return out
	}
	v.flat("RSS, MiB", column(func(s *sample) float64 { return s.rss }), moreRSS)
	v.flat("goroutines", column(func(s *sample) float64 { return s.goroutines }), moreGoroutines)
	v.flat("descriptors", column(func(s *sample) float64 { return s.descriptors }), moreDescriptors)
	v.say("hot keys     %d planted, each for %v with %.0f %% of the requests", len(w.planted), hotFor, hotShare*100)
	if !w.hasExited() {
		w.count(v)
		w.end(v)
	}
	levels, bad := w.log.summary()
	v.say("log          lines by level: %v", levels)
	for _, line := range bad {
		v.fail("in the log: %s", line)
	}
}

// count compares the requests and looks at the counters that must be zero.
func (w *world) count(v *verdict) {
	text, err := w.tell("count")
	if err != nil {
		v.fail("%v", err)
		return
	}
	var answered, made float64
	fmt.Sscan(text, &answered, &made)
	time.Sleep(time.Second) // a tick: what is under way is counted
	p, err := lab.Scrape(baseURL)
	if err != nil {
		v.fail("%v", err)
		return
	}
	seen := p.Sum("hotsniff_requests_total")
	v.say("requests     %.0f answered over %.0f connections, %.0f seen (%.1f %%), %.0f packets lost", answered, made, seen,
		100*seen/answered, p.Sum("hotsniff_capture_dropped_total"))
	if seen < leastSeen*answered {
		v.fail("%.0f of %.0f answered requests were seen", seen, answered)
	}
	if n := p.Sum("hotsniff_panics_total"); n != 0 {
		v.fail("%.0f panics were survived", n)
	}
}

// end asks hotsniff to end.
func (w *world) end(v *verdict) {
	begin := time.Now()
	w.daemon.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.exited:
		v.say("end          after %.1f s, %v", time.Since(begin).Seconds(), w.daemon.ProcessState)
		if !w.daemon.ProcessState.Success() {
			v.fail("hotsniff ended with %v", w.daemon.ProcessState)
		}
	case <-time.After(stopWait):
		v.fail("hotsniff does not end within %v", stopWait)
	}
}
