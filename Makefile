# Everything that a contributor runs. What CI runs is in .ci/run.
SHELL := bash
GO ?= go
# How much the simulation, the fuzzer and the benchmark do; `make test` does a bounded share of the first.
SIM_SEEDS ?= 2000
CASES ?= 5000
SIM_STEPS ?= 2000
SIM_SEED ?= 0
WORLDS ?= 200
ROUNDS ?= 10
NAMESPACES ?= 50
KILLS ?= 100
SIEGES ?= 5000
# The race detector takes a C compiler; Go leaves cgo out where there is none. With it unit tests are run, and the Weir is
# built that is killed and compared in e2e. E2E_BUILD=-race builds that of all the other tests so, too: it takes a machine
# with more than two cores. All else is built as the control plane is, without cgo, so that each package is compiled once.
RACE := $(if $(filter 1,$(shell env -u CGO_ENABLED $(GO) env CGO_ENABLED)),-race)
RACING = $(if $(RACE),CGO_ENABLED=1) $(GO)
export CGO_ENABLED := 0
E2E_BUILD ?=
# The ring of tests: empty is what every change has to pass, full adds the files that are tagged so. CONTRIBUTING.md says what belongs where.
RING ?=
comma := ,
# make lint vets. Go would vet all that is depended on, too, once for each way in which it is built.
TAGS = -vet=off -tags '$(RING)'
FUZZ_TIME ?= 60s
FUZZERS ?= ^Fuzz
BENCH_ARGS ?=
# The image is named as the chart asks for it.
VERSION ?= v$(shell sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$$/\1/p' charts/weir/Chart.yaml)
IMAGE ?= localhost/weir:$(VERSION)
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64

.DEFAULT_GOAL := help
.PHONY: help build install test test-full measure unit e2e e2e-web e2e-node e2e-kind e2e-cluster e2e-images demo release release-verify release-publish lint generate generated picture verify fuzz sim bench bench-once bench-webhook bench-undo bench-process bench-scale conformance image chart differential chaos uninstall churn siege shadow e2e-versions e2e-version

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/weir and bin/kubectl-weir
	$(GO) build -o bin/weir .
	$(GO) build -o bin/kubectl-weir ./cmd/kubectl-weir

# Where kubectl finds plugins is the user's PATH.
PREFIX ?= $(shell $(GO) env GOPATH)
install: build ## kubectl-weir, the plugin of kubectl, in PREFIX/bin (GOPATH/bin by default)
	install -D -m 755 bin/kubectl-weir $(PREFIX)/bin/kubectl-weir

chart: ## lint, schema, suites and rendering of the chart, with Helm 4 and Helm 3 (built first, some minutes, once)
	cd charts && $(GO) test -count=1 ./...

RELEASER = cd e2e/cmd/release && $(GO) run .
# What is made is as old as the commit, so that it is the same every time.
MADE = --source $(CURDIR) --version $(VERSION) --revision "$$(git rev-parse HEAD 2>/dev/null)" \
	  --created "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
image: ## bin/weir-image.tar, for ctr images import, kind load image-archive and docker load: VERSION, IMAGE, IMAGE_PLATFORMS
	$(RELEASER) image $(MADE) --out $(CURDIR)/bin/weir-image.tar --name $(IMAGE) --platforms $(IMAGE_PLATFORMS)

# Where image and chart will be, and where the files.
REGISTRY ?= ghcr.io/weir-dev
RELEASE_URL ?= https://github.com/weir-dev/weir/releases/download/$(VERSION)/
RELEASE_PLATFORMS ?=
MAKE_RELEASE = $(RELEASER) make $(MADE) --registry $(REGISTRY) --url $(RELEASE_URL) \
	  --platforms "$(RELEASE_PLATFORMS)"
release: ## all of a release in bin/release, the same every time (docs/releasing.md): REGISTRY, RELEASE_URL, RELEASE_PLATFORMS
	$(MAKE_RELEASE) --out $(CURDIR)/bin/release

release-verify: release ## that a release made again is the same, that what it says is true, and that it is installed as documents say
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; set -e; \
	git ls-files -z | tar --null -T - -cf - | tar -xC "$$dir"; \
	($(MAKE_RELEASE) --source "$$dir" --out "$$dir/release"); diff "$$dir/release/SHA256SUMS" bin/release/SHA256SUMS
	cd e2e/cmd/release && $(GO) test -count=1 . && $(GO) test -count=1 -run '^TestReleaseCanBeChecked$$' . -args -release=$(CURDIR)/bin/release
	$(GO) build -o bin/weir-e2e .
	cd e2e && WEIR=$(CURDIR)/bin/weir-e2e WEIR_RELEASE=$(CURDIR)/bin/release $(GO) test -tags release -v -count=1 -timeout 20m \
	  -run '^(TestChartIsInstalledFromARegistry|TestInstallationWithoutHelm)$$' ./chart

# Nobody has run it yet: it takes a registry and a project that are there.
release-publish: ## bin/release to REGISTRY and GitHub (hosted CI: GITHUB_TOKEN, GITHUB_ACTOR)
	@test -n "$$GITHUB_TOKEN" || { echo 'GITHUB_TOKEN: the workflow release has one' >&2; exit 2; }
	@set -eu; export DOCKER_CONFIG=$$(mktemp -d); trap 'rm -rf "$$DOCKER_CONFIG"' EXIT; \
	helm=$$(cd charts && $(GO) tool -n helm.sh/helm/v4/cmd/helm); config="--registry-config=$$DOCKER_CONFIG/config.json"; \
	printf %s "$$GITHUB_TOKEN" | "$$helm" registry login $(firstword $(subst /, ,$(REGISTRY))) -u "$$GITHUB_ACTOR" --password-stdin "$$config"; \
	($(RELEASER) push --dir $(CURDIR)/bin/release --to $(REGISTRY)/weir:$(VERSION)); \
	"$$helm" push bin/release/weir-$(VERSION:v%=%).tgz oci://$(REGISTRY)/charts "$$config"; \
	GH_TOKEN="$$GITHUB_TOKEN" gh release create $(VERSION) bin/release/* --verify-tag --notes-file bin/release/NOTES.md

test: verify unit chart e2e ## what every change has to pass: units, scripts, model, simulation, the chart, and the promises end to end

# Each part goes on after a failure of another, and ends with a table.
test-full: ## all tests, 50 minutes warm, and a table of them at the end; a release needs it
	.ci/table '$(MAKE) verify lint' '$(MAKE) unit RING=full' '$(MAKE) sim SIM_SEEDS=400 CASES=1500' '$(MAKE) bench-once' '$(MAKE) chart' '$(MAKE) e2e RING=full' \
	  '$(MAKE) release-verify RELEASE_PLATFORMS=linux/amd64,linux/arm64' \
	  'DEMO_EXIT=1 $(MAKE) demo' '$(MAKE) e2e-web RING=full' '$(MAKE) e2e-node RING=full'

measure: ## how long the tests take on this machine, which should do nothing else
	.ci/measure

# What imports nothing that waits or locks has no races, and takes a fraction of the time without the detector.
PURE = $(shell $(GO) list -f '{{.ImportPath}} {{join .Imports " "}}' ./... | grep -vE ' (sync|sync/atomic|context|net/http)( |$$)' | cut -d' ' -f1)
unit: ## unit tests, scripts, model and a bounded simulation, with the race detector where there may be races: RING=full
	@test -n "$(RACE)" || echo 'Without the race detector: there is no C compiler.'
	$(GO) test $(TAGS) -ldflags=-w -timeout 30m $(PURE)
	$(RACING) test $(RACE) $(TAGS) -ldflags=-w -timeout 30m $(filter-out $(PURE),$(shell $(GO) list ./...))
ifneq ($(RING),)
	cd e2e/cmd/release && $(GO) test ./...
	cd weirtest && $(GO) test ./...
endif

# A whole control plane is built once, some minutes. Certificates wait for minutes that an API server counts, so their tests run beside the others.
# Some fifteen control planes share the machine. With one processor each, their parts spend less time on scheduling themselves.
E2E = WEIR=$(CURDIR)/bin/weir-e2e WEIR_RACE=$(CURDIR)/bin/weir-race KUBECTL_WEIR=$(CURDIR)/bin/kubectl-weir $(GO) test $(TAGS) -exec 'env GOMAXPROCS=1' -v -count=1
e2e: ## end-to-end tests on a real control plane, which is built first (some minutes, once): RING=full
	cd e2e && $(GO) run ./cmd/plane build etcd kube-apiserver kube-controller-manager kube-scheduler kwok etcdutl kubectl >/dev/null
	$(if $(E2E_BUILD),$(RACING),$(GO)) build $(E2E_BUILD) -o bin/weir-e2e .
	$(RACING) build $(RACE) -o bin/weir-race .
	$(GO) build -o bin/kubectl-weir ./cmd/kubectl-weir
	(cd e2e/certs && $(E2E) ./...) >bin/e2e-certs.log 2>&1 & certs=$$!; \
	status=0; (cd e2e && $(E2E) -p 3 -timeout 80m ./...) || status=$$?; \
	wait $$certs || status=$$?; cat bin/e2e-certs.log; exit $$status

WEB_OBJECTS ?= 20000
e2e-web: ## the page of kubectl weir ui in a real browser (Debian: apt-get install chromium), screenshots in e2e/artifacts/web: WEB_OBJECTS=20000
	$(GO) build -o bin/kubectl-weir ./cmd/kubectl-weir
	cd e2e && KUBECTL_WEIR=$(CURDIR)/bin/kubectl-weir $(GO) test -tags web$(RING:%=$(comma)%) -v -count=1 -timeout 20m ./web -web.objects=$(WEB_OBJECTS)

# The stories want a cluster with real pods; what differs between these three is whose.
STORIES = $(GO) test -tags stories$(RING:%=$(comma)%) -v -count=1 -timeout 40m ./stories
ARCHIVE = $(RELEASER) image --platforms linux/$$($(GO) env GOARCH)

e2e-images:
	$(ARCHIVE) --source $(CURDIR) --out $(CURDIR)/bin/e2e/weir.tar --name $(IMAGE) --version $(VERSION)
	$(ARCHIVE) --source $(CURDIR)/e2e --package ./workload/worker --program worker --out $(CURDIR)/bin/e2e/worker.tar --name weir.test/worker:1
	$(ARCHIVE) --source $(CURDIR)/e2e --package ./workload/pause --program pause --out $(CURDIR)/bin/e2e/pause.tar --name weir.test/pause:1

e2e-node: e2e-images ## the chart and its users' stories in a cluster with real pods: this machine is the node (root, Linux)
	cd e2e && $(GO) run ./cmd/node --pause ../bin/e2e/pause.tar --image ../bin/e2e/worker.tar --image ../bin/e2e/weir.tar \
	  --logs artifacts/node -- $(STORIES)

e2e-kind: e2e-images ## the same in a cluster that kind makes (needs Docker): KIND_ARGS='--image kindest/node:…'
	@set -eu; export KUBECONFIG=$$(mktemp); kind=$$(cd e2e/kind && $(GO) tool -n kind); \
	trap '"$$kind" delete cluster --name weir-stories; rm -f "$$KUBECONFIG"' EXIT; \
	"$$kind" create cluster --name weir-stories --wait 3m $(KIND_ARGS); \
	for image in worker weir; do "$$kind" load image-archive --name weir-stories bin/e2e/$$image.tar; done; \
	cd e2e && $(STORIES)

e2e-cluster: ## the same in a cluster of yours without Weir, which has or can pull the images: KUBECONFIG=… WORKER_IMAGE=…
	@test -n "$(KUBECONFIG)" || { echo 'KUBECONFIG: name the cluster, as in make e2e-cluster KUBECONFIG=$$HOME/.kube/config' >&2; exit 2; }
	cd e2e && KUBECONFIG=$(abspath $(KUBECONFIG)) $(STORIES)

demo: build ## a real control plane with Weir as its collector, and a story; DEMO_EXIT=1 ends after the story
	cd e2e && $(GO) run ./cmd/demo --weir $(CURDIR)/bin/weir --kubectl-weir $(CURDIR)/bin/kubectl-weir

API_SERVERS ?= 1
CONFORMANCE_ARGS ?=
CONFORMANCE = $(GO) run ./cmd/conformance --weir $(CURDIR)/bin/weir --api-servers $(API_SERVERS) $(CONFORMANCE_ARGS)
conformance: build ## upstream's own suites against Weir: garbage collector 11 of 11, namespaces 9 of 9; API_SERVERS=2, CONFORMANCE_ARGS=--gc
	cd e2e && $(CONFORMANCE)
	cd e2e && $(CONFORMANCE) --want 9 \
	  --focus '\[sig-api-machinery\] (Namespaces|OrderedNamespaceDeletion)'

# A benchmark ends within three quarters of an hour, what is built and measured before it and the last row included: on a slow machine with
# fewer rounds, which its report names.
BENCH = cd e2e && $(GO) run ./cmd/bench --limit 38m --out $(CURDIR)/bin/$@.md
bench: build ## collection and namespaces beside kube-controller-manager and plain requests; writes bin/bench.md
	$(BENCH) --target=collecting $(BENCH_ARGS)

bench-webhook: build ## requests that policies judge, beside none and a webhook that does nothing; writes bin/bench-webhook.md
	$(BENCH) --target=webhook $(BENCH_ARGS)

bench-undo: build ## what an archive costs, and a restore: BENCH_ARGS="--n=100000 --rounds=1 --only='undo, a tree'"; writes bin/bench-undo.md
	$(BENCH) --target=undo $(BENCH_ARGS)

bench-once: ## that the benchmarks of packages can be run: their figures are bench-process's
	$(GO) test $(BENCHED) -run '^$$' -bench . -benchtime 1x

# What is measured in a process, beside controller/graph, which takes gigabytes.
BENCHED = ./policies ./webhook ./controller/brake ./ask/insight ./controller/policyfacts
bench-process: build ## CPU and memory of Weir's processes, and the time of kubectl weir; writes bin/bench-process.md
	$(GO) test ./controller/graph -run '^$$' -bench . -benchtime 1x
	$(GO) test $(BENCHED) -run '^$$' -bench .
	$(BENCH) --target=process $(BENCH_ARGS)

OBJECTS ?= 1000000
SCALE_ARGS ?=
bench-scale: build ## Weir in a cluster of OBJECTS=1000000, 40 minutes at most; writes bin/bench-scale.md: SCALE_ARGS=--limit=20m
	$(BENCH) --target=scale --objects=$(OBJECTS) $(SCALE_ARGS)

# Tests of the full ring that go on for longer than it lets them.
LONG = cd e2e && WEIR=$(CURDIR)/bin/weir KUBECTL_WEIR=$(CURDIR)/bin/kubectl-weir $(GO) test -tags full -v -count=1 -timeout 0
sim: ## a long simulation, and random histories and plans: SIM_SEEDS=2000 SIM_STEPS=2000 SIM_SEED=0, which is the clock; CASES=5000
	$(GO) test ./internal/testkit/sim -v -count=1 -timeout 0 -sim.seed=$(SIM_SEED) -sim.seeds=$(SIM_SEEDS) -sim.steps=$(SIM_STEPS)
	$(GO) test ./controller/brake -run Simulated -v -count=1 -timeout 0 -sim.seed=$(SIM_SEED) -sim.seeds=$(SIM_SEEDS) -sim.steps=$(SIM_STEPS)
	$(GO) test ./controller/graph ./ask/insight -count=1 -timeout 0 -cases=$(CASES)

INSTANCES ?= 2000
uninstall: build ## a definition with many instances is deleted, as by helm uninstall, and the brake holds what they own, in both modes: INSTANCES=2000
	$(LONG) -run '^TestBrakeHoldsWhatADefinitionTakesWithIt$$' . -brake.instances=$(INSTANCES)

FOR ?= 1h
SHADOW = $(GO) run ./cmd/conformance --weir $(CURDIR)/bin/weir --shadow
shadow: build ## shadow mode beside kube-controller-manager through upstream's suites, random worlds and churn: FOR=1h WORLDS=200
	cd e2e && $(SHADOW)
	cd e2e && $(SHADOW) --want 9 --focus '\[sig-api-machinery\] (Namespaces|OrderedNamespaceDeletion)'
	$(MAKE) differential DIFFERENTIAL_ARGS=-differential.shadow
	$(LONG) -run '^TestShadowFindsNoDifferenceInChurn$$' . -churn.for=$(FOR)

siege: build ## random histories in which clients do all they may to owners of protected objects, in each mode: SIEGES=5000
	$(LONG) -run '^TestNoProtectedObjectGoesUnconfirmed$$' . -sieges=$(SIEGES)

churn: build ## applications come, are rolled out and go under the brake's default limits: NAMESPACES=50
	$(LONG) -run '^TestChurnIsNotHeld$$' . -churn.rounds=$(NAMESPACES)

# What is tested on each version, by the names of tests; those on v1.36 are of the version that all other tests run on.
VERSIONS ?= v1.30 v1.32 v1.34 v1.35 v1.36
ON_VERSIONS = collector policies webhooks namespaces beside brake questions upgrade chart
on_collector = . -run '^(TestCollectorScripts|TestEachObjectCostsOneRequest|TestKindThatComesAndGoesLeavesNothingBehind|TestRefus.*)$$'
on_policies = . -run '^(TestPolicyScripts|TestDeletecollection.*)$$'
on_webhooks = . -run '^(TestPoliciesComeAndGo|TestAWebhookThatIsNotAskedIsSeen|TestWhatTheAPIServerJudges.*)$$'
on_namespaces = . -run '^(TestEmptyNamespace.*|TestCreateThatASlowWebhook.*)$$'
on_beside = . -run '^(TestReplaceModeWaitsWhileAnotherCollectorWorks|TestShadowFinds.*)$$'
on_brake = . -run '^TestBrake.*$$'
on_questions = . -run '^(TestPlan.*|TestWhy.*)$$'
on_upgrade = . -run '^TestAPIServersAreUpgradedOneAfterTheOther$$'
on_chart = ./chart
e2e-versions: build ## a part of the tests on Kubernetes 1.30, 1.32, 1.34, 1.35 and 1.36, and a table: VERSIONS="v1.34 v1.36" ON_VERSIONS=brake
	.ci/table $(foreach v,$(VERSIONS),$(foreach p,$(ON_VERSIONS),'$(MAKE) e2e-version KUBERNETES=$v PART=$p'))

e2e-version:
	$(if $(on_$(PART)),,$(error PART=$(PART): must be one of $(ON_VERSIONS)))
	cd e2e && E2E_KUBERNETES=$(filter-out v1.36,$(KUBERNETES)) WEIR=$(CURDIR)/bin/weir KUBECTL_WEIR=$(CURDIR)/bin/kubectl-weir \
	  $(GO) test -tags full -v -count=1 -timeout 40m $(on_$(PART))

differential: build ## random worlds under kube-controller-manager's collector and under Weir, compared: WORLDS=200
	$(LONG) ./differential \
	  -differential.seed=0 -differential.worlds=$(WORLDS) $(DIFFERENTIAL_ARGS)

chaos: build ## kill -9 of Weir, the API server and etcd in the middle of cascades of 10,000 objects: KILLS=100
	$(LONG) ./chaos \
	  -chaos.kills=$(KILLS) -chaos.objects=10000 $(CHAOS_ARGS)

# Coverage is counted in Weir's own packages: counted in all that they import, an input takes over ten times as long.
fuzz: ## fuzz the graph, the watches, the policy compiler and the webhook: FUZZ_TIME=60s each, or 10000000x; FUZZERS=^Fuzz
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; set -e; \
	for package in $$(git grep -l '^func Fuzz' | xargs -n 1 dirname | sort -u); do \
	  $(GO) test -c -o "$$dir/fuzzers" -gcflags="$$($(GO) list -m)/...=-d=libfuzzer" "./$$package"; \
	  for fuzzer in $$("$$dir/fuzzers" -test.list '$(FUZZERS)'); do \
	    echo "$$package $$fuzzer"; \
	    (cd "$$package" && "$$dir/fuzzers" -test.run '^$$' -test.fuzz "^$$fuzzer$$" -test.fuzztime $(FUZZ_TIME) \
	      -test.fuzzminimizetime 100x -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/$$package"); \
	  done; \
	done

generate: ## write what is generated: the references of commands, metrics and the API, deep copies, CRDs, the chart's copies
	$(GO) generate ./...
	cp policies/crds/*.yaml charts/weir/files/crds/
	cp policies/*.yaml charts/weir/files/policies/

picture: ## docs/plan.svg: a plan, as a terminal shows it
	@ansi=$$(mktemp); trap 'rm -f "$$ansi"' EXIT; set -e; \
	$(GO) test -count=1 -run TestScripts/documents ./ask/insight -args -picture="$$ansi" >/dev/null; \
	$(GO) run github.com/charmbracelet/freeze@v0.2.2 "$$ansi" --language ansi --wrap 110 --padding 16 --font.size 13 \
	  --font.family monospace --background '#171717' --output docs/plan.svg

verify: ## formatting, module files, generated files
	@test -z "$$(gofmt -l archive ask certs charts cmd controller e2e internal main.go policies webhook weirtest | tee /dev/stderr)"
	cd e2e/cmd/release && $(GO) mod tidy -diff
	cd weirtest && $(GO) mod tidy -diff
	cd e2e/certs && $(GO) mod tidy -diff
	cd .github && $(GO) mod tidy -diff
	diff -r policies/crds charts/weir/files/crds
	diff <(cd policies && ls *.yaml | xargs sha256sum) <(cd charts/weir/files/policies && ls *.yaml | xargs sha256sum)
	$(GO) mod tidy -diff

# It is not in verify, for which the generators would have to be built.
generated: ## that what is made of the API's types is as they are
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; set -e; cd policies/v1beta1; \
	  $(GO) tool -modfile=../../go.tools.mod controller-gen object crd paths=. output:object:dir=$$dir output:crd:dir=$$dir/crds; \
	  $(GO) tool -modfile=../../go.tools.mod crd-ref-docs --log-level=ERROR --source-path=. --config=reference/config.yaml \
	    --templates-dir=reference --renderer=markdown --output-path="$$dir/api.md"; \
	  diff "$$dir/zz_generated.deepcopy.go" zz_generated.deepcopy.go; diff -r "$$dir/crds" ../crds; diff "$$dir/api.md" ../../docs/api.md

# One binary for all modules, in which the linter of the API's types is, too.
bin/golangci-lint: go.tools.mod go.tools.sum
	$(GO) build -modfile=go.tools.mod -o $@ sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

LINT = $(CURDIR)/bin/golangci-lint run --timeout 20m -c $(CURDIR)/.golangci.yaml ./...
lint: generated bin/golangci-lint ## golangci-lint, with kube-api-linter for the API's types (built from their modules, once)
	$(LINT)
	cd e2e && $(LINT)
	cd charts && $(LINT)
	cd e2e/cmd/release && $(LINT)
	cd e2e/certs && $(LINT)
	cd weirtest && $(LINT)
	cd .github && $(GO) tool actionlint -shellcheck= -pyflakes=
