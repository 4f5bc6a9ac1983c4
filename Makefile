# One command per task; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

modules := $(shell sed -e 's/#.*//' -e '/^ *$$/d' modules.txt | cut -d' ' -f1)
released := $(shell sed -n -e 's/ *release$$//p' modules.txt)
# tools/dev holds the tools' versions apart from the workspace's; containers need Docker, and have make test-matrix.
packages := $(patsubst %,./%/...,$(filter-out tools/dev harness/tcredis integration/containers,$(modules)))

# Whose tests wait the most, and SQLite, translated into Go, which takes longest to
# compile: they begin first, so that others fill the time.
first := ./cmd/shardkit/... ./examples/sqlite/... ./bench/scenarios/... ./integration/...

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## see a replicated set at work on a real 3-master Redis Cluster
	@tools/servers/install-redis
	@mkdir -p bin && go build -o bin/shardkit ./cmd/shardkit && bin/shardkit demo

test: bin/gotestsum ## run every module's tests, with -race where it works, on real servers
	@tools/dev/run-tests $(first) $(filter-out $(first),$(packages))

test-speed: ## run without the race detector what it distorts: speed, allocations, and the bounds of package ring in full
	go test -count=1 -run "Speed|Alloc|Faster|HitRatio" ./slotmap/... ./tiercache ./tools/peers/...
	SHARDKIT_LONG=1 go test -count=1 -v -run 'SeenSpeed|ShardSpeed' ./integration/tier
	go test -count=1 ./ring/...

test-servers: bin/gotestsum servers ## run the live tests on Redis 8.0 and Valkey 8.1 as well
	@for server in redis-server-8.0 valkey-server-8.1; do \
	  echo "== $$server"; \
	  SHARDKIT_SERVER=$(CURDIR)/.servers/bin/$$server tools/dev/run-tests ./backends/goredis/... ./backends/rueidis/... ./integration/... || exit 1; \
	done

test-matrix: bin/gotestsum ## check both adapters, and tcredis, on Redis 7.0, Redis 8.0 and Valkey 8.1 in containers
	@tools/servers/docker tools/dev/test-matrix

REPORTS ?= bin/conformance
conformance: ## check both adapters by the suite, and against their reports; REPORTS=conformance/reports replaces those
	@tools/dev/conformance $(REPORTS)

defects: ## print each deliberately broken implementation, and the case of the suite that catches it
	@set -o pipefail; SHARDKIT_LONG=1 go test -count=1 -v -run '^TestDefects$$' ./conformance | sed -n '/^DEFECT/,$$p'

# The tests that do more with SHARDKIT_LONG=1, by name. make test has run them under the race detector; here it is the number that counts.
long := CopiesAreRead|MutationsAreCaught|Outages|Interleavings|NoOldValueAfterTheBound|Pressure|FailoverPressure|TwoViews|OneAway|Detection|HotSpread|HotFrozen|MembersUnderLoad|ForeignChanges|TrackingConnectionLost|TagModel|TagModelLive|TagLive|DeletePrefixLive|ShardLostUnderLoad|FullSpeed|LiveReshard|EightProcessesConverge|TLSAndDocumentedUsers|Defects|ReferenceBackend|RecoveryAfterMasterIsLost|ConformOnAClusterOfSomebodyElse|GateCountsWritesExactly|Failover|BenchPeerThatIsMissing
test-long: bin/gotestsum servers ## check the adapters, and a cache while all breaks, on Redis 7.0, Redis 8.0 and Valkey 8.1, and run what takes too long for make test
	@tools/dev/test-long '^Test($(long))$$' ./integration/tier ./tiercache/soak ./integration/proxy ./integration ./tiercache ./conformance ./bench/scenarios ./backends/rueidis ./cmd/shardkit

test-idle: bin/gotestsum ## check the times and shares that only a machine which does nothing else gives, one test at a time
	@SHARDKIT_LONG=1 SHARDKIT_IDLE=1 tools/dev/run-tests -race=false -p 1 \
	  -run '^Test(Detection|OneAway|ForeignChanges|HotSpread|Fleet|LiveReshard|ShardLostUnderLoad|FullSpeed|RecoveryAfterMasterIsLost)$$' \
	  ./integration/tier ./integration/proxy ./integration ./backends/rueidis

SECONDS ?= 600
soak: ## try properties, and a cache while all breaks, with fresh seeds for SECONDS=600, or with the seeds from SEED=... on
	@mkdir -p bin && go build -o bin/shardkit ./cmd/shardkit
	@bin/shardkit soak --duration $$(($(SECONDS) / 4))s $(if $(SEED),--seed $(SEED))
	@SHARDKIT_SOAK=$$(($(SECONDS) / 4))s SHARDKIT_SEED=$(SEED) \
	  go test -count=1 -v -p 1 -timeout $$(($(SECONDS) + 300))s -run '^Test(Soak|NoOldValueAfterTheBound)$$' ./conformance/prop ./integration ./integration/tier

OUT ?= bench/out
bench: ## measure in under three minutes, and write every format into OUT=bench/out; shardkit bench list tells what else there is
	@tools/servers/install-redis
	@mkdir -p bin && go build -o bin/shardkit ./cmd/shardkit
	@bin/shardkit bench run publish-200-strings delta intersect-100 count cache failover ring coverage reader-p99 --out $(OUT)

bench-docs: bench ## measure, and renew docs/bench and the README's figures by it; on a quiet machine
	@cp $(OUT)/report.json $(OUT)/report.md $(OUT)/intersect-100-ratios.svg docs/bench/
	@go generate ./bench/scenarios

RUNS ?= 20
bench-selftest: ## count false alarms of the gate and what it finds, in RUNS=20 runs of each sort: ten minutes on a quiet machine
	@tools/servers/install-redis
	@set -o pipefail; SHARDKIT_SELFTEST=$(RUNS) go test -count=1 -v -timeout 60m -run '^TestSelf$$' ./bench/scenarios | grep -E 'SELFTEST|too few|^(---|FAIL|ok)'

peers-ring: ## set the rings of other projects beside ours: evenness, moved keys, speed
	@go -C tools/peers run ./rings

consumers: ## build and run programs that import one released module each, as their authors get it
	@tools/servers/install-redis
	@GOWORK=off go -C tools/release/consumers run .

docs-check: ## check the documentation: its Go compiles, its commands have those flags, its links lead somewhere
	@GOWORK=off go -C tools/docs run .
	@go test -count=1 -run '^(TestDocumentedCommands|TestParseRefuses)$$' ./cmd/shardkit
	@go test -count=1 ./integration/readme

VERSION ?= v0.1.0
release-dry-run: ## make the release VERSION=v0.1.0 of every module in a clone, build it from there, and push nothing
	@GOWORK=off go -C tools/release run . -version $(VERSION)

build: ## build the shardkit command into bin/
	go build -o bin/shardkit ./cmd/shardkit

check: bin/staticcheck ## vet, lint, and build each module by itself; check the licences of what they bring along
	@tools/dev/check $(modules)
	@GOWORK=off go -C tools/release run ./licenses

vulncheck: ## look for known vulnerabilities in what the modules use; needs the Go vulnerability database
	@tools/dev/vulncheck $(released)

api: ## compare the API of each released module with that of its last tag
	@tools/dev/api $(released)

generate: ## make generated files again
	go generate $(packages)

servers: ## fetch Redis 8.0 and Valkey 8.1 into .servers/, beside the system's Redis
	@tools/servers/fetch

bin/gotestsum: tool := gotest.tools/gotestsum
bin/staticcheck: tool := honnef.co/go/tools/cmd/staticcheck
bin/gotestsum bin/staticcheck: tools/dev/go.mod tools/dev/go.sum
	@echo "building $(@F)"
	@GOWORK=off go -C tools/dev build -o ../../$@ $(tool)
	@touch $@

.PHONY: help demo test test-speed test-servers conformance defects test-long test-idle soak bench bench-docs bench-selftest peers-ring consumers docs-check release-dry-run vulncheck api build check generate servers
