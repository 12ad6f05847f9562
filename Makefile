# The short way in. CMakePresets.json has the other builds (debug, asan, tsan, arm64, web).

MODEL := models/SmolLM2-135M-Instruct.Q4_1.gguf
JOBS = $(shell getconf _NPROCESSORS_ONLN)
SOURCES = $(shell find include src cli web/libc web/glue tests examples -name node_modules -prune -o \
    '(' -name '*.[ch]' -o -name '*.def' ')' -print 2>/dev/null)

# Looked up at each recipe: `make run` may have installed ninja by then.
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja),Ninja,Unix Makefiles)

.PHONY: build help models run web web-demo test test-all setup format clean

# Without our job server, as JOBS says how many; and without a line for every folder.
build:
	@cmake --preset release >/dev/null
	@MAKEFLAGS=--no-print-directory cmake --build --preset release --target wick -j $(JOBS)

# Sets up, builds, fetches a model once and asks it a question; without a network the small model that is
# built into the command answers.
run:
	@tools/setup run
	@tools/fetch_webgpu || true
	@$(MAKE) --no-print-directory build
	@if tools/fetch_model; then \
	    build/wick chat $(MODEL) -p "Why is the sky blue?" -n 128 && \
	    echo "To talk with it: build/wick chat $(MODEL)" >&2; \
	else \
	    echo "Running the small model built into the command instead." >&2; \
	    build/wick run -p "Once upon a time" -n 200; \
	fi

# The package for browsers and Node: web/dist.
web:
	@tools/setup web
	@cmake --preset web >/dev/null
	@MAKEFLAGS=--no-print-directory cmake --build --preset web -j $(JOBS)

# Its demo, on localhost; with the model that the demo offers, where that can be fetched.
web-demo: web
	@tools/fetch_model || true
	@PATH="$(CURDIR)/deps/node/bin:$$PATH" node web/serve.mjs $(DEMO)

# The real models that tests compare with what others compute.
models:
	@tools/fetch_model smollm2 gemma3 minilm

test: setup
	@python3 tools/run_tests

# The same, and what takes long (CONTRIBUTING.md).
test-all: setup
	@python3 tools/run_tests --all

# The rest is fetched beside the first build.
setup:
	@tools/setup native

format:
	@clang-format-19 -i $(SOURCES)

clean:
	@rm -rf build build-debug build-asan build-tsan build-arm64 build-web web/dist web/demo/dist

help:
	@echo "make run | test | test-all | web | web-demo | build | models | setup | format | clean"
	@echo "README.md and CONTRIBUTING.md say what they do."
