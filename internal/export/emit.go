package export

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// emitter sends constant metrics. It makes them itself: one of the library's
// costs a dozen allocations, which at 200 keys a port is most of a scrape.
type emitter struct {
	ch  chan<- prometheus.Metric
	top int
}

// constant is a metric with its value. Its label pairs are sorted by name and
// may be those of other metrics: nobody changes them.
type constant struct {
	desc  *desc
	pairs []*dto.LabelPair
	value float64
}

// Desc implements prometheus.Metric.
func (c *constant) Desc() *prometheus.Desc { return c.desc.Desc }

// Write implements prometheus.Metric.
func (c *constant) Write(out *dto.Metric) error {
	out.Label = c.pairs
	if c.desc.kind == prometheus.CounterValue {
		out.Counter = &dto.Counter{Value: &c.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &c.value}
	}
	return nil
}

// send sends a metric with the values of its labels in the order of d.
func (e emitter) send(d *desc, value float64, labels ...string) {
	e.pairs(d, value, pairs(d.labels, labels))
}

// pairs sends a metric with label pairs sorted by name.
func (e emitter) pairs(d *desc, value float64, pairs []*dto.LabelPair) {
	e.ch <- &constant{d, pairs, value}
}

// pairs makes label pairs sorted by name. Values are valid UTF-8.
func pairs(names, values []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(names))
	for i := range names {
		out[i] = &dto.LabelPair{Name: &names[i], Value: &values[i]}
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(*a.Name, *b.Name) })
	return out
}
