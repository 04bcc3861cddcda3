#!/usr/bin/env bash
# Installs what building, testing and the demo need on Debian and Ubuntu, and
# nothing that is already there. Prints nothing when there is nothing to do.
# With the argument "package" also what the static build and packages need.
set -euo pipefail
# shellcheck source=scripts/outside.sh
. "$(dirname "$0")/outside.sh"

want=()
[ -e /usr/include/pcap/pcap.h ] || want+=(libpcap-dev)
command -v gcc >/dev/null || want+=(gcc libc6-dev)
command -v redis-server >/dev/null || [ -x /usr/bin/redis-server ] || want+=(redis-server)
command -v redis-benchmark >/dev/null || want+=(redis-tools)
command -v tcpdump >/dev/null || [ -x /usr/bin/tcpdump ] || want+=(tcpdump)
command -v ip >/dev/null || [ -x /sbin/ip ] || want+=(iproute2)
# a real terminal for the tests of hotsniff top
command -v tmux >/dev/null || want+=(tmux)
# systemd-analyze checks the unit.
command -v systemd-analyze >/dev/null || want+=(systemd)
# promtool and a server for the tests of rules and dashboard.
command -v promtool >/dev/null || want+=(prometheus)
# The tests of the page drive a browser.
command -v chromium >/dev/null || want+=(chromium fonts-liberation fonts-dejavu-core)
# The subscribers in examples/ are tested with these, and the browser is driven by node.
command -v python3 >/dev/null || want+=(python3)
command -v node >/dev/null || want+=(nodejs)
command -v npm >/dev/null || want+=(npm)
# Completion scripts and the manual page are tried out.
command -v zsh >/dev/null || want+=(zsh)
command -v fish >/dev/null || want+=(fish)
command -v groff >/dev/null || want+=(groff-base)
if [ "${1:-}" = package ]; then
  command -v musl-gcc >/dev/null || want+=(musl-tools)
  command -v make >/dev/null || want+=(make)
  command -v flex >/dev/null || want+=(flex)
  command -v bison >/dev/null || want+=(bison)
  command -v dpkg-source >/dev/null || want+=(dpkg-dev)
  command -v lintian >/dev/null || want+=(lintian)
  command -v jq >/dev/null || want+=(jq)
  command -v rpm >/dev/null || want+=(rpm)
  command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || want+=(debootstrap)
fi
[ "${#want[@]}" -gt 0 ] || exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: not root and no sudo: install ${want[*]} yourself" >&2; exit 1; }
  sudo=sudo
fi
command -v apt-get >/dev/null || { echo "setup.sh: no apt-get: install ${want[*]} (or what they are called here) yourself" >&2; exit 1; }

echo "installing ${want[*]}" >&2
# Debian starts redis-server and prometheus on installation; a machine that builds hotsniff
# need not run one, and the tests start their own. An existing policy stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod 755 "$policy"
  made=1
fi
log=$(mktemp)
trap 'rm -f "$log"; [ -z "${made:-}" ] || $sudo rm -f "$policy"' EXIT
# The lists of some other repository may fail; what is wanted is asked for next.
limit=${SETUP_LIMIT:-900} rc=0
$sudo timeout "$limit" apt-get "${APT_PATIENCE[@]}" update -qq >"$log" 2>&1 || true
$sudo timeout "$limit" env DEBIAN_FRONTEND=noninteractive apt-get "${APT_PATIENCE[@]}" install -y -qq --no-install-recommends "${want[@]}" >>"$log" 2>&1 || rc=$?
[ "$rc" -ne 0 ] || exit 0
tail -20 "$log" >&2
if apt_unreachable "$rc" "$log"; then
  not_checked "no mirror has given ${want[*]}"
fi
echo "setup.sh: apt-get ended with $rc" >&2
exit 1
