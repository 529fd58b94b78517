# Everything that a contributor runs. CI runs `make test`, and nothing else.
SHELL := bash
GO ?= go
# How much the simulation, the fuzzer and the benchmark do; `make test` does a bounded share of the first.
SIM_SEEDS ?= 2000
FUZZ_TIME ?= 60s
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help build test unit e2e demo lint generate verify fuzz sim bench conformance

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/weir
	$(GO) build -trimpath -o bin/weir .

test: verify unit e2e ## all tests: unit, scripts, model, simulation, and end to end on a real API server

unit: ## unit tests, scripts, model and a bounded simulation, with the race detector
	$(GO) test -race ./...

e2e: build ## end-to-end tests on a real control plane, which is built first (some minutes, once)
	cd e2e && $(GO) run ./cmd/plane build etcd kube-apiserver kube-controller-manager kube-scheduler kwok >/dev/null
	cd e2e && WEIR=$(CURDIR)/bin/weir $(GO) test -v -p 1 -count=1 -timeout 40m ./...

demo: build ## a real control plane with Weir as its collector, and a story; DEMO_EXIT=1 ends after the story
	cd e2e && $(GO) run ./cmd/demo --weir $(CURDIR)/bin/weir

conformance: build ## upstream's own suites against Weir: garbage collector 11 of 11, namespaces 9 of 9
	cd e2e && $(GO) run ./cmd/conformance --weir $(CURDIR)/bin/weir
	cd e2e && $(GO) run ./cmd/conformance --weir $(CURDIR)/bin/weir --want 9 \
	  --focus '\[sig-api-machinery\] (Namespaces|OrderedNamespaceDeletion)'

bench: build ## Weir beside kube-controller-manager and the plain-request floor; writes docs/benchmarks.md
	$(GO) test ./controller/graph -run '^$$' -bench . -benchtime 1x
	cd e2e && $(GO) run ./cmd/bench --weir $(CURDIR)/bin/weir --out $(CURDIR)/docs/benchmarks.md $(BENCH_ARGS)

sim: ## a long simulation: SIM_SEEDS=2000
	$(GO) test ./controller/graph/sim -count=1 -timeout 0 -sim.seeds=$(SIM_SEEDS)

fuzz: ## fuzz the graph and the policy compiler: FUZZ_TIME=60s each
	$(GO) test ./controller/graph -run '^$$' -fuzz FuzzGraph -fuzztime $(FUZZ_TIME)
	$(GO) test ./policies -run '^$$' -fuzz FuzzCompile -fuzztime $(FUZZ_TIME)
	$(GO) test ./policies -run '^$$' -fuzz FuzzDecide -fuzztime $(FUZZ_TIME)

generate: ## write what is generated: the command reference, deep copies, CRDs
	$(GO) generate ./...

verify: ## formatting, vet, module files, generated files
	@test -z "$$(gofmt -l certs cmd controller e2e main.go | tee /dev/stderr)"
	$(GO) vet ./...
	cd e2e && $(GO) vet ./...
	$(GO) mod tidy -diff
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(GO) run ./cmd/reference "$$dir" && diff -r "$$dir" docs/reference

lint: ## golangci-lint (built from its module; slow the first time)
	$(GO) tool -modfile=go.tools.mod golangci-lint run ./...
	cd e2e && $(GO) tool -modfile=../go.tools.mod golangci-lint run -c ../.golangci.yaml ./...
