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
go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 app -json -std -licenses -noserial -notimestamp \
  -main cmd/hotsniff -output build/go.cdx.json .

pcap=$(dpkg-query -W -f '${Version}' libpcap-dev 2>/dev/null | sed 's/-[^-]*$//')
musl=$(dpkg-query -W -f '${Version}' musl-dev 2>/dev/null | sed 's/-[^-]*$//')
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
