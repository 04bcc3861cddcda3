package export

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hotsniff/hotsniff/actions"
)

func publishStats() actions.Stats {
	s := actions.Stats{Receivers: 3, DurationCount: 7, DurationSum: 0.25, Manual: actions.ManualStats{Entries: 2}}
	s.Results[actions.ResultOK], s.Results[actions.ResultTimeout], s.Retained[actions.ResultFull] = 6, 1, 4
	for i, le := range actions.DurationBuckets { // six took 3 ms, one more than all buckets
		if le >= 0.003 {
			s.DurationCounts[i] = 6
		}
	}
	return s
}

func TestPublisherMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewPublishCollector(publishStats))
	want := `
# HELP hotsniff_publish_duration_seconds How long publishing a list took, whether it succeeded or not.
# TYPE hotsniff_publish_duration_seconds histogram
hotsniff_publish_duration_seconds_bucket{le="0.0005"} 0
hotsniff_publish_duration_seconds_bucket{le="0.001"} 0
hotsniff_publish_duration_seconds_bucket{le="0.0025"} 0
hotsniff_publish_duration_seconds_bucket{le="0.005"} 6
hotsniff_publish_duration_seconds_bucket{le="0.01"} 6
hotsniff_publish_duration_seconds_bucket{le="0.025"} 6
hotsniff_publish_duration_seconds_bucket{le="0.05"} 6
hotsniff_publish_duration_seconds_bucket{le="0.1"} 6
hotsniff_publish_duration_seconds_bucket{le="0.25"} 6
hotsniff_publish_duration_seconds_bucket{le="0.5"} 6
hotsniff_publish_duration_seconds_bucket{le="1"} 6
hotsniff_publish_duration_seconds_bucket{le="2.5"} 6
hotsniff_publish_duration_seconds_bucket{le="+Inf"} 7
hotsniff_publish_duration_seconds_sum 0.25
hotsniff_publish_duration_seconds_count 7
# HELP hotsniff_publish_receivers Subscribers that the last list reached; in a cluster those of one node.
# TYPE hotsniff_publish_receivers gauge
hotsniff_publish_receivers 3
# HELP hotsniff_manual_entries Pinned and banned keys that are known, also those that do not hold now.
# TYPE hotsniff_manual_entries gauge
hotsniff_manual_entries 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
		"hotsniff_publish_duration_seconds", "hotsniff_publish_receivers", "hotsniff_manual_entries"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name, result string
		want         float64
	}{
		{"hotsniff_publish_total", "ok", 6}, {"hotsniff_publish_total", "timeout", 1}, {"hotsniff_publish_total", "denied", 0},
		{"hotsniff_publish_retained_total", "full", 4},
	} {
		if got, found := sample(t, reg, c.name, c.result); !found || got != c.want {
			t.Errorf("%s{result=%q}: got %v, %v; want %v", c.name, c.result, got, found, c.want)
		}
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// sample returns the counter of a result.
func sample(t *testing.T, reg prometheus.Gatherer, name, result string) (float64, bool) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}
