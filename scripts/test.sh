#!/usr/bin/env bash
# Runs every test: with the race detector, then what the race detector would
# falsify or slow down too much (allocation gates, full-size runs) without it,
# then the packages that must work without cgo.
set -euo pipefail
cd "$(dirname "$0")/.."

caps=$(awk '/^CapEff/ {print $2}' /proc/self/status)
if (((0x$caps >> 13 & 1) == 0)); then
  echo "== no CAP_NET_RAW: the live tests (real capture) are skipped; run as root to have them"
fi

echo "== tests, race detector on"
go test -race -timeout 20m ./...
echo "== allocation gates and large runs, race detector off"
go test -timeout 20m ./capture ./resp ./topk ./hotlist ./internal/...
echo "== without cgo"
CGO_ENABLED=0 go vet ./...
CGO_ENABLED=0 go test -short -timeout 10m ./capture ./resp ./internal/pipeline
echo "== the dashboard against the types that Grafana publishes"
(cd scripts/dashboardlint && go test ./...)
echo "== the page in a browser"
scripts/browser/run.sh
echo "== the Kubernetes examples against the types of its API"
(cd scripts/kubelint && go test ./...)
