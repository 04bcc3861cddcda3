#!/usr/bin/env bash
# Measures hotsniff on this machine and prints one table; see
# scripts/bench/main.go. Run it on a quiet machine: what else runs is in the
# figures, and makes them void. Flags: -only a,d  -format markdown  -rounds N
set -euo pipefail
cd "$(dirname "$0")/.."

go build -trimpath -o bin/hotsniff-bench ./scripts/bench
go build -trimpath -o bin/hotsniff-demo ./scripts/demo
exec bin/hotsniff-bench -hotsniff bin/hotsniff -demo bin/hotsniff-demo "$@"
