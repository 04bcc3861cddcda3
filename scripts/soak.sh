#!/usr/bin/env bash
# Runs hotsniff for a long time beside a Redis server to which everything
# happens: see scripts/soak/main.go. Flags: -minutes N  -rate N  -recreate=false
set -euo pipefail
cd "$(dirname "$0")/.."

go build -trimpath -o bin/hotsniff-soak ./scripts/soak
# Capturing needs CAP_NET_RAW and namespaces root; a build never does.
run=()
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
  run=(sudo)
fi
exec "${run[@]}" bin/hotsniff-soak -hotsniff bin/hotsniff "$@"
