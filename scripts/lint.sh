#!/usr/bin/env bash
# The linters: formatting, vet, staticcheck, and drift of generated files.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=$(gofmt -l $(git ls-files '*.go'))
[ -z "$bad" ] || { echo "gofmt would change: $bad" >&2; exit 1; }
go vet ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
go mod tidy -diff
