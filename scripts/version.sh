#!/usr/bin/env bash
# Prints the version of the packages and of the list of what is in them:
# HOTSNIFF_VERSION, or 1.2.3 at a tag, 1.2.3+4.gabc four commits later, and
# 0.0.0+gabc where there is no tag, as in a shallow clone.
set -euo pipefail
cd "$(dirname "$0")/.."
v=${HOTSNIFF_VERSION:-}
[ -n "$v" ] || v=$(git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//; s/-\([0-9]*\)-g/+\1.g/; s/-/~/g') || true
echo "${v:-0.0.0+g$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}"
