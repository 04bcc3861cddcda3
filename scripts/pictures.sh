#!/usr/bin/env bash
# Takes the pictures of the README anew: see scripts/pictures/main.go.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
go build -trimpath -o bin/hotsniff ./cmd/hotsniff
go build -trimpath -o bin/hotsniff-pictures ./scripts/pictures
run=()
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
  run=(sudo)
fi
exec "${run[@]}" bin/hotsniff-pictures -hotsniff bin/hotsniff "$@"
