#!/usr/bin/env bash
# Takes the pictures of the README anew, in about three minutes: what a terminal
# shows of `hotsniff top` (scripts/pictures/main.go), and the page in light and
# dark (scripts/browser/picture.mjs). Flags go to the first.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
go build -trimpath -o bin/hotsniff ./cmd/hotsniff
go build -trimpath -o bin/hotsniff-pictures ./scripts/pictures
run=() # they capture
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null; then
  run=(sudo env "PATH=$PATH")
fi
"${run[@]}" bin/hotsniff-pictures -hotsniff bin/hotsniff "$@"
"${run[@]}" scripts/browser/run.sh --picture docs/images/page.png
