# The menu: `make help`. Every target works from a fresh clone with only Go,
# make, gcc (for the race detector) and, where a runtime is needed, root.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# GO_TAGS: gRPC's tracing would register on http.DefaultServeMux.
GO_TAGS := grpcnotrace
GO      ?= go
N       ?= 500
FUZZ    ?= 60s
PLANTED := Mutant|Mutate|Planted

# Tools and runtimes that take long to build are kept outside of the tree, so
# that every clone and every CI run shares them.
CACHE         ?= $(or $(NODEKIT_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/nodekit/bin)
GOLANGCI_VERS := v2.15.0
GOLANGCI      := $(CACHE)/golangci-lint-$(GOLANGCI_VERS)/golangci-lint

.PHONY: help
help: ## show this menu
	@awk -F':.*## ' '/^## ---- / {printf "\n%s\n", substr($$0, 9)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## ---- run and build

.PHONY: run
run: ## start real pods on a private containerd here (root; RUN_ONCE=1 ends after the check)
	@cd test/integration && $(GO) build -o ../../_output/demo ./cmd/demo && exec ../../_output/demo # go run would fail on Ctrl-C

.PHONY: build
build: ## build the binaries into bin/
	CGO_ENABLED=0 $(GO) build -tags $(GO_TAGS) -trimpath -ldflags '-s -w' -o bin/ ./cmd/...

# What is portable is built for darwin and windows too; a package that is not
# there in full for a system leaves files out by build constraints.
PORTABLE := ./probe/... ./credentials/... ./node/lifecycle/... ./metrics/... ./cmd/kubelet/privilege

.PHONY: cross
cross: ## build all packages for linux amd64, arm64 and arm; build and vet the portable ones for darwin and windows
	for arch in amd64 arm64 arm; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -tags $(GO_TAGS) ./...; done
	for os in darwin windows; do \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=amd64 $(GO) build -tags $(GO_TAGS) $(PORTABLE); \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=amd64 $(GO) vet -tags $(GO_TAGS) $(PORTABLE); \
	done

.PHONY: install-tools
install-tools: $(GOLANGCI) ## build the pinned linter and containerd into the cache
	cd test/integration && $(GO) run ./cmd/install

$(GOLANGCI):
	CGO_ENABLED=0 GOFLAGS= GOBIN=$(dir $@) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERS)

## ---- check and test

.PHONY: test
test: ## run every test: unit, policy, script, simulation, race, integration (ends with the ten slowest)
	cd test/integration && $(GO) run ./cmd/testall

.PHONY: check
check: lint policy ## what needs no test run: format, vet, lint, modules, policy
	$(GO) mod verify
	$(GO) mod tidy -diff
	cd test/integration && $(GO) mod tidy -diff
	cd test/cluster && $(GO) mod tidy -diff
	cd test/vm && $(GO) mod tidy -diff

.PHONY: lint
lint: $(GOLANGCI) ## run go vet and the linters of .golangci.yml on all modules
	$(GO) vet -tags $(GO_TAGS) ./...
	$(GOLANGCI) run ./...
	cd test/integration && $(GO) vet ./... && $(GOLANGCI) run ./...
	cd test/cluster && $(GO) vet ./... && $(GOLANGCI) run ./...
	cd test/vm && $(GO) vet ./... && $(GOLANGCI) run ./...

.PHONY: policy
policy: ## hold the floors, the import budgets, package docs and examples
	$(GO) test ./internal/policy/...

.PHONY: race
race: ## run the unit tests under the race detector
	cd test/integration && $(GO) run ./cmd/testall -only race

.PHONY: integration
integration: ## run only the tests on a real containerd (root)
	cd test/integration && $(GO) run ./cmd/testall -only integration

.PHONY: sim
sim: ## run the simulation of the pod machine with N seeds (N=500)
	NODEKIT_SIM_SEEDS=$(N) $(GO) test -count=1 -timeout=0 -v ./test/sim/...

.PHONY: mutate
mutate: ## plant bugs in the pod machine: the simulation must catch every one
	@$(GO) test -list '$(PLANTED)' ./test/... | grep -q '^Test' || { echo "no test below test/ plants bugs (a name with $(PLANTED))"; exit 1; }
	NODEKIT_MUTATE=1 $(GO) test -count=1 -timeout=0 -v -run '$(PLANTED)' ./test/...

# Each target runs, also after one failed. What it finds is written to the
# package's testdata/fuzz: commit it with the fix.
.PHONY: fuzz
fuzz: ## run each fuzz target for a minute (FUZZ=60s)
	@$(GO) list -f '{{.Dir}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}' ./... | { failed=0; while read -r dir files; do \
	  for target in $$(cd $$dir && cat $$files /dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p'); do \
	    echo "== $${dir#$(CURDIR)/} $$target"; \
	    $(GO) test -tags $(GO_TAGS) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$dir || failed=1; \
	  done; done; exit $$failed; }

.PHONY: bench
bench: ## measure the agent against the bare CRI calls of the same run, without and with a control plane (root)
	@failed=0; (cd test/integration && $(GO) run ./cmd/bench) || failed=1; \
	(cd test/cluster && $(GO) run ./cmd/install && $(GO) run ./cmd/bench) || failed=1; exit $$failed

.PHONY: soak
soak: ## run the long tests: all rounds, both runtimes, repeats, race, cluster (root, hours; PARTS="race ..." for some; renews docs/soak.txt)
	exec test/soak.sh

.PHONY: cluster
cluster: ## run the tests against a real control plane (root; the first time builds it, ten minutes)
	cd test/cluster && $(GO) run ./cmd/install && $(GO) test -count=1 -p=1 -timeout=40m ./...

.PHONY: vm
vm: ## run the tests that need systemd, cgroup v2 and NUMA, in a virtual machine (root; the first time makes it, minutes)
	cd test/vm && $(GO) run ./cmd/install && $(GO) test -count=1 -timeout=40m -p=1 -v ./machine .

## ---- look and renew

.PHONY: sizes
sizes: ## print the longest files, functions, constructors and interfaces
	@$(GO) run ./internal/policy/sizes

.PHONY: api
api: ## write the exported API, reasons, log keys and state formats to docs/api.txt (read its diff)
	$(GO) test -count=1 -run '^TestAPI' ./internal/policy -update

.PHONY: docs
docs: ## write docs/seams.md and what is generated in docs/configuration.md and docs/cli.md
	$(GO) test -count=1 -run '^TestPage' ./internal/seams -update
	$(GO) test -count=1 -run '^TestGeneratedDocs' ./test/script -update

.PHONY: update
update: ## rewrite the golden files (read the diff: it is the review)
	$(GO) test -count=1 ./test/script -update
