# Two commands do everything on a fresh machine: make demo, make test.

GO      ?= go
BIN     := bin/hotsniff
FUZZTIME ?= 20s
RUNS    ?= 10000
MINUTES ?= 30
BENCH   ?=

.PHONY: build static package package-test sbom licenses vulncheck reproducible demo test lint fuzz simulate bench soak pgo pictures generate setup clean

build: setup ## build bin/hotsniff
	$(GO) build -trimpath -buildvcs=auto -o $(BIN) ./cmd/hotsniff

static: ## build bin/hotsniff-static, which needs nothing but a kernel
	@scripts/setup.sh package
	scripts/static.sh

package: static ## make a deb and an rpm in dist/
	scripts/package.sh

package-test: static ## install, upgrade, remove and purge the packages in roots of their own
	scripts/package_test.sh

sbom: ## list what is linked in, as CycloneDX, in dist/
	scripts/sbom.sh

licenses: ## list the licenses of what is linked in; fails when one is not permissive
	@scripts/licenses.sh

vulncheck: ## look for known vulnerabilities; asks the database of the Go project
	scripts/vulncheck.sh

reproducible: ## build twice, in two directories, and compare every byte
	@scripts/setup.sh package
	scripts/repro.sh

setup:
	@scripts/setup.sh

demo: build ## show the main job on real traffic, about 40 s
	@scripts/demo.sh

test: setup ## run every test, with the race detector, live ones included
	scripts/test.sh

lint: setup ## gofmt, go vet, staticcheck, generated files
	scripts/lint.sh

fuzz: setup ## run every fuzz target for FUZZTIME (default 20s) each
	scripts/fuzz.sh $(FUZZTIME)

simulate: setup ## run RUNS (default 10000) simulated captures and days beside exact oracles
	HOTSNIFF_SIM_RUNS=$(RUNS) $(GO) test -timeout 6h -count 1 -run Simulate ./topk ./internal/pipeline

bench: build ## measure, in less than ten minutes, as root; BENCH='-only a,d -format markdown' for a part
	scripts/bench.sh $(BENCH)

soak: build ## run for MINUTES (default 30) beside a Redis to which everything happens, as root
	scripts/soak.sh -minutes $(MINUTES)

pictures: ## take the pictures of the README anew, about three minutes
	scripts/pictures.sh

pgo: build ## record cmd/hotsniff/default.pgo anew and compare; see scripts/pgo.sh
	scripts/pgo.sh record
	scripts/pgo.sh compare

generate: ## regenerate the command table
	$(GO) generate ./...

clean:
	rm -rf bin build dist
