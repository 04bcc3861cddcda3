package dashboards

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/hotsniff/hotsniff/internal/testkit"
)

// promtool runs it in this folder.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(testkit.Program(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesAreValid(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "rules.yml")
}
func TestRulesFireWhenTheyShould(t *testing.T) { promtool(t, "test", "rules", "rules_test.yml") }
func TestRulesKeepToTheirLimits(t *testing.T) {
	promtool(t, "test", "rules", "rules_limits_test.yml")
}
func TestSampleConfigurationIsValid(t *testing.T) {
	promtool(t, "check", "config", "prometheus-example.yml")
}

// TestEveryAlertIsTestedAndExplained: both ways in rules_test.yml, at its limit
// in rules_limits_test.yml, and with a section of its own in the runbook.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for path, v := range map[string]any{"rules.yml": &rules, "rules_test.yml": &tests} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, v); err != nil {
			t.Fatal(path, err)
		}
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range tests.Tests {
		for _, a := range c.AlertRuleTest {
			if len(a.ExpAlerts) > 0 {
				fires[a.Alertname] = true
			} else {
				quiet[a.Alertname] = true
			}
		}
	}
	book, err := os.ReadFile("../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, err := os.ReadFile("rules_limits_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			n++
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s: tested firing %v, not firing %v", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			for _, side := range []string{"'" + r.Alert + ": beyond the limit'", "'" + r.Alert + ": not beyond it'"} {
				if !strings.Contains(string(limits), side) {
					t.Errorf("rules_limits_test.yml has no %s", side)
				}
			}
			if !strings.Contains(string(book), "\n## "+r.Alert+"\n") || !strings.HasSuffix(r.Annotations["runbook_url"], "#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s has no section in the runbook, or no link to it", r.Alert)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s has no summary or no description", r.Alert)
			}
		}
	}
	if n < 12 {
		t.Errorf("got %d alerts; want 12 or more", n)
	}
}
