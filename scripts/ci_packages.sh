#!/usr/bin/env bash
# ci_packages.sh [SECONDS]: what is checked of the packages and of what is in
# them, in at most so many seconds (900); on two cores about seven minutes. A
# check that needs a server that does not answer or is slow, and one that there
# is no time for, says NOT CHECKED and is no failure; whatever else goes wrong
# is one. As root.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/outside.sh
export CI=true

allowed=${1:-900} failed=0 summary=()

# step NAME SECONDS COMMAND...
step() {
  local name=$1 limit=$2 rc=0 from=$SECONDS said
  shift 2
  echo "== $name"
  limit=$((limit < allowed - SECONDS ? limit : allowed - SECONDS))
  [ "$limit" -gt 0 ] || limit=1
  timeout --kill-after=20 "$limit" "$@" || rc=$?
  case $rc in
    0) said=ok ;;
    "$NOT_CHECKED") said="NOT CHECKED" ;;
    124 | 137) said="NOT CHECKED: longer than $limit s" ;;
    *) said="FAILED: ended with $rc" failed=1 ;;
  esac
  summary+=("$(printf '%-14s %4d s  %s' "$name" $((SECONDS - from)) "$said")")
  echo "${summary[-1]}"
  return $((rc != 0))
}

# What is not installed fails everything that follows, so it ends here.
if step setup 300 env SETUP_LIMIT=140 scripts/setup.sh package; then
  step licenses 60 scripts/licenses.sh -names || true
  step sbom 120 scripts/sbom.sh || true
  step vulncheck 200 scripts/vulncheck.sh || true
  step package-test 600 scripts/package_test.sh || true
  step reproducible 300 scripts/repro.sh || true
fi

echo "== summary"
printf '%s\n' "${summary[@]}"
echo "all            $SECONDS s"
exit $failed
