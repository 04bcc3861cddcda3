#!/usr/bin/env bash
# Profile-guided optimisation. `record` profiles the whole path from packets to
# snapshots and writes cmd/hotsniff/default.pgo, which go build then takes by
# itself. `compare` measures builds without and with it, in turn, and prints
# benchstat's verdict. The profile is renewed when the hot path has changed much
# (a release), and is kept only while it gains 3 % or more.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=cmd/hotsniff/default.pgo
hot='^Benchmark(Path|AssemblerAdd|Request|DetectorAdd|CounterAdd|Decode|Read)'
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

record() {
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  # The whole path over recordings with and without pipelines, then each stage.
  go build -trimpath -o bin/hotsniff-bench ./scripts/bench
  bin/hotsniff-bench -profile "$dir/path.prof"
  for pkg in capture resp topk; do
    go test -run '^$' -bench "$hot" -benchtime 0.5s -cpuprofile "$dir/$pkg.prof" -o "$dir/$pkg.test" "./$pkg" >/dev/null
  done
  go tool pprof -proto "$dir"/*.prof >"$profile"
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
