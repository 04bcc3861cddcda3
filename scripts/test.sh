#!/usr/bin/env bash
# Runs every test: with the race detector, then what the race detector would
# falsify (allocation gates) without it, then the packages that must work
# without cgo.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== tests, race detector on"
go test -race -timeout 20m ./...
echo "== allocation gates and large runs, race detector off"
go test -timeout 20m ./...
echo "== without cgo"
CGO_ENABLED=0 go build ./...
CGO_ENABLED=0 go test -timeout 10m ./capture ./resp ./topk ./internal/pipeline
echo "== the dashboard against the types that Grafana publishes"
(cd scripts/dashboardlint && go test ./...)
