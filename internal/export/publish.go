package export

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotsniff/hotsniff/actions"
)

var (
	publishTotal     = counter("publish_total", "Attempts to publish the hot list, by how they ended.", "result")
	publishRetained  = counter("publish_retained_total", "Attempts to keep the newest list in a key for late subscribers, by how they ended.", "result")
	publishDuration  = describe(prometheus.UntypedValue, "publish_duration_seconds", "How long publishing a list took, whether it succeeded or not.", nil)
	publishReceivers = gauge("publish_receivers", "Subscribers that the last list reached; in a cluster those of one node.")
	manualEntries    = gauge("manual_entries", "Pinned and banned keys that are known, also those that do not hold now.")
)

// publishMetrics lists what publishCollector sends.
func publishMetrics() []*desc {
	return []*desc{publishTotal, publishRetained, publishDuration, publishReceivers, manualEntries}
}

// publishCollector turns the publisher's counters into metrics.
type publishCollector struct {
	stats func() actions.Stats
}

// NewPublishCollector returns the metrics of a publisher, made from what stats
// returns at each scrape.
func NewPublishCollector(stats func() actions.Stats) prometheus.Collector {
	return publishCollector{stats}
}

// Describe implements prometheus.Collector.
func (publishCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range publishMetrics() {
		ch <- d.Desc
	}
}

// Collect implements prometheus.Collector. Any goroutine.
func (c publishCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for r := range actions.NumResults {
		ch <- prometheus.MustNewConstMetric(publishTotal.Desc, prometheus.CounterValue, float64(s.Results[r]), r.String())
		ch <- prometheus.MustNewConstMetric(publishRetained.Desc, prometheus.CounterValue, float64(s.Retained[r]), r.String())
	}
	buckets := make(map[float64]uint64, len(s.DurationCounts))
	for i, n := range s.DurationCounts {
		buckets[actions.DurationBuckets[i]] = n
	}
	ch <- prometheus.MustNewConstHistogram(publishDuration.Desc, s.DurationCount, s.DurationSum, buckets)
	ch <- prometheus.MustNewConstMetric(publishReceivers.Desc, prometheus.GaugeValue, float64(s.Receivers))
	ch <- prometheus.MustNewConstMetric(manualEntries.Desc, prometheus.GaugeValue, float64(s.Manual.Entries))
}
