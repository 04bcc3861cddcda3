#!/usr/bin/env bash
# Builds bin/hotsniff-static: one file that needs nothing of the system but the
# kernel. libpcap is built from Debian's source package with what hotsniff uses
# of it, packet sockets, and without D-Bus, netlink libraries, RDMA, Bluetooth
# and USB; libc is musl. libpcap is built once and kept in build/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/outside.sh

root=$PWD/build/static
prefix=$root/prefix
# What is built depends on this; a change of it builds anew.
options=(--disable-shared --without-libnl --disable-dbus --disable-rdma --disable-bluetooth
  --disable-usb --disable-netmap --without-dag --without-snf --without-septel --without-turbocap --without-dpdk)
multiarch=$(gcc -print-multiarch)
# musl-gcc looks into musl's headers alone; those of the kernel come last.
headers="-idirafter /usr/include/$multiarch -idirafter /usr/include"

fetch_libpcap() {
  local tree
  tree=$(find "$root" -maxdepth 1 -name 'libpcap-*' -type d | head -1)
  if [ -z "$tree" ]; then
    local lists=$root/apt
    mkdir -p "$lists/lists/partial"
    # Source packages are not in the system's lists, which stay as they are:
    # every line and stanza of theirs is read as one of sources here.
    mkdir -p "$lists/parts"
    local f
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
      case $f in
        *.sources) grep -q debian.org -s "$f" || grep -q ubuntu.com -s "$f" || continue
          sed 's/^Types:.*/Types: deb-src/' "$f" >"$lists/parts/$(basename "$f")" ;;
        *.list) grep -E '^deb .*(debian\.org|ubuntu\.com)' -s "$f" | sed 's/^deb /deb-src /' >"$lists/parts/$(basename "$f")" || true ;;
      esac
    done
    local log=$root/apt.log rc=0
    local apt=(apt-get -qq "${APT_PATIENCE[@]}" -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$lists/parts"
      -o "Dir::State::lists=$lists/lists" -o "APT::Get::List-Cleanup=0" -o "Dir::Cache=$lists" -o "APT::Sandbox::User=root")
    # Not every list is needed; whether the source comes is what counts.
    timeout 120 "${apt[@]}" update >"$log" 2>&1 || true
    (cd "$root" && timeout 120 "${apt[@]}" source libpcap >>"$log" 2>&1) || rc=$?
    if [ "$rc" -ne 0 ]; then
      tail -20 "$log" >&2
      # Half a download must not be taken for the source next time.
      rm -rf "$root"/libpcap-* "$root"/libpcap_*
      if apt_unreachable "$rc" "$log"; then
        not_checked "no mirror has given the source of libpcap"
      fi
      echo "static.sh: no source of libpcap: apt-get ended with $rc" >&2
      exit 1
    fi
    tree=$(find "$root" -maxdepth 1 -name 'libpcap-*' -type d | head -1)
  fi
  echo "$tree"
}

make_libpcap() {
  cd "$1"
  # Without the path of the tree in it, two checkouts give the same library.
  export CC=musl-gcc CFLAGS="-O2 -ffile-prefix-map=$1=libpcap $headers"
  ./configure --prefix="$prefix" "${options[@]}"
  make clean
  make -j"$(nproc)" libpcap.a
  mkdir -p "$prefix/lib" "$prefix/include"
  cp libpcap.a "$prefix/lib/"
  cp -r pcap pcap.h pcap-bpf.h pcap-namedb.h "$prefix/include/"
}

build_libpcap() {
  # Another compiler gives another library.
  local stamp
  stamp="${options[*]} $(gcc -dumpfullversion) $(dpkg-query -W -f '${Version}' musl-dev 2>/dev/null || true)"
  [ -e "$prefix/done" ] && [ "$(cat "$prefix/done")" = "$stamp" ] && return
  local tree log=$root/libpcap.log
  mkdir -p "$root"
  echo "building libpcap (once, into build/)" >&2
  tree=$(fetch_libpcap)
  # In the background, because set -e is off in a command whose end is asked for.
  make_libpcap "$tree" >"$log" 2>&1 &
  wait $! || { tail -20 "$log" >&2; echo "static.sh: libpcap: see $log" >&2; exit 1; }
  echo "$stamp" >"$prefix/done"
}

build_libpcap
export CC=musl-gcc CGO_ENABLED=1
export CGO_CFLAGS="-O2 -I$prefix/include $headers" CGO_LDFLAGS="-L$prefix/lib"
mkdir -p bin
# Go's build ID hashes the paths in the flags above; without it two directories
# give the same bytes.
go build -trimpath -buildvcs=auto -tags netgo,osusergo -ldflags '-s -w -buildid= -linkmode external -extldflags -static' \
  -o "${1:-bin/hotsniff-static}" ./cmd/hotsniff
