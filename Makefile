# Thin on purpose: each target is one script or one meson call. `make help` lists them.

BUILD ?= build
SAN_BUILD ?= build-san
PREFIX ?= /usr/local
# How many integration tests run at once.
TEST_JOBS ?= 2
export BUILD SAN_BUILD TEST_JOBS

.PHONY: help setup build demo check check-san check-threads check-real deb tar wheel bench fuzz install uninstall clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: ## install what is missing: packages, tools, the engine, the tests' Python environment
	@scripts/bootstrap packages tools engine tokens web guests venv

build: ## build mur and its bundled artifacts into $(BUILD)/
	@scripts/bootstrap packages tools engine tokens
	@scripts/build $(BUILD)

demo: build ## run a first capsule, offline: its answer, its trace, what the trace says
	@scripts/demo $(BUILD)

check: ## every test; the last line counts them
	@scripts/check $(BUILD)

check-san: ## unit and integration tests under the address and undefined-behaviour sanitizers
	@scripts/check --sanitize $(SAN_BUILD)

check-threads: build ## unit tests of what threads share, the door's stress program and the library, under the thread sanitizer
	@scripts/bootstrap packages engine
	@BUILD=$(BUILD) scripts/check-threads

check-real: ## tests with real programs installed by name, PART="agents mcp servers mcp_endings containers page registry languages" by default, otel for real receivers; those that cannot be had are skipped
	@scripts/check-real --build $(BUILD) $(PART)

deb: build ## Debian packages of the build, in $(BUILD)/packages
	@scripts/package deb $(BUILD) $(BUILD)/packages

tar: build ## the build as a tar file for other distributions, in $(BUILD)/packages
	@scripts/package tar $(BUILD) $(BUILD)/packages

wheel: build ## the Python package with this build in it, in $(BUILD)/packages
	@scripts/package wheel $(BUILD) $(BUILD)/packages

bench: build ## measure; with MUR_PEER=/path/to/mur, beside another build
	@bench/run --mur $(BUILD)/mur

fuzz: ## every fuzzer for 20 seconds (FUZZ_SECONDS=600 for longer)
	@scripts/bootstrap packages engine
	@scripts/fuzz

install: ## copy what `make build` made below $(PREFIX) (DESTDIR is honoured); builds nothing
	@scripts/install $(BUILD) $(abspath $(PREFIX))

uninstall: ## take away what make install put below $(PREFIX); people's own files stay
	@scripts/uninstall $(abspath $(PREFIX))

clean: ## remove the build folders; the cache of tools and engine stays
	rm -rf $(BUILD) $(SAN_BUILD) build-threads build-fuzz
