#!/usr/bin/env bash
# Profile-guided optimisation. `record` profiles the whole path from packets to
# snapshots and writes cmd/hotsniff/default.pgo, which go build then takes by
# itself. `compare` measures builds without and with it, in turn, and prints
# benchstat's verdict. The profile is renewed when the hot path has changed much
# (a release), and is kept only while it gains 3 % or more.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=cmd/hotsniff/default.pgo
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

record() {
  go build -trimpath -o bin/hotsniff-bench ./scripts/bench
  bin/hotsniff-bench -profile "$profile"
  ls -l "$profile"
}

compare() {
  [ -e "$profile" ] || { echo "pgo.sh: no $profile: record it first" >&2; exit 1; }
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  go build -trimpath -pgo off -o "$dir/hotsniff.off" ./cmd/hotsniff
  go build -trimpath -pgo "$PWD/$profile" -o "$dir/hotsniff.pgo" ./cmd/hotsniff
  go build -trimpath -o bin/hotsniff-bench ./scripts/bench
  bin/hotsniff-bench -pgo "$dir/hotsniff.off,$dir/hotsniff.pgo" -out "$dir"
  go run "$benchstat" "off=$dir/off.txt" "pgo=$dir/pgo.txt"
}

case "${1:-}" in
  record | compare) "$1" ;;
  *) echo "usage: scripts/pgo.sh record|compare" >&2; exit 2 ;;
esac
