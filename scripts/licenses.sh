#!/usr/bin/env bash
# Prints the licenses of everything that is linked into hotsniff, and fails
# when one is not permissive. With -static also those of libpcap and musl.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./scripts/licenses "$@"
