# sandwich: everything a person or CI runs. Needs Go and make, nothing else.
GO      ?= go
BIN     := bin/sandwich
VERSION ?= $(shell sh packaging/version.sh)
COMMIT  := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
MODULE_PATH := $(shell sed -n 's/^module //p' go.mod)
LDFLAGS := -s -w -X $(MODULE_PATH)/cmd/sandwich/internal/build.version=$(VERSION) \
  -X $(MODULE_PATH)/cmd/sandwich/internal/build.commit=$(COMMIT)
export CGO_ENABLED = 0
FUZZTIME ?= 30s
SOAKTIME ?= 10m
GATE_STATE ?= gate-proof.json
HAVE_CC  := $(shell command -v gcc cc clang 2>/dev/null | head -1)

.PHONY: build run test test-caches test-numa test-registry check gates race lint vet fmt arm64 fuzz golden size clean soak
.PHONY: bench results lanes ablation amx-check int8k-check histories losses speculation divisions prefixes
.PHONY: clients schemas agents agents-drafts agent-sessions pulls gate-proof
.PHONY: device-check device-check-build
.PHONY: test-ops
.PHONY: test-page
.PHONY: test-haproxy test-restart test-slurm test-slurm-guests test-exports
.PHONY: test-kubernetes run-kubernetes
.PHONY: release release-check test-deb test-guest test-module module
.PHONY: models-check cache-figures speculation-figures

build: ## the one static binary, at bin/sandwich
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/sandwich

run: build ## probe this machine, tune the embedded model within a minute, serve it on 127.0.0.1:8080
	./$(BIN) run

TESTFLAGS ?=
test: ## unit, property, golden and command tests
	$(GO) test $(TESTFLAGS) ./...

TEST_L3 ?= 4 64 512
test-caches: ## the tests as on machines with an L3 of each size in TEST_L3, in MiB
	for mib in $(TEST_L3); do SANDWICH_TEST_L3=$$mib $(GO) test -count=1 -tags testl3 ./... || exit 1; done

test-numa: ## sandwich inside a Linux guest of four NUMA nodes and one of arm64 clusters (docs/contributing/test-numa.md); skipped without qemu
	$(GO) test -tags numa -run TestGuest -count=1 -timeout 30m -v ./cmd/sandwich

check: gates ## the gates, and the tests of the rules of the module
	$(GO) test -count=1 ./cmd/sandwich/internal/lint

gates: fmt vet lint race arm64 ## what CI checks besides the tests

fmt:
	@out=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }

# Analyzers that collect garbage rarely take less time; the limit bounds their memory.
FEW_COLLECTIONS := GOGC=400 GOMEMLIMIT=2GiB
vet: # the tag adds files and removes none
	$(FEW_COLLECTIONS) $(GO) vet -tags numa ./...

lint:
	$(FEW_COLLECTIONS) $(GO) tool staticcheck -tags numa ./...

# Packages whose tests run several goroutines. sched and kvcache start none: the engine's tests run them under its
# locks. The packages below server start none either, but conntable: the server's tests run them concurrently.
# Kernels are plain Go in a race build, and slow. Tests that compare the bits of models are therefore skipped there if
# other tests run the same threads (skipUnderRace in runtime/engine). -vet=off: make vet checks the same files.
RACE_PACKAGES := ./cmd/sandwich/internal/asynclog ./runtime/pool ./runtime/server ./runtime/server/conntable
RACE := bin/race
# The tests of the engine run in two processes, which make -j2 runs in parallel: those of devices, and the others.
RACE_DEVICES := Device|Driver|Accelerator
# Runs the tests of a package: $(call race_test,PACKAGE,FLAGS).
race_test = cd $(1) && $(CURDIR)/$(RACE)/$(notdir $(1)).test -test.timeout=10m $(2)

.PHONY: race-build race-devices race-engine race-others
ifeq ($(HAVE_CC),)
race race-build:
	@echo "skipped: race tests of $(RACE_PACKAGES) and others (the race detector needs a C compiler, none was found)"
else
race: race-engine race-devices race-others ## tests of concurrent packages with the race detector

race-build: ## compiles the race tests into bin/race
	mkdir -p $(RACE)
	CGO_ENABLED=1 $(GO) test -vet=off -race -c -o $(RACE)/ $(RACE_PACKAGES) ./runtime/engine ./runtime/allreduce ./runtime/exec

race-engine: race-build
	$(call race_test,runtime/engine,-test.skip '$(RACE_DEVICES)')

race-devices: race-build
	$(call race_test,runtime/engine,-test.run '$(RACE_DEVICES)')

race-others: race-build
	for p in $(RACE_PACKAGES); do (cd $$p && $(CURDIR)/$(RACE)/$$(basename $$p).test -test.timeout=10m) || exit 1; done
	$(call race_test,runtime/allreduce,-test.run AllReduce)
	$(call race_test,runtime/exec,-test.run HeterogeneousWorkers)
endif

# Tests that run no machine code of arm64, but assemble, interpret or search sources, or run kernels in plain Go against
# an oracle in plain Go: make test runs them on this machine. The other tests compare arm64 kernels with the oracles.
QEMU_SKIP := ^Test(ValidSpecsAssemble|MachineCode|VectorCode|Deterministic|OnlyBackendsCompare)$$
QEMU_SKIP := $(QEMU_SKIP)|^TestOuterProductsInterpreted|^TestAttention(Forms|OfFewRows)$$/^go$$
HAVE_QEMU := $(shell command -v qemu-aarch64 2>/dev/null)
ARM64 := bin/arm64
QEMU := GODEBUG=asyncpreemptoff=1 qemu-aarch64 -cpu
# Runs kernel tests of a package under qemu: $(call arm64_test,PACKAGE,CPU,FLAGS).
arm64_test = cd $(1) && $(QEMU) $(2) $(CURDIR)/$(ARM64)/$(notdir $(1)).test -test.short $(3)

.PHONY: arm64-build arm64-microkernel arm64-vec arm64-engine
arm64: arm64-microkernel arm64-vec arm64-engine ## cross-build, and the kernel tests under qemu-user where it is installed

arm64-build:
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	mkdir -p $(ARM64)
	GOOS=linux GOARCH=arm64 $(GO) test -vet=off -c -o $(ARM64)/ ./microkernel ./microkernel/internal/vec ./runtime/engine

ifeq ($(HAVE_QEMU),)
arm64-microkernel arm64-vec arm64-engine: arm64-build
	@echo "skipped: $@ (qemu-aarch64 is not installed)"
else
arm64-microkernel: arm64-build
	$(call arm64_test,microkernel,max$(comma)sme_fa64=off,-test.skip '$(QEMU_SKIP)')

arm64-vec: arm64-build
	$(call arm64_test,microkernel/internal/vec,max$(comma)sme_fa64=off,-test.skip '$(QEMU_SKIP)')
	$(call arm64_test,microkernel/internal/vec,cortex-a72,-test.run TestQuantizeRowQ8)

arm64-engine: arm64-build
	$(call arm64_test,microkernel,cortex-a72,-test.run TestSpecialValues)
	for bytes in 64 128; do ($(call arm64_test,microkernel,max$(comma)sme_fa64=off$(comma)sme-default-vector-length=$$bytes,\
	  -test.run 'TestOuterProducts(OfBytes)?$$')) || exit 1; done
	$(call arm64_test,runtime/engine,max,-test.run 'TestParity/llama-(f16|q4_k)/(exact|default)')
endif

bench: build ## the speed goals on this machine, each figure next to its ceiling
	./$(BIN) bench gemm --threads 1
	./$(BIN) bench llm

fuzz: ## every fuzz target for FUZZTIME each
	@for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' $$pkg/*_test.go | cut -d' ' -f2); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; done

gate-proof: ## plants slowdowns of a known size and counts what plan check catches; hours, on a quiet machine, resumable (GATE_STATE)
	@test -n "$(GATE_MODEL)" || { echo "name a GGUF file: make gate-proof GATE_MODEL=llama-160m.q8_0.gguf"; exit 1; }
	$(GO) test -count=1 -run 'TestGateProof$$' -timeout 0 -v ./cmd/sandwich -gate-proof $(abspath $(GATE_STATE)) -gate-model $(abspath $(GATE_MODEL))

histories: ## a million random histories under each policy of the scheduler
	$(GO) test -count=1 -timeout 0 ./runtime/sched -histories 4000000

SPECULATED ?= 200
speculation: ## random requests, SPECULATED for each of 11 models, with and without drafts: the same tokens and log probabilities
	$(GO) test -count=1 -run 'TestDraftsChangeNothing$$' -timeout 0 -v ./runtime/engine -speculated $(SPECULATED)

WRITER_KILLS ?= 100
prefixes: ## prefixes on disk: every kind of store, WRITER_KILLS killed writers, and amd64 and arm64 (qemu) on one folder
	$(GO) test -count=1 -run 'TestStoredPrefixSurvivesRestart$$' ./runtime/engine -stores
	$(GO) test -count=1 -run 'TestKilledWriters$$' ./runtime/kvcache/disk -kills $(WRITER_KILLS)
	rm -rf $(CURDIR)/bin/prefixes && mkdir -p -m 700 $(CURDIR)/bin/prefixes
	$(GO) test -count=1 -run 'TestStoredElsewhere$$' ./runtime/engine -stored-dir $(CURDIR)/bin/prefixes
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -count=1 -exec "qemu-aarch64 -cpu max" -run 'TestStoredElsewhere$$' ./runtime/engine -stored-dir $(CURDIR)/bin/prefixes

PULL_KILLS ?= 500
pulls: ## downloads and pulls of models that are killed PULL_KILLS times each at random moments
	$(GO) test -count=1 -run 'TestKilled$$' -timeout 0 ./cmd/sandwich/internal/models/fetch ./cmd/sandwich/internal/models/pull -kills $(PULL_KILLS)

SCHEDULES ?= 10000
losses: ## SCHEDULES forwards of one rank and of several whose workers lose their CPUs at random: the same bits
	$(GO) test -count=1 -run 'TestLostWorkers$$' -timeout 0 -v ./runtime/engine -schedules $(SCHEDULES)

divisions: ## ten thousand forwards with random divisions among heterogeneous workers: equal bits
	$(GO) test -count=1 -timeout 0 -run HeterogeneousWorkers ./runtime/exec -divisions 500

soak: ## twelve clients for SOAKTIME: the same answers as alone, and nothing left behind
	$(GO) test -count=1 -run 'TestSoak$$' -timeout 0 -v ./cmd/sandwich -soak $(SOAKTIME)

# MODELS=1: the servers of make clients and make agents serve several models, with --models.
MODELS ?=
clients: build ## what SDKs ask, of the embedded model: official and other clients, in Go and JavaScript (docs/clients.md); needs npm (MODELS=1: of servers of several models)
	cd runtime/server/clients && npm ci && MODELS=$(MODELS) node --test --test-concurrency=1 openai.test.mjs families.test.mjs ai-sdk.test.mjs \
	  langchain.test.mjs anthropic.test.mjs ollama.test.mjs embeddings.test.mjs
	cd runtime/server/clients && MODELS=$(MODELS) $(GO) test -count=1 -v .

PAGE_TESTS := runtime/server/page/browser
test-page: build ## the page of the server in Chromium: chat, stop, reload, lost server, keys, 320 to 1,600 px, axe, hostile output; needs npm; installs Chromium if apt-get and root are there, else it is skipped (PAGE_PICTURES: folder for screenshots)
	@command -v chromium >/dev/null || test -n "$(CHROMIUM)" || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -y --no-install-recommends chromium; } || \
	  echo "skipped: the tests of the page (no Chromium; install one or set CHROMIUM to its path)"
	cd $(PAGE_TESTS) && npm ci --no-audit --no-fund && node --test --test-concurrency=1 --test-reporter=spec \
	  chat.test.mjs hostile.test.mjs layout.test.mjs access.test.mjs machine.test.mjs models.test.mjs

SCHEMAS ?= 1000
FIRST ?= 0
schemas: build ## answers under SCHEMAS generated schemas and a fifth as many tool sets, checked by another program's validator; minutes (FIRST: the one to begin with)
	cd runtime/server/clients && $(GO) test -count=1 -timeout 0 -run 'TestSchemas|TestToolSets|TestUnsatisfiable|TestFormatsTellApart' -v . -schemas $(SCHEMAS) -first $(FIRST)

AGENT_PRESET ?= qwen3-0.6b
AGENT_TOKENIZER ?= $(abspath runtime/demo/tales-6m-q8_0.gguf)
AGENT_MODEL ?= $(abspath bin/agent-$(AGENT_PRESET)$(if $(AGENT_TOKENIZER),-$(notdir $(AGENT_TOKENIZER:.gguf=))).gguf)
agents: build ## qwen-code, opencode and codex, non-interactively through a proxy that judges calls; some minutes each; needs npm (AGENT_TOKENIZER: a GGUF file whose tokenizer the random model gets; MODELS=1: of a server of several models)
	test -e $(AGENT_MODEL) || ./$(BIN) model synth --preset $(AGENT_PRESET) --template runtime/server/clients/tools.jinja \
	  $(if $(AGENT_TOKENIZER),--tokenizer-of $(AGENT_TOKENIZER)) -o $(AGENT_MODEL)
	cd runtime/server/clients && npm ci && cd agents && npm install --no-package-lock && cd .. && \
	  MODELS=$(MODELS) AGENT_LOGS=$(AGENT_LOGS) AGENT_MODEL=$(AGENT_MODEL) node --test-reporter=spec agents.test.mjs

AGENT_SESSIONS := bin/agent-sessions
agent-sessions: build ## records sessions of the agents of make agents with a model of one layer, and replays them with a restart in the middle, with and without the prefix store; needs npm
	rm -rf $(AGENT_SESSIONS) && mkdir -p $(AGENT_SESSIONS) bin/prefixes
	test -e bin/agent-one-layer.gguf || ./$(BIN) model synth --preset $(AGENT_PRESET) --layers 1 \
	  --template runtime/server/clients/tools.jinja --tokenizer-of runtime/demo/tales-6m-q8_0.gguf -o bin/agent-one-layer.gguf
	$(MAKE) agents AGENT_MODEL=$(abspath bin/agent-one-layer.gguf) AGENT_LOGS=$(abspath $(AGENT_SESSIONS))
	./$(BIN) bench cache replay $$(dirname $(AGENT_SESSIONS)/*/001.request.json) --model bin/agent-one-layer.gguf \
	  --ctx 65536 --dir bin/prefixes --format $(REPLAY_FORMAT)

REPLAY_FORMAT ?= table

AGENT_LAYERS ?= 4
AGENT_DRAFTS_LOGS ?= $(abspath bin/agent-requests)
AGENT_DRAFTS_MODEL ?= $(abspath bin/agent-$(AGENT_PRESET)-$(AGENT_LAYERS).gguf)
agents-drafts: build ## the requests of the three agents, answered without and with drafts: a table of acceptance and tokens/s; needs npm (AGENT_DRAFTS_LOGS keeps the requests, AGENT_LAYERS: of the random model)
	test -e $(AGENT_DRAFTS_MODEL) || ./$(BIN) model synth --preset $(AGENT_PRESET) --layers $(AGENT_LAYERS) \
	  --template runtime/server/clients/tools.jinja $(if $(AGENT_TOKENIZER),--tokenizer-of $(AGENT_TOKENIZER)) -o $(AGENT_DRAFTS_MODEL)
	test -e $(AGENT_DRAFTS_LOGS) || $(MAKE) agents AGENT_MODEL=$(AGENT_DRAFTS_MODEL) AGENT_LOGS=$(AGENT_DRAFTS_LOGS)
	cd runtime/server/clients && AGENT_MODEL=$(AGENT_DRAFTS_MODEL) AGENT_LOGS=$(AGENT_DRAFTS_LOGS) node drafts.mjs

RELEASE   := cmd/sandwich/internal/release
EPOCH     ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
RELEASED  ?= bin/release
release: ## tarballs, Debian packages, images, bills of materials and checksums for amd64 and arm64, in bin/release (docs/contributing/release.md)
	$(GO) run ./$(RELEASE) -version $(VERSION) -commit $(COMMIT) -epoch $(EPOCH) -o $(RELEASED) $(RELEASE_FLAGS)

release-check: release ## builds the release again from a copy in another folder with an empty build cache, and compares all bytes
	rm -rf bin/again && mkdir -p bin/again/source && git archive HEAD | tar -x --touch -C bin/again/source
	cd bin/again/source && GOCACHE=$(CURDIR)/bin/again/cache $(GO) run ./$(RELEASE) -version $(VERSION) -commit $(COMMIT) \
	  -epoch $(EPOCH) -o $(CURDIR)/bin/again/release $(RELEASE_FLAGS)
	cmp $(RELEASED)/SHA256SUMS bin/again/release/SHA256SUMS && diff -r $(RELEASED)/image bin/again/release/image
	chmod -R u+w bin/again && rm -rf bin/again

test-deb: ## installs the package of bin/release in a Debian chroot, serves as its user and purges it; needs root, debootstrap and a mirror
	sh packaging/test/deb.sh $(abspath $(RELEASED))

test-guest: ## boots and reboots the package of bin/release under systemd in an emulated guest; needs root, qemu and a kernel (docs/contributing/release.md)
	sh packaging/test/guest.sh $(abspath $(RELEASED))

test-module: ## renames a copy of the source tree and builds it; minutes
	$(GO) test -count=1 -timeout 0 -run 'TestRenamedTreeBuilds$$' -v ./$(RELEASE)/rename -whole

module: ## renames the module in this checkout: make module MODULE=host/owner/name
	@test -n "$(MODULE)" || { echo "name the module: make module MODULE=example.com/owner/sandwich"; exit 1; }
	$(GO) run ./$(RELEASE)/rename -module $(MODULE)

DEVICE_CHECK := bin/device-check
DEVICE_PACKAGES := libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2
device-check: device-check-build ## test the devices of a machine with an NVIDIA driver (docs/contributing/test-devices.md); PART selects parts
	$(DEVICE_CHECK)/device-check $(PART)

device-check-build: build ## everything device-check runs, in one folder; also carries the Vulkan loader where apt-get exists
	mkdir -p $(DEVICE_CHECK)/packages
	cp $(BIN) .ci/device-check $(DEVICE_CHECK)
	for package in runtime/device/hostcall runtime/device/cuda runtime/device/vulkan microkernel/devgen/kernels runtime/offload; do \
	  $(GO) test -c -trimpath -ldflags '-s -w' -o $(DEVICE_CHECK)/$$(basename $$package).test ./$$package || exit 1; done
	-cd $(DEVICE_CHECK)/packages && apt-get download $(DEVICE_PACKAGES)

# Programs of the distribution that tests need. Without root or apt-get the tests that lack one are skipped by name.
install = command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
  apt-get install -y --no-install-recommends $(2); } || true

ROUNDS_SESSIONS ?= 3
test-haproxy: build ## four replicas behind HAProxy: sessions by hash and round robin, and rolling restarts without a failed request
	$(call install,haproxy,haproxy)
	cd cmd/sandwich/enginetest && $(GO) test -count=1 -v -timeout 10m ./haproxy -timed -rounds $(ROUNDS_SESSIONS)

# Without the flags of make build, the packages that make test has compiled are linked as they are.
test-restart: ## a rolling restart of four replicas behind HAProxy while requests run; skipped without haproxy
	$(GO) build -o bin/restart/sandwich ./cmd/sandwich
	cd cmd/sandwich/enginetest && $(GO) test -count=1 -v -run 'TestRollingRestart$$' ./haproxy \
	  -binary $(CURDIR)/bin/restart/sandwich

test-slurm: build ## the exported jobs on a Slurm cluster of three nodes on this machine: tuning once for each kind, serving, canceling
	$(call install,slurmctld,slurm-wlm munge)
	cd cmd/sandwich/enginetest && $(GO) test -count=1 -v -timeout 45m -skip TestGuests ./slurm

GUESTS := bin/guests
test-slurm-guests: build ## the exported jobs on a Slurm cluster of guests with different topologies (docs/contributing/test-numa.md); needs root, qemu and a kernel; under KVM where the CPUs have it
	$(call install,slurmctld,slurm-wlm munge)
	$(call install,ip,iproute2)
	$(call install,qemu-system-x86_64,qemu-system-x86 qemu-system-common)
	$(GO) build -o $(GUESTS)/boot ./cmd/sandwich/internal/testguest/boot
	$(GO) build -o $(GUESTS)/init ./cmd/sandwich/internal/testguest/init
	cd cmd/sandwich/enginetest && $(GO) test -count=1 -v -timeout 1h -run TestGuests ./slurm

KUBERNETES := bin/kubernetes
KUBETEST   := cmd/sandwich/kubetest
KUBE_VERSION = $(shell sed -n 's/^\tk8s.io.kubernetes v//p' $(KUBETEST)/go.mod)
KUBE_LDFLAGS = -s -w -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION) \
  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION)))
# The definitions of a kind of custom resources: module, version and file.
definition = $(GO) -C / mod download $(1)@$(2) && \
  install -m 644 "$$($(GO) -C / list -m -f '{{.Dir}}' $(1)@$(2))/$(3)" $(KUBERNETES)/crds
test-kubernetes: build ## the exported manifests on a Kubernetes cluster of two nodes on this machine: strict validation, exclusive CPUs, a rollout under load, CPUs that change; needs root and builds Kubernetes, which takes minutes and 3 GB at first
	$(call install,containerd,containerd)
	$(call install,runc,runc)
	$(call install,nft,nftables)
	$(call install,/usr/lib/cni/ptp,containernetworking-plugins)
	@why=$$($(GO) -C $(KUBETEST) run ./check) && if test -z "$$why"; then $(MAKE) run-kubernetes; else echo "$$why"; fi

run-kubernetes:
	$(GO) run ./$(RELEASE) -arch $$($(GO) env GOARCH) -no-deb -version test -commit $(COMMIT) -epoch $(EPOCH) \
	  -o $(KUBERNETES)/release
	mkdir -p $(KUBERNETES)/crds
	$(call definition,sigs.k8s.io/gateway-api-inference-extension,v1.5.0,config/crd/bases/inference.networking.k8s.io_inferencepools.yaml)
	$(call definition,sigs.k8s.io/node-feature-discovery,v0.18.3,deployment/base/nfd-crds/nfd-api-crds.yaml)
	$(GO) -C $(KUBETEST) build -ldflags '$(KUBE_LDFLAGS)' -o $(CURDIR)/$(KUBERNETES)/kube ./kube
	$(GO) -C $(KUBETEST) build -ldflags '-s -w' -o $(CURDIR)/$(KUBERNETES)/pause ./pause
	$(GO) -C $(KUBETEST) test -vet=off -count=1 -v -timeout 13m . -kube $(CURDIR)/$(KUBERNETES)/kube \
	  -pause $(CURDIR)/$(KUBERNETES)/pause -crds $(CURDIR)/$(KUBERNETES)/crds -binary $(CURDIR)/$(BIN) \
	  -image $(CURDIR)/$(KUBERNETES)/release/sandwich-test-image-$$($(GO) env GOARCH).tar

test-exports: build ## the exported manifests and configurations, decoded strictly into the types of Kubernetes and llm-d
	cd cmd/sandwich/exporttest && $(GO) test -count=1 -v .

test-registry: build ## plans and prefixes pushed to a real registry on a loopback address, and models pulled from it
	cd cmd/sandwich/registrytest && $(GO) test -count=1 -v .

golden: ## rewrite golden files from what the code prints now; review the diff
	$(GO) test ./topotree ./plans ./cmd/sandwich -update

amx-check: ## products and prompts on each compute path, for a machine with AMX; uses bin/sandwich as it is (PARTS: test gemm onednn llm models overlap ops)
	sh docs/results/amx-check.sh ./$(BIN) $(PARTS)

.PHONY: amx-goals
amx-goals: ## what issue 48 asks of a machine with AMX: goal and figure side by side, in about 12 minutes on 16 PUs (PARENT: binary of another build; PARTS: gemm onednn llm models)
	AMX_GOALS=1 PARENT=$(PARENT) sh docs/results/amx-check.sh ./$(BIN) $(PARTS) | tee bin/amx-goals.txt
	awk -f docs/results/amx-goals.awk bin/amx-goals.txt

# A results file consists of bin/NAME.csv and lines that say how it was measured.
# $(call record,NAME,TITLE,COMMAND,NOTE) writes it for the machine RESULTS_MACHINE; RESULTS_NOTE adds a note.
RESULTS_MACHINE ?= zen4-2c
define record
	{ echo "# title: $(2)"; echo "# command: $(3)"; echo "# build: $(COMMIT)"; echo "# date: $$(date +%F)"; echo "# note: $(4)"; \
	  test -z "$(RESULTS_NOTE)" || echo "# note: $(RESULTS_NOTE)"; cat bin/$(1).csv; \
	} > docs/results/data/$(RESULTS_MACHINE)/$(1)-1.csv
	$(MAKE) results
endef
comma := ,
SIMULATED := the device takes simulated time and computes nothing; the engine, its scheduler and the cores are real

ROUNDS ?= 40
int8k-check: build ## q2_K and q3_K by int8-k and by int8-256, in ROUNDS interleaved pairs on a quiet machine; writes int8-k-1.csv of RESULTS_MACHINE
	sh docs/results/int8k-check.sh ./$(BIN) $(ROUNDS) > bin/int8-k.csv
	$(call record,int8-k,q2_K and q3_K by exact integer sums (int8-k) and by superblock activations (int8-256),make \
	  int8k-check ROUNDS=$(ROUNDS),medians of interleaved pairs$(comma) and the median of their ratios)

LANES_FLAGS ?= --reactive 60 --proactive 3000 --queue 4096 --duration 6s --speeds 1,3,20 --runs 2
lanes: build ## one lane for both phases against a lane for each, on a simulated device in the real engine; writes lanes-1.csv of RESULTS_MACHINE
	./$(BIN) bench load lanes $(LANES_FLAGS) --format csv > bin/lanes.csv
	$(call record,lanes,First-token latency and proactive throughput with a simulated device$(comma) by lanes,sandwich bench \
	  load lanes $(LANES_FLAGS) --format csv,$(SIMULATED))

ABLATION_FLAGS ?= --threads 1 --traffic --reactive 60 --proactive 3000 --queue 4096 --duration 6s --speed 3 --runs 3
ablation: build ## reactive first token and proactive throughput without each part of the dispatch to a device, simulated; writes ablation-1.csv of RESULTS_MACHINE
	./$(BIN) bench load ablation $(ABLATION_FLAGS) --format csv > bin/ablation.csv
	$(call record,ablation,First-token latency and proactive throughput with a simulated device$(comma) without each part of \
	  the dispatch,sandwich bench load ablation $(ABLATION_FLAGS) --format csv,$(SIMULATED); with --traffic it reads as much \
	  memory as its kernels would$(comma) on a core of its own)

FIGURES_DIR ?= bin
SPECULATION_PARTS ?= bounds deep wrong lookup long
speculation-figures: build ## generation without and with drafts on a quiet machine (SPECULATION_PARTS, PAIRS, LONG_PAIRS); writes speculation-figures-1.csv of RESULTS_MACHINE
	sh docs/results/speculation-check.sh ./$(BIN) $(FIGURES_DIR) $(SPECULATION_PARTS) > bin/speculation-figures.csv
	$(call record,speculation-figures,Speculative decoding,make speculation-figures SPECULATION_PARTS='$(SPECULATION_PARTS)',medians \
	  of interleaved pairs; the bound is that of the measured step times)

cache-figures: build ## first tokens after a restart, hits of a small store, and times between tokens next to a slow store (FIGURES_DIR: a folder on the disk); writes cache-*-1.csv of RESULTS_MACHINE
	sh docs/results/cache-check.sh ./$(BIN) $(FIGURES_DIR) > bin/cache-restart.csv
	$(call record,cache-restart,First token of a long prompt after a restart$(comma) from the prefix store,make cache-figures,pages \
	  of the store are dropped from the page cache; the bound is 1.25 times bytes by read rate and 0.3 s)
	./$(BIN) model synth --preset llama-160m --type q8_0 -o bin/stored.gguf
	./$(BIN) bench cache sessions --model bin/stored.gguf --cache-bytes 256MB --sessions 200 --dir $(FIGURES_DIR) --format csv > bin/cache-sessions.csv
	$(call record,cache-sessions,Hits of a small prefix store against an exact LRU,make cache-figures,llama-160m q8_0$(comma) 200 \
	  sessions under 256 MB)
	./$(BIN) bench cache loop --model bin/stored.gguf --pairs 40 --delay 20ms --dir $(FIGURES_DIR) --format csv > bin/cache-loop.csv
	$(call record,cache-loop,Times between tokens with a prefix store on a slow disk,make cache-figures,llama-160m q8_0$(comma) 40 \
	  interleaved pairs; every call of the file interface is delayed by 20 ms)

SERVED_MODEL ?= tinyllama-1.1b
LOADED_MODEL ?= tinyllama-1.1b
models-check: build ## time per token of SERVED_MODEL while LOADED_MODEL loads, with an A/A arm, and time to the first token after a load; presets, on a quiet machine
	./$(BIN) model synth --preset $(SERVED_MODEL) --type q8_0 --seed 1 -o bin/served.gguf
	./$(BIN) model synth --preset $(LOADED_MODEL) --type q8_0 --seed 2 -o bin/loaded.gguf
	$(GO) test -count=1 -v -timeout 60m -run TestLatency ./cmd/sandwich/internal/cli/serve/modelset \
	  -latency-served $(CURDIR)/bin/served.gguf -latency-loaded $(CURDIR)/bin/loaded.gguf
	$(GO) test -count=1 -timeout 60m -run TestMixed ./cmd/sandwich/internal/cli/serve/modelset -mixed 500

PAPERS_MODEL ?= llama-160m
PAPERS_FLAGS ?= --figures 8,9,10 --minutes 15
papers: build ## Agent.xpu's figures 8 to 10 in the engine with simulated devices; writes papers-1.csv of RESULTS_MACHINE
	./$(BIN) model synth --preset $(PAPERS_MODEL) --type q8_0 -o bin/papers.gguf
	./$(BIN) bench papers --model bin/papers.gguf $(PAPERS_FLAGS) --format csv > bin/papers.csv
	$(call record,papers,Agent.xpu$(comma) figures 8 to 10$(comma) in the engine with simulated devices,sandwich bench papers --model \
	  $(PAPERS_MODEL)-q8_0.gguf $(PAPERS_FLAGS) --format csv,$(SIMULATED))

results: ## write docs/results/MACHINE.md from the CSV files of docs/results/data
	$(GO) run ./cmd/sandwich/internal/results docs/results

size: build
	@ls -l $(BIN) | awk '{printf "%.1f MB %s\n", $$5/1e6, $$9}'

clean:
	rm -rf bin

PROMTOOL ?= $(shell command -v promtool 2>/dev/null)
DASHBOARD_LINTER ?= $(shell command -v dashboard-linter 2>/dev/null)
test-ops: ## the dashboard, the alert rules and /metrics by promtool and dashboard-linter (github.com/grafana/dashboard-linter); those that are not installed are skipped
	PROMTOOL=$(PROMTOOL) DASHBOARD_LINTER=$(DASHBOARD_LINTER) $(GO) test -count=1 -run 'TestServeTraces|TestOperationsTools' -v ./cmd/sandwich
