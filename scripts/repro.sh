#!/usr/bin/env bash
# Builds the last commit twice, in two directories and without anything cached
# between them, and compares every byte: the dynamic program, the static one
# with its libpcap, the packages made of it.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
# The first directory takes the library that is in build/, if there is one: it
# was compiled in another directory, too. The second compiles its own.
[ ! -e build/static/prefix/done ] || built=build/static/prefix
tree=$(find build/static -maxdepth 1 -name 'libpcap-*' -type d 2>/dev/null | head -1 || true)

build() {
  local dir=$1
  git clone -q --no-local . "$dir"
  if [ -n "$tree" ]; then
    mkdir -p "$dir/build/static"
    cp -r "$tree" "$dir/build/static/"
    [ -z "$3" ] || cp -r "$3" "$dir/build/static/"
  fi
  (
    cd "$dir"
    GOCACHE=$2 go build -trimpath -buildvcs=auto -o bin/hotsniff ./cmd/hotsniff
    GOCACHE=$2 scripts/static.sh
    scripts/package.sh dist >/dev/null
  )
}

build "$work/one" "$(go env GOCACHE)" "${built:-}"
build "$work/a-directory-with-a-longer-name" "$work/cache" ""

[ -e "$work/a-directory-with-a-longer-name/build/static/libpcap.log" ] || { echo "repro.sh: the second library was not compiled" >&2; exit 1; }
status=0
for path in bin/hotsniff bin/hotsniff-static build/static/prefix/lib/libpcap.a $(cd "$work/one" && ls dist/*); do
  one=$(sha256sum <"$work/one/$path") two=$(sha256sum <"$work/a-directory-with-a-longer-name/$path")
  if [ "$one" = "$two" ]; then
    echo "same       ${one%% *}  $path"
  else
    echo "different  $path" >&2
    status=1
  fi
done
"$work/one/bin/hotsniff" version
exit $status
