#!/usr/bin/env bash
# Looks for known vulnerabilities in what hotsniff calls. It asks the database
# of the Go project, so it is no part of `make lint`, which works offline.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/outside.sh

mkdir -p build
# Built, not run by go, which would hide how it ended.
GOBIN=$PWD/build go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
log=build/vulncheck.log
rc=0
timeout "${VULNCHECK_LIMIT:-240}" build/govulncheck ./... >"$log" 2>&1 || rc=$?
cat "$log"
case $rc in
  0) exit 0 ;;
  3) echo "vulncheck.sh: known vulnerabilities are called" >&2; exit 3 ;;
esac
# Modules that do not load are a fault of ours, whatever else is said.
if grep -q 'fetching vulnerabilities\|modules.json' "$log" && no_answer "$log"; then
  not_checked "database unreachable"
fi
echo "vulncheck.sh: govulncheck ended with $rc" >&2
exit 1
