# Thin names for what CMake, the scripts and the command line do.
STAGES ?=
PRESET ?= dev

.PHONY: help demo test test-gpu build format lint clean

help:
	@echo "make demo      a real text scored with a small language model, from a fresh machine to proof of bits"
	@echo "make test      everything that the continuous integration checks (STAGES=\"lint rules\" for some of it)"
	@echo "make test-gpu  the tests that need a CUDA device"
	@echo "make build     configure and build PRESET (default dev) in build/PRESET"
	@echo "make format    format C++, CUDA and Python in place"
	@echo "make lint      formatting, spelling, scripts, house rules"

demo:
	@scripts/demo.sh

test:
	@scripts/ci/run.sh $(STAGES)

test-gpu:
	@cmake --preset dev && cmake --build --preset dev && ctest --test-dir build/dev --label-regex gpu --output-on-failure

build:
	@cmake --preset $(PRESET) && cmake --build --preset $(PRESET)

format:
	@scripts/ci/run.sh format

lint:
	@scripts/ci/run.sh lint rules

clean:
	@rm -rf build
