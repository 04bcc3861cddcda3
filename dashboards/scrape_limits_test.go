package dashboards

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/hotsniff/hotsniff/actions"
	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/resp"
	"github.com/hotsniff/hotsniff/topk"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSampleLimitsLeaveRoomForTheWorst: a scrape beyond them is refused as a
// whole, and clients of Redis choose commands and keys. So all commands on as
// many ports as are followed, with the keys that are shown by default, fit.
func TestSampleLimitsLeaveRoomForTheWorst(t *testing.T) {
	data, err := os.ReadFile("prometheus-example.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Scrape []struct {
			SampleLimit int `yaml:"sample_limit"`
			ValueLimit  int `yaml:"label_value_length_limit"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil || len(config.Scrape) != 1 {
		t.Fatal(config, err)
	}
	const top = 20
	window := &topk.Snapshot{T: 60e9, WindowSeconds: 60, SampleEvery: 1, EventEvery: 1, Accesses: 1000}
	for i := range top {
		key := fmt.Appendf(nil, "%02d%s", i, strings.Repeat("\xff", topk.MaxKeyBytes-2))
		window.Keys = append(window.Keys, topk.KeyStat{Key: key, Share: .01, Since: 1, Accesses: 10})
	}
	s := &pipeline.Snapshot{T: 60e9, Started: 1}
	for port := range pipeline.MaxPorts {
		s.Ports = append(s.Ports, pipeline.PortSnapshot{Port: uint16(7000 + port), Slow: window, Fast: window})
	}
	latest := func() *pipeline.Snapshot { return s }
	w := httptest.NewRecorder()
	export.NewHandler(export.Options{Latest: latest, Monitor: export.NewMonitor(latest), Top: top,
		Extra: []prometheus.Collector{export.NewPublishCollector(func() actions.Stats { return actions.Stats{} })},
	}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	worst, longest := pipeline.MaxPorts*resp.NewDecoder(resp.Config{}).NumCommands(), 0
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		worst++
		for i, part := range strings.Split(line, `"`) {
			if i%2 == 1 {
				longest = max(longest, utf8.RuneCountInString(part), len(part))
			}
		}
	}
	if limit := config.Scrape[0].SampleLimit; worst < pipeline.MaxPorts*top*9 || worst > limit || limit > 2*worst {
		t.Errorf("%d samples at the worst; the limit is %d", worst, limit)
	}
	if limit := config.Scrape[0].ValueLimit; longest < 100 || longest > limit {
		t.Errorf("a label value of %d bytes; the limit is %d", longest, limit)
	}
}
