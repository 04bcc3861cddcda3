// Package dashboardlint decodes the dashboard with the types that Grafana
// publishes, which refuse unknown and missing fields. It is a module of its
// own so that nothing else depends on them.
package dashboardlint

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func TestDashboardIsWhatGrafanaDefines(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	data, err := os.ReadFile("../../dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var strict, d dashboard.Dashboard
	findings := map[string]error{"strict decode": strict.UnmarshalJSONStrict(data), "decode": json.Unmarshal(data, &d)}
	findings["validate"] = d.Validate()
	for what, err := range findings {
		// No findings may come as an empty list in an error that is not nil.
		if list, ok := errors.AsType[cog.BuildErrors](err); err != nil && !(ok && len(list) == 0) {
			t.Errorf("%s: %v", what, err)
		}
	}
	back, err := json.Marshal(d)
	if err != nil || len(back) < len(data)/4 {
		t.Errorf("encoded again: %d bytes, %v", len(back), err)
	}
}
