#!/usr/bin/env bash
# Looks for known vulnerabilities in what hotsniff calls. It asks the database
# of the Go project, so it is no part of `make lint`, which works offline.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...
