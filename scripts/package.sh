#!/usr/bin/env bash
# Makes dist/hotsniff_VERSION_ARCH.deb and .rpm from the static program.
# The version is that of the last tag, or HOTSNIFF_VERSION. The same commit
# gives the same bytes: every time in the packages is that of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0
out=${1:-dist}

HOTSNIFF_VERSION=$(scripts/version.sh)
export HOTSNIFF_VERSION
export HOTSNIFF_ARCH=$(go env GOARCH)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
HOTSNIFF_MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

made=build/package
mkdir -p "$made" "$out"
bin/hotsniff-static man | gzip -9n >"$made/hotsniff.8.gz"
bin/hotsniff-static completion bash >"$made/hotsniff.bash"
bin/hotsniff-static completion zsh >"$made/_hotsniff"
bin/hotsniff-static completion fish >"$made/hotsniff.fish"
cp "${HOTSNIFF_CONFIG:-packaging/hotsniff.yml}" "$made/hotsniff.yml"
scripts/licenses.sh -static | gzip -9n >"$made/THIRD_PARTY_LICENSES.gz"
{
  echo "hotsniff ($HOTSNIFF_VERSION) unstable; urgency=medium"
  echo
  echo "  * Release $HOTSNIFF_VERSION. What changed is told at"
  echo "    https://github.com/hotsniff/hotsniff/blob/main/CHANGELOG.md"
  echo
  echo " -- hotsniff maintainers <hotsniff@users.noreply.github.com>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$made/changelog.gz"

# nfpm knows variables in some fields only.
sed "s/[$]{HOTSNIFF_MTIME}/$HOTSNIFF_MTIME/" packaging/nfpm.yaml >"$made/nfpm.yaml"
for kind in deb rpm; do
  go run "$nfpm" package --config "$made/nfpm.yaml" --packager "$kind" --target "$out/" >/dev/null
done
(cd "$out" && ls -1 ./*"$HOTSNIFF_VERSION"*)
