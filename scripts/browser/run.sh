#!/usr/bin/env bash
# The page in a real browser: Debian's chromium, driven by playwright-core, at a
# real daemon beside a real Redis. What is missing is said; in CI it is a
# failure. Screenshots go to HOTSNIFF_ARTIFACTS, or to a directory that is
# printed. With --picture it makes the pictures of the page for the README
# instead, in light (FILE.png) and dark (FILE-dark.png): all that it needs must
# be there.
set -euo pipefail
picture=
if [ "${1:-}" = --picture ]; then
  picture=$(realpath -m "${2:?FILE}")
fi
cd "$(dirname "$0")"

# missing REASON: ends the script.
missing() {
  if [ "${CI:-}" = true ] || [ "$picture" ]; then
    echo "browser tests cannot run: $1" >&2
    exit 1
  fi
  echo "browser tests are skipped: $1"
  exit 0
}

export CHROMIUM="${CHROMIUM:-$(command -v chromium || true)}"
[ -n "$CHROMIUM" ] || missing "chromium is not installed (scripts/setup.sh installs it)"
command -v node >/dev/null && command -v npm >/dev/null || missing "node and npm are not installed (scripts/setup.sh installs them)"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || missing "node is older than 18"
command -v redis-server >/dev/null || missing "redis-server is not installed (scripts/setup.sh installs it)"
command -v tcpdump >/dev/null || missing "tcpdump is not installed (scripts/setup.sh installs it)"
caps=$(awk '/^CapEff/ {print $2}' /proc/self/status)
((0x$caps >> 13 & 1)) || missing "no CAP_NET_RAW: they capture on loopback; run as root"
if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --ignore-scripts --silent || missing "npm ci failed"
  cp package-lock.json node_modules/.installed
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../.. && go build -o "$work/hotsniff" ./cmd/hotsniff)
export HOTSNIFF_BIN="$work/hotsniff"
if [ "$picture" ]; then
  node picture.mjs "$picture"
  exit
fi
if [ -z "${HOTSNIFF_ARTIFACTS:-}" ]; then
  HOTSNIFF_ARTIFACTS=$(mktemp -d "${TMPDIR:-/tmp}/hotsniff-browser-XXXXXX")
  export HOTSNIFF_ARTIFACTS
fi
node --test --test-reporter=spec page.test.mjs
echo "screenshots: $HOTSNIFF_ARTIFACTS"
