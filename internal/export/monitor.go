package export

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

	detectionDelayName = "detection_delay_seconds"
	detectionDelayHelp = "From the packet time at which a key became hot to the moment its announcement was written."
)

var (
	lastReloadOK = gauge("config_last_reload_successful", "Whether the last attempt to load the configuration was successful.")
	lastReloadAt = gauge("config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.")
)

// monitorMetrics lists what Monitor sends beside the histogram.
func monitorMetrics() []*desc { return []*desc{lastReloadOK, lastReloadAt} }

// Monitor watches the capture loop from outside: progress shows in the
// snapshots, so the loop needs no lock and no call for it. All methods may be
// called by any goroutine.
type Monitor struct {
	latest  func() *pipeline.Snapshot
	started time.Time

	progress     atomic.Int64 // when Watch last saw a new snapshot, ns since started
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
	for {
		if s := m.latest(); s != nil && s != seen {
			seen = s
			m.progress.Store(int64(time.Since(m.started)))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

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
	ch <- prometheus.MustNewConstMetric(lastReloadOK.Desc, lastReloadOK.kind, ok)
	ch <- prometheus.MustNewConstMetric(lastReloadAt.Desc, lastReloadAt.kind, float64(m.reloadedAt.Load())/1e9)
	m.delay.Collect(ch)
}
