#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the tree for TIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# one DIR TARGET: a run fails when an input fails. Go's fuzzer also ends with
# "context deadline exceeded" when its time runs out while it shrinks an input;
# that says nothing about the code.
one() {
  echo "== $1 $2"
  if go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x </dev/null >"$log" 2>&1; then
    tail -n 2 "$log"
  elif grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
    echo "ran out of time while shrinking an input: no failing input"
  else
    cat "$log"
    return 1
  fi
}

targets=$(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/' | sort)
for t in $targets; do
  one "$(dirname "${t%%:*}")" "${t##*:}"
done
