// Command gen_alerts turns dashboards/rules.yml into rules for Grafana's own
// alerting, so that there is one source of both.
//
//	go run ./scripts/gen_alerts dashboards/rules.yml > dashboards/grafana-alerts.yml
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

const head = `# Alerts of hotsniff for Grafana's own alerting, by file provisioning.
# Generated from rules.yml by ` + "`make generate`" + `; do not edit.
# datasourceUid is the uid of your Prometheus data source.
`

// document turns rules into Grafana's format.
func document(source []byte) ([]byte, error) {
	var in rules
	if err := yaml.Unmarshal(source, &in); err != nil {
		return nil, err
	}
	var recorded []string // old, new, ...: Grafana need not know the records
	var groups []any
	for _, g := range in.Groups {
		var out []any
		for _, r := range g.Rules {
			r.Expr = strings.NewReplacer(recorded...).Replace(strings.TrimSpace(r.Expr))
			if r.Record != "" {
				recorded = append(recorded, r.Record, "("+r.Expr+")")
				continue
			}
			out = append(out, grafana(r))
		}
		if out != nil {
			groups = append(groups, map[string]any{"orgId": 1, "name": g.Name, "folder": "hotsniff", "interval": "30s", "rules": out})
		}
	}
	b := bytes.NewBufferString(head)
	enc := yaml.NewEncoder(b)
	enc.SetIndent(2)
	err := enc.Encode(map[string]any{"apiVersion": 1, "groups": groups})
	return b.Bytes(), err
}

// grafana is one rule. The query keeps what is above its limit, so each number
// it returns is an alert.
func grafana(r rule) any {
	annotations := map[string]string{}
	for name, text := range r.Annotations {
		// No dollar: provisioning takes that for an environment variable.
		text = strings.ReplaceAll(text, "$labels.", ".Labels.")
		annotations[name] = strings.ReplaceAll(text, "$value", ".Values.A.Value")
	}
	query := map[string]any{"refId": "A", "expr": r.Expr, "instant": true, "range": false}
	found := map[string]any{"refId": "B", "type": "math", "expression": "is_number($A)",
		"datasource": map[string]any{"type": "__expr__", "uid": "__expr__"}}
	past := map[string]any{"from": 600, "to": 0}
	return map[string]any{
		"uid": "hotsniff-" + strings.ToLower(r.Alert), "title": r.Alert, "condition": "B", "for": r.For,
		"noDataState": "OK", "execErrState": "Error", "labels": r.Labels, "annotations": annotations,
		"data": []any{
			map[string]any{"refId": "A", "datasourceUid": "prometheus", "relativeTimeRange": past, "model": query},
			map[string]any{"refId": "B", "datasourceUid": "__expr__", "relativeTimeRange": past, "model": found},
		},
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen_alerts rules.yml")
		os.Exit(2)
	}
	source, err := os.ReadFile(os.Args[1])
	if err == nil {
		source, err = document(source)
	}
	if err == nil {
		_, err = os.Stdout.Write(source)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen_alerts:", err)
		os.Exit(1)
	}
}
