#!/usr/bin/env bash
# Measures hotsniff on this machine. Run it on a quiet one: what else runs is
# in the figures. See scripts/bench/main.go.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -trimpath -o bin/hotsniff-bench ./scripts/bench
go build -trimpath -o bin/hotsniff-demo ./scripts/demo
bin/hotsniff-bench -hotsniff bin/hotsniff "$@"
echo
bin/hotsniff-demo -hotsniff bin/hotsniff -loop
echo
echo "stages, one core (go test -bench):"
go test -run '^$' -bench 'File|Decode|AssemblerAdd|Request|DetectorAdd|CounterAdd|Tick|Sampler|Path' -benchtime 1s \
  ./capture ./resp ./topk ./internal/pipeline | grep -E '^(Benchmark|pkg:)'
