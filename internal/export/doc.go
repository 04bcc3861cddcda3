// Package export serves snapshots over HTTP: Prometheus metrics at /metrics
// and the report at /api/v1/hotkeys.
//
// Everything is made from one immutable snapshot per request: a scrape never
// mixes two moments and never holds the capture loop up. Per-key series exist
// for the keys of that snapshot only, so a key that leaves the list is gone at
// the next scrape, and there are at most as many as --top allows.
//
//go:generate sh -c "cd ../.. && go run ./scripts/gen_metrics > METRICS.md.new && mv METRICS.md.new METRICS.md"
//go:generate sh -c "cd ../.. && go run ./scripts/gen_alerts dashboards/rules.yml > alerts.new && mv alerts.new dashboards/grafana-alerts.yml"
package export
