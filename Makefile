# SPDX-License-Identifier: Apache-2.0
#
# Everything a developer or a build machine does here, by name. "make help" lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

BIN := $(CURDIR)/.bin
SERVER := services/server
# Folder for JUnit reports; "make test" gives every step its own.
RESULTS ?= $(CURDIR)/.data/results
VERSION ?= $(shell cat VERSION 2>/dev/null)
LDFLAGS := -X github.com/OWNER/bothy/services/server/internal/platform/buildinfo.version=$(VERSION)

# The race detector otherwise sleeps a second at the end of every test binary.
export GORACE := atexit_sleep_ms=0
export GOFLAGS ?= -buildvcs=false
export GOTOOLCHAIN ?= local
# Each module is built by its own go.mod; go.work only spares a developer's editor the choice between them.
export GOWORK := off

# Every Go module with tests. The tools are pinned in modules of their own, so that the server's stays its own.
GO_MODULES := $(patsubst %/go.mod,%,$(wildcard services/*/go.mod sdk/go/go.mod))

# The steps of "make test" in their order. A step that is not listed does not run and is not counted.
TEST_STEPS := setup gates lint test-go test-web test-browser smoke accounting

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | expand -t 20

## Preparation

GO_TOOLS := $(BIN)/.tools
LINTER := $(BIN)/golangci-lint
GATES := $(BIN)/gates
POSTGRES := tools/postgres/node_modules/.package-lock.json
WEB := apps/web/node_modules/.package-lock.json
CONTRACT := tools/contract/node_modules/.package-lock.json

.PHONY: setup
setup: $(GO_TOOLS) $(GATES) $(POSTGRES) $(WEB) $(CONTRACT) ## Build the tools, install the packages of the lock files

$(GO_TOOLS): tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	go build -C tools -o $(BIN)/ tool
	@touch $@

$(LINTER): tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(BIN)
	go build -C tools/lint -o $(BIN)/ tool
	@touch $@

# Always asked: the Go tool knows better than make whether something changed.
.PHONY: $(GATES)
$(GATES):
	@mkdir -p $(BIN)
	@go build -C $(SERVER) -o $(BIN)/ ./tools/gates

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	npm --prefix $* ci
	@touch $@

## Generated files

.PHONY: generate generate-arch generate-contract generate-sql
generate: generate-arch generate-contract generate-sql ## Write all generated files anew

generate-arch:
	go run -C $(SERVER) ./tools/archgen -module . -docs $(CURDIR)/docs/architecture/modules.gen.md

generate-contract: $(GO_TOOLS) $(CONTRACT)
	$(SERVER)/tools/generate/generate.sh

generate-sql: $(GO_TOOLS)
	$(SERVER)/tools/sqlcgen.sh

## Checks

.PHONY: arch register-check gates lint
arch: $(GO_TOOLS) $(GATES) ## Check imports against the module register
	$(GATES) arch

register-check: $(GATES) ## Check the register against contract, schema and READMEs
	$(GATES) register

GATE_NAMES := arch register routes tables counters ambient subscriptions spdx words asvs govulncheck generated

gates: $(GO_TOOLS) $(GATES) $(CONTRACT) ## Run every gate of the architecture
	@failed=; for gate in $(GATE_NAMES); do $(GATES) $$gate || failed="$$failed $$gate"; done; \
	if [ -n "$$failed" ]; then echo "gates broken:$$failed" >&2; exit 1; fi

lint: $(LINTER) ## Run golangci-lint over every Go module
	@failed=; for module in $(GO_MODULES); do \
		(cd $$module && $(LINTER) run -c $(CURDIR)/$(SERVER)/.golangci.yml ./...) || failed="$$failed $$module"; \
	done; if [ -n "$$failed" ]; then echo "lint failed in:$$failed" >&2; exit 1; fi

## Tests

.PHONY: test test-go accounting test-web test-browser smoke
test: ## Run everything: setup, gates, Go and web tests, accounting; ends with "N passed, M failed"
	@mkdir -p $(BIN)
	@go build -C $(SERVER) -o $(BIN)/testrun ./tools/testrun
	@$(BIN)/testrun -results $(RESULTS) $(TEST_STEPS)

# What the tests exercise is noted in a folder that is another one every time: Go would otherwise
# take the results of the run before, which notes nothing.
BOOKS := $(CURDIR)/.data/books

test-go: $(GO_TOOLS) $(POSTGRES) ## Run the Go tests of every module with the race detector
	@mkdir -p $(RESULTS)
	@rm -rf $(BOOKS)
	@go build -C $(SERVER) -o $(BIN)/pgcluster ./internal/platform/pg/pgtest/cluster
	@books=$(BOOKS)/$$(date +%s%N); mkdir -p $$books; \
	failed=; for module in $(GO_MODULES); do \
		(cd $$module && BOTHY_ACCOUNTING=$$books $(BIN)/pgcluster -- $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary=skipped \
			--junitfile $(RESULTS)/$${module//\//-}.xml -- -race ./...) || failed="$$failed $$module"; \
	done; if [ -n "$$failed" ]; then echo "Go tests failed in:$$failed" >&2; exit 1; fi

accounting: ## Compare what the Go tests exercised with the contract
	@go run -C $(SERVER) ./tools/accounting -books "$$(echo $(BOOKS)/*)"

test-web: $(WEB) ## Check types and form of the web client, run its tests, build it, hold its size
	@mkdir -p $(RESULTS)
	npm --prefix apps/web run check
	cd apps/web && npx vitest run --reporter=default --reporter=junit --outputFile.junit=$(RESULTS)/vitest.xml
	npm --prefix apps/web run build
	npm --prefix apps/web run size

test-browser: $(WEB) build ## Run the browser tests against a real server
	@mkdir -p $(RESULTS)
	@chromium=$$(tools/setup/chromium.sh) && cd apps/web && BOTHY_CHROMIUM="$$chromium" BOTHY_BINARY=$(BIN)/bothy \
		node --test --test-reporter=spec --test-reporter-destination=stdout \
		--test-reporter=junit --test-reporter-destination=$(RESULTS)/browser.xml e2e/

smoke: build $(GATES) ## Run the smoke program, which knows the product only through the SDK
	$(GATES) sdkimports
	$(GATES) binary-deps
	@mkdir -p $(RESULTS)
	go run -C services/smoke . -binary $(BIN)/bothy -junit $(RESULTS)/smoke.xml

## Longer runs

.PHONY: nightly chaos perf fuzz properties permissions mutants
nightly: test properties fuzz permissions mutants chaos perf ## Run everything there is, the slow parts included

fuzz: $(POSTGRES) ## Let every fuzz target search, SECONDS=30 each
	tools/long.sh fuzz $(if $(SECONDS),$(SECONDS),30)

properties: $(POSTGRES) ## Run the property tests with many examples, CHECKS=2000 each
	tools/long.sh properties $(if $(CHECKS),$(CHECKS),2000)

chaos: $(POSTGRES) ## Run the tests that kill, cut and delay
	@test -d $(SERVER)/test/chaos || { echo "chaos: there is no $(SERVER)/test/chaos" >&2; exit 1; }
	go test -C $(SERVER) -tags chaos -count=1 ./test/chaos/...

perf: $(POSTGRES) ## Measure against the performance targets
	@test -d $(SERVER)/perf || { echo "perf: there is no $(SERVER)/perf" >&2; exit 1; }
	go test -C $(SERVER) -tags perf -count=1 -timeout 30m -p 1 -v ./perf/$(if $(TEST),$(TEST),...)

# How many histories of rights the long comparison plays.
PERMISSION_RUNS ?= 300

permissions: $(POSTGRES) ## Compare decisions with the model of permissions on many random histories
	@go build -C $(SERVER) -o $(BIN)/pgcluster ./internal/platform/pg/pgtest/cluster
	cd $(SERVER) && BOTHY_PERMISSION_RUNS=$(PERMISSION_RUNS) $(BIN)/pgcluster -- \
		go test -count=1 -timeout 60m -run '^TestProductionDecidesAsTheModelDoes$$' ./internal/wire

mutants: $(POSTGRES) ## Put known faults into copies of the source and see the model find each
	@go build -C $(SERVER) -o $(BIN)/pgcluster ./internal/platform/pg/pgtest/cluster
	cd $(SERVER) && $(BIN)/pgcluster -- go run ./tools/mutants $(MUTANT)

## Running

.PHONY: build build-web run clean
build-web: $(WEB)
	npm --prefix apps/web run build
	@rm -rf $(SERVER)/internal/platform/webassets/dist/*
	@mkdir -p $(SERVER)/internal/platform/webassets/dist
	@cp -R apps/web/dist/. $(SERVER)/internal/platform/webassets/dist/

build: build-web ## Build the server with the web client inside, and the adapter
	@test -d $(SERVER)/cmd/bothy || { echo "build: there is no $(SERVER)/cmd/bothy" >&2; exit 1; }
	@mkdir -p $(BIN)
	CGO_ENABLED=0 go build -C $(SERVER) -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/bothy
	CGO_ENABLED=0 go build -C services/agent -trimpath -ldflags '-X main.version=$(VERSION)' -o $(BIN)/bothy-agent .

run: $(POSTGRES) build ## Build everything, start an instance with its own PostgreSQL, print its address
	@exec $(BIN)/bothy dev up

clean: ## Remove what was built and installed; the instance of "make run" stays
	rm -rf $(BIN) $(RESULTS) apps/web/dist apps/web/node_modules tools/*/node_modules
	find $(SERVER)/internal/platform/webassets/dist -mindepth 1 ! -name .gitkeep -delete 2>/dev/null || true
