# The front door. Needs Rust (cargo), the C compiler that Rust links with, Python 3.11 or newer with venv, and make; to test, or to change
# the page of inprofile view, Node with npm too. Everything else it gets itself, into .venv and target. Nothing is done twice: stamps in
# .venv say what is there.

PYTHON ?= $(or $(shell command -v python3.11 || command -v python3),python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.toml')
say = @printf '\n== %s\n'
# $(call needs,command,what it is and how to get it)
needs = @command -v $(1) >/dev/null || { echo "$(2)" >&2; exit 1; }
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.DEFAULT_GOAL := help
.PHONY: help help-all build page lint-page reproduce compare atlas renew test check soak soak-ns2 mechanism wrong-laws ns2 fuzz attack trial deb deps monitoring wire clock toolchain lint lint-rust lint-python compiled-tests test-rust test-python test-page bench cost profile validate validate-live validate-linux docs laws wheel release requirements clean
.DELETE_ON_ERROR:

# What make help lists: the rest is for who works on it, and for releases.
FRONT := build|reproduce|check|test|docs|wheel

help: ## Say what is made most
	@awk -F ':.*## ' '/^($(FRONT)):.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  make help-all     Say everything there is to make"

help-all: ## Say everything there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(VENV)/.built $(VENV)/bin/inprofiled ## Build everything into .venv; then .venv/bin/inprofile and inprofiled are there

reproduce: $(VENV)/.built ## Reproduce the papers: run, judge, write the report
	@$(BIN)/inprofile reproduce

compare: $(VENV)/.built ## Compare all schemes at equal delay, apart from reproduce (a quarter of an hour of CPU time; the page joins its reports)
	@$(BIN)/inprofile compare

atlas: $(VENV)/.built ## Map where each paper's claims hold, coarsely (twenty minutes on two cores; BUDGET=n points a paper)
	@$(BIN)/inprofile atlas --budget $(or $(BUDGET),48) --out reports

renew: $(VENV)/.built ## Regenerate what is committed of atlases, verdicts and comparison (an hour or more; BUDGET=n points a paper, else as many as now)
	@$(BIN)/inprofile reproduce --full --senders$(if $(BUDGET),, --atlas)
	$(if $(BUDGET),@$(BIN)/inprofile atlas --budget $(BUDGET) --out reports)
	@$(BIN)/inprofile compare
	@$(BIN)/python docs/renew.py reports

# Python's packages, the simulator's last step, types and the page take one core each: meanwhile the Rust tests compile on the other.
# Tests run after that, as those between namespaces keep real time.
test: ## Run every check and test
	@$(MAKE) --no-print-directory --output-sync=target --jobs=2 $(VENV)/.built lint-rust compiled-tests lint-python lint-page
	@$(MAKE) --no-print-directory test-rust test-python

check: $(VENV)/.packages ## Run what one runs before a commit: format, lints, types, and the tests nearest to what changed
	@.ci/check

lint: lint-rust lint-python lint-page

lint-rust: bpf-compared toolchain
	$(say) "Rust: format and lints"
	@cargo fmt --all --check
	@cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

lint-python: $(VENV)/.packages
	$(say) "Python: format, lints and types"
	@$(BIN)/ruff format --quiet --check python docs validation benches packaging web/test
	@$(BIN)/ruff check --quiet python docs validation benches packaging web/test
	@$(BIN)/mypy
	@MYPYPATH=benches/race $(BIN)/mypy benches/race
	@MYPYPATH=validation $(BIN)/mypy validation
	@$(BIN)/mypy packaging/release.py packaging/man.py packaging/wire.py packaging/clock.py packaging/own_mechanism.py packaging/monitoring/check.py

lint-page: web/node_modules/.packages
	$(say) "Page: types, and built as committed"
	@cd web && npm run --silent check && npm run --silent build -- --outDir ../target/page-built
	@diff -rq target/page-built python/inprofile/view/page || { echo "the page is not what Node builds of web/: make page" >&2; exit 1; }

compiled-tests: toolchain
	$(say) "Rust: tests, compiled"
	@cargo test --quiet --locked --workspace --exclude inprofile-python --no-run

# Two tests a core: those between namespaces mostly wait.
test-rust: compiled-tests
	$(call needs,ip,iproute2 is missing; tests between namespaces make their devices with it: apt-get install iproute2)
	$(say) "Rust: tests"
	@RUST_TEST_THREADS=$$((2 * $$(nproc))) cargo test --quiet --locked --workspace --exclude inprofile-python

test-page: $(VENV)/.built page $(VENV)/.page ## Try the page of inprofile view in Chromium, at two widths, light and dark (as root it installs what is missing; a minute)
	@command -v chromium >/dev/null || { echo "chromium is missing: apt-get install chromium"; \
		test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	$(call needs,ip,iproute2 is missing; a router that runs needs it: apt-get install iproute2)
	@cargo build --quiet --locked -p inprofile-router
	$(say) "Page: what needs no browser"
	@cd web && npm run --silent test
	$(say) "Page: in Chromium; pictures in target/page"
	@$(BIN)/pytest --quiet --capture=no web/test

test-python: $(VENV)/.built
	$(say) "Python: tests"
	@$(BIN)/pytest --quiet --numprocesses auto --dist worksteal

mechanism: $(VENV)/.built ## Try what inprofile new-mechanism writes: tested, built into a wheel, installed, run (part of soak; five minutes)
	$(say) "A mechanism in a crate of its own"
	@$(BIN)/python packaging/own_mechanism.py target/own-mechanism

wrong-laws: $(VENV)/.built ## Put a wrong law in place of each of the papers' laws, and see a test fail (part of soak; some ten minutes)
	$(say) "Wrong laws of the papers, each noticed by a test"
	@$(BIN)/python validation/wrong_laws.py

soak: soak-ns2 mechanism wrong-laws ## Ten thousand random experiments and fuzzed inputs, two thousand against ns-2, a million packets, a day of the router (twenty minutes; CASES=n, NS2_CASES=n for other numbers)
	$(say) "Soak: $(or $(CASES),10000) random experiments and inputs"
	@INPROFILE_CASES=$(or $(CASES),10000) cargo test --quiet --locked --release -p inprofile-experiment --test experiment \
		-- services:: parts:: fuzz:: limits:: --include-ignored --nocapture
	@INPROFILE_CASES=$(or $(CASES),10000) cargo test --quiet --locked --release -p inprofile-router --test fuzz -- --include-ignored --nocapture
	$(say) "Soak: $(or $(PACKETS),1000000) random and as many mutated packets"
	@PACKETS=$(or $(PACKETS),1000000) cargo test --quiet --locked --release -p inprofile-live --test live packets::
	$(say) "Soak: $(or $(PACKETS),1000000) mutated and as many random frames of every encapsulation through the router"
	@PACKETS=$(or $(PACKETS),1000000) cargo test --quiet --locked --release -p inprofile-router --test attacks mutated -- --nocapture
	$(say) "Soak: a million flows, and a million fragments, through the router"
	@cargo test --quiet --locked --release -p inprofile-router --test router -- --ignored
	$(say) "Soak: a day of 10 Mbit/s through the router, 72 million packets, under a virtual clock"
	@cargo test --quiet --locked --release -p inprofile-router --test soak -- --ignored --nocapture
	$(say) "Soak: twenty runs, each as long as was said before"
	@$(BIN)/python validation/estimates.py
	$(say) "Soak: twenty plans of which the answer is known"
	@$(BIN)/python validation/plan_links.py
	$(say) "Soak: twenty flows that starve, and whether they are mended without the cause that explain names"
	@$(BIN)/python validation/causes.py
	$(say) "Soak: 60 policers and 200 captures without one, diagnosed"
	@$(BIN)/python validation/policers.py
	$(say) "Soak: the plan of a tree that the guide shows"
	@$(BIN)/python validation/tree_guide.py

# What cargo-fuzz builds with.
FUZZ := -Cpasses=sancov-module \
	$(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares) \
	--cfg fuzzing -Clink-dead-code -Zsanitizer=address -Ccodegen-units=1

fuzz: ## Fuzz with libFuzzer, two minutes a target (SECONDS=n for another time; needs a nightly compiler)
	$(say) "Fuzz"
	@cp Cargo.lock fuzz/Cargo.lock
	@cd fuzz && host=$$(rustc +nightly -vV | sed -n 's/^host: //p') && \
		RUSTFLAGS="$(FUZZ)" cargo +nightly build --quiet --release --target "$$host" --bins && \
		for body in import packet receiver router scenario; do \
			mkdir -p corpus/$$body artifacts/$$body && echo "$$body:" && \
			"$${CARGO_TARGET_DIR:-target}/$$host/release/$$body" -max_total_time=$(or $(SECONDS),120) -max_len=4096 \
				-verbosity=0 -print_funcs=0 -print_final_stats=1 -artifact_prefix=artifacts/$$body/ corpus/$$body || exit 1; \
		done

attack: ## Search for a way to cheat the router, by strategies that are mutated (an hour for each datapath; MINUTES=n, SEED=n for another search)
	$(say) "Attacks on the router: $(or $(MINUTES),60) minutes in user space"
	@MINUTES=$(or $(MINUTES),60) cargo test --quiet --locked --release -p inprofile-router --test attacks search -- --nocapture
	$(say) "And as long on the kernel's datapath"
	@MINUTES=$(or $(MINUTES),60) cargo test --quiet --locked --release -p inprofile-router --test kernel no_strategy_cheats -- --nocapture

trial: ## Try the router's unit under a systemd booted in namespaces, and its package in a bare Debian (as root; two minutes)
	$(say) "inprofiled.service under systemd"
	@cargo build --quiet --locked -p inprofile-router
	@packaging/trial.sh "$${CARGO_TARGET_DIR:-target}/debug/inprofiled"
	$(say) "The same with the kernel's datapath"
	@packaging/trial.sh "$${CARGO_TARGET_DIR:-target}/debug/inprofiled" kernel
	@$(MAKE) --no-print-directory deb PROFILE=dev DEB_VERSION=0.0.1-1 DEB=target/package/first.deb
	@$(MAKE) --no-print-directory deb PROFILE=dev DEB_VERSION=0.0.2-1 DEB=target/package/second.deb
	$(say) "The package in a bare Debian: installed, upgraded, purged"
	@command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap"; \
		test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; }
	@packaging/deb/life.sh target/package/first.deb target/package/second.deb

PROFILE := release
DEB := target/package/inprofiled.deb
CARGO_DEB := target/tools/bin/cargo-deb
CARGO_DENY := target/tools/bin/cargo-deny

deps: $(CARGO_DENY) ## Look the locked Rust dependencies over: licences, duplicate versions, sources (with cargo-deny, which it installs into target)
	@$(CARGO_DENY) --offline --locked check bans licenses sources

$(CARGO_DENY):
	$(say) "cargo-deny"
	@cargo install --quiet --locked cargo-deny --version 0.20.2 --root target/tools


deb: $(CARGO_DEB) ## Build the router's Debian package into target/package (with cargo-deb, which it installs into target)
	$(say) "inprofiled.deb"
	@cargo build --quiet --locked --profile $(PROFILE) -p inprofile-router
	@built="$${CARGO_TARGET_DIR:-target}/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/inprofiled"; \
		rm -rf target/package/man && mkdir -p target/package/man && "$$built" man target/package/man && \
		for shell in bash zsh fish; do "$$built" completions $$shell >target/package/inprofiled.$$shell || exit 1; done
	@$(CARGO_DEB) --quiet --no-build --profile $(PROFILE) -p inprofile-router \
		$(if $(DEB_VERSION),--deb-version $(DEB_VERSION)) --output $(DEB)
	@ls $(DEB)

$(CARGO_DEB):
	$(say) "cargo-deb"
	@cargo install --quiet --locked cargo-deb --version 3.8.0 --root target/tools

monitoring: ## Check alert rules and dashboard against a router and a Prometheus that run (as root; installs prometheus)
	@command -v promtool >/dev/null || { echo "promtool is missing: apt-get install prometheus"; \
		test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus; }
	@cargo build --quiet --locked -p inprofile-router
	$(say) "Metrics, alert rules and dashboard"
	@$(PYTHON) packaging/monitoring/check.py "$${CARGO_TARGET_DIR:-target}/debug/inprofiled"

wire: ## Send iperf3 through the router and read the capture with tshark (as root it installs them; a minute)
	@cargo build --quiet --locked --release -p inprofile-router
	$(say) "iperf3 through the router, the capture read by tshark"
	@$(PYTHON) packaging/wire.py "$${CARGO_TARGET_DIR:-target}/release/inprofiled"

clock: ## Step the machine's clock under the router, an hour each way, and set it right again (as root; half a minute; not in CI)
	@cargo build --quiet --locked --release -p inprofile-router
	$(say) "The clock is set while the router forwards"
	@$(PYTHON) packaging/clock.py "$${CARGO_TARGET_DIR:-target}/release/inprofiled"

bench: $(VENV)/.built ## Race ns-2, ns-3, DPDK and the kernel, installed if need be; write docs/benchmarks (half an hour; a quiet machine)
	$(say) "Benchmarks"
	@$(BIN)/python benches/race $(BENCH)

cost: ## Measure what marking decisions and a fairness ledger cost (claims E6, D10); a quiet machine
	$(say) "Cost of a decision"
	@cargo run --quiet --release --package inprofile-benches --bin bench-markers > cost.json.part
	@mv cost.json.part python/inprofile/papers/twam/cost.json
	@cargo run --quiet --release --package inprofile-benches --bin bench-ledger > cost.json.part
	@mv cost.json.part python/inprofile/papers/fdd_red/cost.json

profile: $(VENV)/.built ## Show where the time of the 100-flow dumbbell goes (FLOWS=1000 for another)
	$(say) "Profile"
	@$(BIN)/python benches/race --profile $(or $(FLOWS),100)

ns2:
	@command -v ns >/dev/null || { \
		echo "ns-2 is missing: apt-get install ns2"; \
		test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends ns2; }

soak-ns2: $(VENV)/.built ns2 ## Compare experiments that nobody has seen with ns-2 (part of soak; NS2_CASES=n for another number than 2000)
	$(say) "Soak: $(or $(NS2_CASES),2000) random experiments against ns-2"
	@$(BIN)/python validation/random_runs.py --fresh --runs $(or $(NS2_CASES),2000)

validate: $(VENV)/.built ns2 ## Compare with ns-2 and DPDK, event by event, and with ns-3's closed loops (as root it installs what is missing)
	@{ pkg-config --exists libdpdk && command -v g++; } >/dev/null || test "$$(id -u)" != 0 || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends libdpdk-dev gcc g++ pkg-config; }
	$(say) "Against ns-2, DPDK and ns-3"
	@$(BIN)/python validation/run.py

validate-live: $(VENV)/.built ## Compare with the kernel's own TCP, in wall time; write docs/kernel (an hour; JOBS=n side by side)
	$(say) "Against the kernel"
	@$(BIN)/python validation/kernel.py --jobs $(or $(JOBS),4)

validate-linux: $(VENV)/.built ## Compare with Linux's own queue disciplines, policer and TCP, in a kernel that boots as a process, and load the worked plans there; write docs/linux and docs/transfers (as root it installs what is missing; a quarter of an hour)
	@{ command -v linux.uml && command -v modprobe && command -v tc && command -v gcc; } >/dev/null || test "$$(id -u)" != 0 || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends user-mode-linux kmod iproute2 gcc libc6-dev; }
	$(say) "Against Linux"
	@$(BIN)/python validation/linux.py
	$(say) "Against Linux's TCP"
	@$(BIN)/python validation/transfers.py
	$(say) "The worked plans, loaded by Linux's tc and the router"
	@$(BIN)/python validation/plans.py

docs: $(VENV)/.built $(VENV)/.docs ## Build the documentation site into target/docs, its examples run; warnings are errors
	$(say) "Documentation: examples and links"
	@INPROFILE_DOCS=1 $(BIN)/pytest --quiet python/tests/test_docs.py python/tests/test_glossary.py
	$(say) "Documentation: the site"
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html -d target/docs-cache docs target/docs
	@echo "target/docs/index.html is its first page"

laws: ## Write target/requirements.md: which law is kept where, and tested by what
	@$(PYTHON) docs/requirements.py

MAN := inprofile._internal.data/data/share/man/man1/inprofile.1

wheel: $(VENV)/.built ## Build the wheel, with its man page, into dist; then use it where there is no Rust
	$(say) "Wheel"
	@rm -rf dist
	@$(BIN)/python packaging/man.py $(MAN)
	@$(BIN)/maturin build --quiet --release --locked --out dist
	@ls dist
	$(say) "Wheel: installed and run without Rust"
	@rm -rf target/wheel-trial
	@$(PYTHON) -m venv target/wheel-trial/venv
	@target/wheel-trial/venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements.txt
	@target/wheel-trial/venv/bin/python -m pip --quiet --disable-pip-version-check install --no-deps dist/*.whl
	@cd target/wheel-trial && env -i HOME="$$PWD" LC_ALL=C.UTF-8 PATH=/nowhere venv/bin/inprofile new trial
	@cd target/wheel-trial && env -i HOME="$$PWD" LC_ALL=C.UTF-8 PATH=/nowhere venv/bin/inprofile run trial.toml --seeds 2
	@rm -rf target/wheel-trial

release: $(VENV)/.built $(CARGO_DEB) target/tools/bin/cargo-cyclonedx target/tools/sbom/bin/cyclonedx-py ## Make VERSION=x.y.z of what is committed, in dist: wheel, sdist, deb, bills of materials, checksums, all tried; tag it (TRY=1: no tag)
	@$(BIN)/python packaging/release.py "$(VERSION)" $(if $(TRY),--try)

target/tools/bin/cargo-cyclonedx:
	$(say) "cargo-cyclonedx"
	@cargo install --quiet --locked cargo-cyclonedx --version 0.5.7 --root target/tools

target/tools/sbom/bin/cyclonedx-py:
	$(say) "cyclonedx-py"
	@$(PYTHON) -m venv target/tools/sbom
	@target/tools/sbom/bin/python -m pip --quiet --disable-pip-version-check install cyclonedx-bom==7.5.0

LOCK := target/uv/bin/uv pip compile --quiet --python-version 3.11 --upgrade --generate-hashes --no-annotate --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make requirements"
# $(call locked,name of the file,group,files before it): what the group needs beyond those files, the last of which it includes
locked = @$(LOCK) --group $(2) $(addprefix --constraint ,$(3)) $$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' $(3)) >target/locked && \
	{ echo "-r $(lastword $(3))"; sed '/^\# The following packages were excluded/,$$d' target/locked; } >requirements-$(1).txt

requirements: $(VENV)/.packages ## Renew requirements*.txt from pyproject.toml
	@$(PYTHON) -m venv target/uv && target/uv/bin/python -m pip --quiet --disable-pip-version-check install uv
	@$(LOCK) pyproject.toml -o requirements.txt >target/locked
	$(call locked,dev,tools,requirements.txt)
	$(call locked,docs,docs,requirements.txt requirements-dev.txt)
	$(call locked,page,page,requirements.txt requirements-dev.txt)

clean: ## Remove everything that was made
	rm -rf $(VENV) target dist inprofile._internal.data web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find python -name __pycache__ -prune -exec rm -rf {} + ; find python -name '*.so' -delete

toolchain:
	$(call needs,$(PYTHON),Python is missing: apt-get install python3 python3-venv; or say which: make PYTHON=python3.12)
	$(call needs,cargo,Rust is missing: install it with rustup ($(RUST_VERSION) or newer) and put cargo on the PATH)
	$(call needs,cc,A C compiler is missing; Rust links with it: apt-get install gcc libc6-dev)
	@have=$$(cargo --version | cut -d' ' -f2); printf '%s\n' $(RUST_VERSION) "$$have" | sort -CV || \
		{ echo "Rust $(RUST_VERSION) or newer is needed, and cargo is $$have: rustup update" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which: make PYTHON=python3.12")'

$(VENV)/.packages: requirements.txt requirements-dev.txt | toolchain
	$(say) "Python packages"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.page: $(VENV)/.packages requirements-page.txt
	$(say) "Packages of the page's tests"
	@$(PIP) install --no-compile --require-hashes -r requirements-page.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.packages requirements-docs.txt
	$(say) "Packages of the documentation"
	@$(PIP) install --no-compile --require-hashes -r requirements-docs.txt
	@touch $@

# The page of inprofile view is committed as built. npm's own messages are of use only where it fails.
NODE_VERSION := $(shell sed -n 's/.*"node": ">=\([0-9.]*\)".*/\1/p' web/package.json)

page: web/node_modules/.packages ## Build the page of inprofile view of web/ into the package, where it is committed (needs Node)
	$(say) "Page of inprofile view"
	@cd web && npm run --silent build

web/node_modules/.packages: web/package.json web/package-lock.json web/.npmrc
	$(call needs,node,Node is missing; the page of inprofile view is built with it: apt-get install nodejs npm)
	$(call needs,npm,npm is missing; the page of inprofile view is built with it: apt-get install npm)
	@have=$$(node --version | tr -d v); printf '%s\n' $(NODE_VERSION) "$$have" | sort -CV || \
		{ echo "Node $(NODE_VERSION) or newer is needed, and node is $$have" >&2; exit 1; }
	$(say) "Packages of the page"
	@cd web && npm ci --silent
	@touch $@

$(VENV)/.built: $(VENV)/.packages pyproject.toml $(RUST)
	$(say) "Simulator"
	@PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --release --locked
	@touch $@

$(VENV)/bin/inprofiled: $(VENV)/.packages $(RUST)
	$(say) "Router"
	@cargo build --quiet --locked --release -p inprofile-router
	@install "$${CARGO_TARGET_DIR:-target}/release/inprofiled" $@

# The kernel's datapath. The object stands beside its source, so that who builds or installs needs no compiler for it; CI compares
# where this very clang is.
CLANG_BPF := clang-16
BPF := crates/router/bpf
BPF_FLAGS := -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -mcpu=v3 -target bpf -I/usr/include/$(shell uname -m)-linux-gnu -fdebug-compilation-dir=.
# What the kernel needs is code, the types of maps, and those of functions that are verified by themselves.
BPF_STRIP := llvm-objcopy-16 --strip-debug --remove-section .rel.BTF --remove-section .rel.BTF.ext

.PHONY: bpf bpf-compared
bpf: ## Build the kernel datapath's programs with clang 16 (Debian: clang-16, llvm-16, libbpf-dev)
	$(call needs,$(CLANG_BPF),the kernel's programs are built with clang 16: apt-get install clang-16 llvm-16 libbpf-dev)
	cd $(BPF) && $(CLANG_BPF) $(BPF_FLAGS) -c contracts.bpf.c -o contracts.bpf.o && $(BPF_STRIP) contracts.bpf.o

bpf-compared: ## Compare the committed programs with what clang 16 builds of their source, where it is installed
	@if ! command -v $(CLANG_BPF) >/dev/null; then echo "NOT COMPARED: there is no $(CLANG_BPF) here; the committed $(BPF)/contracts.bpf.o was taken as it is" >&2; exit 0; fi; \
	mkdir -p target && cd $(BPF) && $(CLANG_BPF) $(BPF_FLAGS) -c contracts.bpf.c -o ../../../target/contracts.bpf.o && $(BPF_STRIP) ../../../target/contracts.bpf.o || exit 1; \
	cmp ../../../target/contracts.bpf.o contracts.bpf.o || { echo "$(BPF)/contracts.bpf.o is not what $(CLANG_BPF) builds of its source: make bpf" >&2; exit 1; }
