#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the tree for TIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
  grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort | while read -r target; do
    echo "== $dir $target"
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null
  done
done
