package dashboards

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hotsniff/hotsniff/internal/export"
)

type target struct {
	Expr, LegendFormat string
	Instant, Range     bool
	Datasource         struct{ Type, UID string }
}

type dashboard struct {
	ID         *int
	UID        string
	Editable   bool
	Templating struct {
		List []struct {
			Name, Type        string
			Multi, IncludeAll bool
			Refresh           int
		}
	}
	Annotations struct {
		List []struct{ Expr string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               struct{ Type, UID string }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []target
	}
}

func load(t *testing.T) (d dashboard, text string) {
	t.Helper()
	data, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d, string(data)
}

// notShown are metrics without a panel, and why.
var notShown = map[string]string{
	"hotsniff_clock_steps_total":                            "for whoever reads a report of a fault",
	"hotsniff_config_last_reload_success_timestamp_seconds": "hotsniff_config_last_reload_successful is shown, and alerts",
	"hotsniff_publish_retained_total":                       "fails together with hotsniff_publish_total, which is shown",
	"hotsniff_manual_entries":                               "hotsniff watch lists them by name",
}

var (
	selector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	counter  = regexp.MustCompile(`(rate|increase|irate)\([a-z_]+(_total|_bucket)\{[^}]*\}\[\$__rate_interval\]\)`)
)

func TestDashboardFollowsTheRules(t *testing.T) {
	d, text := load(t)
	if d.ID != nil || d.UID != "hotsniff-overview" || d.Editable {
		t.Error("want no id, the stable uid, not editable")
	}
	for _, bad := range []string{"__inputs", "__requires", "DS_PROMETHEUS"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s breaks provisioning from files", bad)
		}
	}
	names := []string{}
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type == "query" && (!v.Multi || !v.IncludeAll || v.Refresh != 2) {
			t.Errorf("variable %s: want several values, All, and refresh with the time range", v.Name)
		}
	}
	if !slices.Equal(names, []string{"datasource", "job", "instance", "port"}) {
		t.Errorf("got variables %v", names)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: id %d is used twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || len(p.Description) < 20 || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q: want title, description, unit, data source and targets", p.ID, p.Title)
		}
		for _, q := range p.Targets {
			checkTarget(t, p.Title, q)
		}
	}
}

func checkTarget(t *testing.T, title string, q target) {
	t.Helper()
	if q.Datasource.UID != "${datasource}" || q.Instant == q.Range {
		t.Errorf("%s: data source or kind of %s", title, q.Expr)
	}
	found := selector.FindAllStringSubmatch(q.Expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: no selector in %s", title, q.Expr)
	}
	for _, m := range found {
		if !strings.Contains(m[2], `job=~"$job"`) || !strings.Contains(m[2], `instance=~"$instance"`) {
			t.Errorf("%s: %s{%s} ignores the chosen job or instance", title, m[1], m[2])
		}
	}
	rest := counter.ReplaceAllString(q.Expr, "")
	if strings.Contains(rest, "_total{") || strings.Contains(rest, "_bucket{") {
		t.Errorf("%s: a counter outside rate or increase over $__rate_interval: %s", title, q.Expr)
	}
}

// TestDashboardAndRulesUseWhatIsExported, and whatever is exported is used or
// in the list of what is not.
func TestDashboardAndRulesUseWhatIsExported(t *testing.T) {
	d, text := load(t)
	var exported []string
	for _, m := range export.Docs() {
		exported = append(exported, m.Name)
		if _, listed := notShown[m.Name]; listed == strings.Contains(text, m.Name) {
			t.Errorf("%s: shown and listed as not shown, or neither", m.Name)
		}
	}
	rules, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var exprs []string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			exprs = append(exprs, q.Expr)
		}
	}
	used := regexp.MustCompile(`\bhotsniff_[a-z_]+`)
	for _, e := range append(exprs, regexp.MustCompile(`\w+:[\w:]+`).ReplaceAllString(string(rules), "")) {
		for _, name := range used.FindAllString(e, -1) {
			if name = strings.TrimSuffix(name, "_bucket"); !slices.Contains(exported, name) {
				t.Errorf("%s is not exported", name)
			}
		}
	}
}

// TestLinksLeadToSections of the runbook: of the dashboard and of both kinds of
// alerts.
func TestLinksLeadToSections(t *testing.T) {
	book, err := os.ReadFile("../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(book), -1) {
		anchors[strings.ToLower(m[1])] = true
	}
	link := regexp.MustCompile(`https://github\.com/hotsniff/hotsniff/blob/main/docs/RUNBOOK\.md#([\w-]+)`)
	for _, file := range []string{"grafana.json", "rules.yml", "grafana-alerts.yml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := link.FindAllStringSubmatch(string(data), -1)
		if len(found) < 12 {
			t.Errorf("%s: got %d links", file, len(found))
		}
		for _, m := range found {
			if !anchors[m[1]] {
				t.Errorf("%s: the runbook has no section #%s", file, m[1])
			}
		}
	}
}
