package export

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/topk"
)

const (
	// watchEvery is how often Monitor.Watch looks: four snapshots go by.
	watchEvery = time.Second

	// stallAfter without a new snapshot means that the capture loop hangs. An
	// idle interface still gives a snapshot each 250 ms; ten seconds leave room
	// for a machine that is out of CPU, which restarts would make worse.
	stallAfter = 10 * time.Second

	// readyAfter is the fast window: before it has passed once, nothing can be
	// hot and an empty list says nothing.
	readyAfter = 5 * time.Second

	// cpuSeconds is the time over which hotsniff_cpu_ratio is the average: the
	// shortest usual scrape interval.
	cpuSeconds = 10

	detectionDelayName = "detection_delay_seconds"
	detectionDelayHelp = "From the packet time at which a key became hot to the moment its announcement was written."
)

var (
	cpuRatio     = gauge("cpu_ratio", "CPU time of hotsniff as a part of one core, in the last 10 s.")
	lastReloadOK = gauge("config_last_reload_successful", "Whether the last attempt to load the configuration was successful.")
	lastReloadAt = gauge("config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.")
)

// monitorMetrics lists what Monitor sends beside the histogram.
func monitorMetrics() []*desc { return []*desc{cpuRatio, lastReloadOK, lastReloadAt} }

// Monitor watches the capture loop from outside: progress shows in the
// snapshots, so the loop needs no lock and no call for it. All methods may be
// called by any goroutine.
type Monitor struct {
	latest  func() *pipeline.Snapshot
	started time.Time

	progress     atomic.Int64 // when Watch last saw a new snapshot, ns since started
	cpu          atomic.Int64 // CPU time in the last cpuSeconds, ns per s
	reloadFailed atomic.Bool
	reloadedAt   atomic.Int64 // unix ns
	delay        prometheus.Histogram
}

// NewMonitor returns a Monitor over latest. It sees nothing until Watch runs.
func NewMonitor(latest func() *pipeline.Snapshot) *Monitor {
	m := &Monitor{latest: latest, started: time.Now(), delay: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "hotsniff_" + detectionDelayName, Help: detectionDelayHelp,
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5},
	})}
	m.Reloaded(true)
	return m
}

// Watch looks once a second until ctx ends.
func (m *Monitor) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var seen *pipeline.Snapshot
	var ring [cpuSeconds]time.Duration // CPU time used, at each of the last looks
	for i := range ring {
		ring[i] = cpuTime()
	}
	for i := 0; ; i++ {
		if s := m.latest(); s != nil && s != seen {
			seen = s
			m.progress.Store(int64(time.Since(m.started)))
		}
		now := cpuTime()
		if span := min(i, cpuSeconds); span > 0 {
			m.cpu.Store(int64(now-ring[i%cpuSeconds]) / int64(span))
		}
		ring[i%cpuSeconds] = now
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// CPURatio is the CPU time used as a part of one core.
func (m *Monitor) CPURatio() float64 { return float64(m.cpu.Load()) / 1e9 }

// Stalled returns since when there was no new snapshot, and whether that is so
// long that the capture loop must hang.
func (m *Monitor) Stalled() (time.Duration, bool) {
	d := time.Since(m.started) - time.Duration(m.progress.Load())
	return d, d > stallAfter
}

// Ready reports whether the first fast window has passed.
func (m *Monitor) Ready() bool {
	s := m.latest()
	return s != nil && s.Started != 0 && s.T-s.Started >= int64(readyAfter)
}

// Reloaded says how an attempt to load the configuration ended just now. The
// first one was the start, which went well.
func (m *Monitor) Reloaded(ok bool) {
	m.reloadFailed.Store(!ok)
	if ok {
		m.reloadedAt.Store(time.Now().UnixNano())
	}
}

// Announced counts an event that has been written just now.
func (m *Monitor) Announced(ev *pipeline.Event) {
	if ev.Kind == topk.EventHot {
		// A clock that was set between the two gives nonsense below zero.
		m.delay.Observe(max(time.Since(time.Unix(0, ev.T)).Seconds(), 0))
	}
}

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range monitorMetrics() {
		ch <- d.Desc
	}
	m.delay.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(ch chan<- prometheus.Metric) {
	ok := 1.0
	if m.reloadFailed.Load() {
		ok = 0
	}
	ch <- prometheus.MustNewConstMetric(cpuRatio.Desc, cpuRatio.kind, m.CPURatio())
	ch <- prometheus.MustNewConstMetric(lastReloadOK.Desc, lastReloadOK.kind, ok)
	ch <- prometheus.MustNewConstMetric(lastReloadAt.Desc, lastReloadAt.kind, float64(m.reloadedAt.Load())/1e9)
	m.delay.Collect(ch)
}
