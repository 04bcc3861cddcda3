#!/usr/bin/env bash
# The main job on real traffic, in about 40 s: see scripts/demo/main.go.
set -euo pipefail
cd "$(dirname "$0")/.."

go build -trimpath -o bin/hotsniff-demo ./scripts/demo
# Capturing needs CAP_NET_RAW; a build never does.
run=()
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
  run=(sudo)
fi
exec "${run[@]}" bin/hotsniff-demo -hotsniff bin/hotsniff "$@"
