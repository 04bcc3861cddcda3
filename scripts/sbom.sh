#!/usr/bin/env bash
# Writes dist/hotsniff.cdx.json: everything that is linked into hotsniff, in
# the format CycloneDX. The C libraries of the static program are added to what
# Go knows. The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh package

out=dist/hotsniff.cdx.json
mkdir -p dist build
export CGO_ENABLED=1 GOFLAGS="-tags=netgo,osusergo"
# The program asks git for the version, and fails where there is none, in a
# linked worktree, and without a commit. It is given a copy with one commit,
# and the version is put right afterwards.
version=$(scripts/version.sh)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar --exclude=./.git --exclude=./build --exclude=./bin --exclude=./dist --exclude=node_modules -cf - . | tar -C "$copy" -xf -
git_copy() { git -C "$copy" -c user.name=hotsniff -c user.email=hotsniff@localhost -c commit.gpgsign=false "$@"; }
git_copy init -q
git_copy commit -q --allow-empty -m "for the list"
git_copy tag v0.0.0-replaced
go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 app -json -std -licenses -noserial -notimestamp \
  -main cmd/hotsniff -output "$PWD/build/go.raw.json" "$copy"
# A plus sign in a package URL is written %2B.
sed "s/@v0\.0\.0-replaced/@v${version//+/%2B}/g; s/v0\.0\.0-replaced/v$version/g" build/go.raw.json >build/go.cdx.json
jq -e --arg v "v$version" '.metadata.component.version == $v' build/go.cdx.json >/dev/null ||
  { echo "sbom.sh: the version is not v$version: $(jq -c .metadata.component.version build/go.cdx.json)" >&2; exit 1; }

pcap=$(dpkg-query -W -f '${Version}' libpcap-dev 2>/dev/null | sed 's/-[^-]*$//')
musl=$(dpkg-query -W -f '${Version}' musl-dev 2>/dev/null | sed 's/-[^-]*$//')
[ -n "$pcap" ] && [ -n "$musl" ] || { echo "sbom.sh: libpcap-dev or musl-dev has no version here" >&2; exit 1; }
jq --arg pcap "$pcap" --arg musl "$musl" '
  def lib($name; $version; $license): {
    "bom-ref": ("pkg:generic/" + $name + "@" + $version), type: "library", name: $name, version: $version, scope: "required",
    purl: ("pkg:generic/" + $name + "@" + $version), licenses: [{license: {id: $license}}]};
  .components += [lib("libpcap"; $pcap; "BSD-3-Clause"), lib("musl"; $musl; "MIT")]
' build/go.cdx.json >"$out"

# An SBOM that lacks a part is worse than none.
jq -e '.bomFormat == "CycloneDX" and (.components | length) > 30' "$out" >/dev/null ||
  { echo "sbom.sh: $out is not complete" >&2; exit 1; }
missing=$(comm -23 <(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}' ./cmd/hotsniff | sort -u) \
  <(jq -r '.components[] | .name + "@" + .version' "$out" | sort -u) | grep -v '^$' || true)
[ -z "$missing" ] || { echo "sbom.sh: not listed: $missing" >&2; exit 1; }
echo "$out: $(jq '.components | length' "$out") components"
