# Two commands suffice on a fresh machine: `make demo` and `make test`.
# Each first creates an environment in .venv. They need Python 3.11 or newer and pip.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LOWEST := $(VENV)/lowest
# Environments of other pylance versions, oldest first. `test-rest` uses the first and the last.
export LANCE_DUCK_VERSIONS := $(abspath $(VENV)/versions)
PYLANCES := $(addprefix $(LANCE_DUCK_VERSIONS)/,$(addsuffix /.ready,$(shell cat tests/versions/pylance.txt)))
# Environments of the programs that lance-duck plugs into. Their requirements conflict with each other.
export LANCE_DUCK_HOSTS := $(abspath $(VENV)/hosts)
HOSTS  := $(patsubst tests/hosts/%.txt,$(LANCE_DUCK_HOSTS)/%/.ready,$(wildcard tests/hosts/*.txt))
# An Azure emulator, if npm is installed.
AZURITE := $(LANCE_DUCK_HOSTS)/azurite/node_modules/.bin/azurite-blob
# protoc runs in a separate environment, because grpcio-tools requires an old protobuf.
GRPCIO := $(VENV)/grpcio-tools-1.67.1
PB     := lance_duck/wire/pb
PROTOC := $(GRPCIO)/bin/python -m grpc_tools.protoc -I$(PB)=protos $(addprefix $(PB)/,$(notdir $(wildcard protos/*.proto)))
# Later installations share the kernel pack of the first one.
PACKED := LANCE_DUCK_BUILD_KERNELS=0
# Profile of `trust`: short or long.
PROFILE ?= short
PYTEST := $(BIN)/python -m pytest
CODE   := lance_duck lance_duck_command.py hatch_build.py pyspark_lance_duck.py docs/conf.py docs/generated.py tests benchmarks

# Tests start many processes, so bytecode files are always kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs versions meetings trust test test-full test-lowest test-duckdb15 lint types oracle bench figures golden protos protos-check format clean test-hosts release release-check test-rest test-all durations

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	@echo 'installing, and compiling kernels for this machine: two to three minutes'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY)  ## query the example tables, and print the results
	@$(BIN)/python benchmarks/demo.py

$(PYLANCES): $(LANCE_DUCK_VERSIONS)/%/.ready: | $(READY)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --no-compile pylance==$*
	@touch $@

versions: $(PYLANCES)  ## environments of nine other pylance versions, for the full profile

meetings: versions  ## print the table of pylance versions in docs/reference/format.md
	PYTHONPATH=.:tests $(BIN)/python -m versions.meetings

$(HOSTS): $(LANCE_DUCK_HOSTS)/%/.ready: tests/hosts/%.txt pyproject.toml | $(READY)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PACKED) $(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --no-compile -e . -r $<
	@touch $@

$(AZURITE):
	npm install --silent --no-audit --no-fund --prefix $(LANCE_DUCK_HOSTS)/azurite azurite@3.37.0

test-hosts: $(READY) $(HOSTS) $(if $(shell command -v npm),$(AZURITE))  ## test Dask, DataFusion, dbt, DuckDB's extension, Harlequin, ibis, JAX, JupySQL, marimo and Azurite, each in its environment
	$(PYTEST) tests/hosts tests/concurrency/test_clouds.py

test: $(READY)  ## run the quick tests, at most six minutes; ROOM=scan: all tests of one room
	$(PYTEST) -m $(if $(ROOM),'not slow' --room $(ROOM),'not slow and not rest') -n 2 --dist worksteal --slowest 30

test-rest: $(READY) $(firstword $(PYLANCES)) $(lastword $(PYLANCES))  ## run the tests that `test` leaves out, up to two seconds of each function
	$(PYTEST) -m 'not slow and rest' -n 2 --dist worksteal

test-all: $(READY) $(firstword $(PYLANCES)) $(lastword $(PYLANCES))  ## run the tests of `test` and `test-rest` together
	$(PYTEST) -m 'not slow' -n 2 --dist worksteal --slowest 30

durations: $(READY) $(firstword $(PYLANCES)) $(lastword $(PYLANCES))  ## run all tests, and write tests/long.txt, the tests that `test` leaves out
	$(PYTEST) -m 'not slow' -n 2 --dist worksteal --record-long

test-full: $(READY) versions  ## run all tests with more random cases, then again on the oldest supported libraries
	LANCE_DUCK_PROFILE=full $(PYTEST) -n 2 --dist worksteal
	$(MAKE) --no-print-directory test-lowest

$(LOWEST)/.ready: pyproject.toml tests/lowest.txt $(READY)
	$(PYTHON) -m venv $(LOWEST)
	$(PACKED) $(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[test]' -c tests/lowest.txt
	@touch $@

test-lowest: $(LOWEST)/.ready $(firstword $(PYLANCES)) $(lastword $(PYLANCES))  ## run the tests on the oldest supported libraries (DuckDB 1.5)
	$(LOWEST)/bin/python -m pytest -m 'not slow' -n 2 --dist worksteal

test-duckdb15: $(LOWEST)/.ready  ## run the quick tests of SQL, changes and Spark on the oldest supported libraries (DuckDB 1.5, Spark 4.0)
	$(LOWEST)/bin/python -m pytest tests/sql tests/golden tests/unit/scan tests/unit/duck tests/unit/verbs tests/unit/write \
		tests/unit/file/write tests/unit/store tests/unit/maintenance tests/spark -m 'not slow and not rest' -n 2 --dist worksteal

trust: $(READY)  ## run random trials for minutes; LIMIT=5: begin none after 5; PROFILE=long: for hours, and update docs/background/trust.md
	PYTHONPATH=.:tests $(BIN)/python -m trust --profile $(PROFILE) $(if $(LIMIT),--limit $(LIMIT))

lint: $(READY)  ## run ruff
	$(BIN)/ruff check --no-cache $(CODE)
	$(BIN)/ruff format --no-cache --check $(CODE)

types: $(READY)  ## run mypy --strict
	$(BIN)/mypy

docs: $(READY)  ## build the documentation in docs/_build/html; a warning is an error
	$(PACKED) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[docs]'
	$(BIN)/python -m sphinx -b html -q -W --keep-going docs docs/_build/html

release-check: $(READY)  ## build sdist and wheel, and test them with the newest and the oldest libraries
	$(BIN)/python -m tests.release.check

release: $(READY)  ## release-check with kernels for all processor levels; keep the files in dist and print the publish command
	LANCE_DUCK_BUILD_KERNELS=all $(BIN)/python -m tests.release.check --keep dist

oracle: $(READY)  ## run the comparison with pylance, and print the number of cases
	$(PYTEST) tests/oracle -n 2 --dist worksteal

bench: $(READY)  ## run every benchmark, and store the results of those in the figures
	$(BIN)/python -m benchmarks

figures: $(READY)  ## render the tables and charts of docs/background/figures.md from benchmarks/results
	$(BIN)/python -m benchmarks.figures

golden: $(READY) $(firstword $(PYLANCES))  ## write the golden tables again, with the pinned pylance
	$(BIN)/python -m tests.golden.generate

$(GRPCIO)/.ready: | $(READY)
	$(PYTHON) -m venv --clear $(GRPCIO)
	$(GRPCIO)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile $(subst grpcio-tools-,grpcio-tools==,$(notdir $(GRPCIO)))
	@touch $@

protos: $(GRPCIO)/.ready  ## regenerate lance_duck/wire/pb from protos/
	$(PROTOC) --python_out=. --pyi_out=.

protos-check: $(GRPCIO)/.ready  ## fail when the generated code does not match protos/
	@rm -rf $(VENV)/protos && mkdir -p $(VENV)/protos
	@$(PROTOC) --python_out=$(VENV)/protos --pyi_out=$(VENV)/protos
	@diff -ru --exclude=__init__.py --exclude=__pycache__ $(VENV)/protos/$(PB) $(PB) \
		|| { echo 'the generated code differs from protos/: run "make protos"' >&2; exit 1; }
	@echo 'generated code matches protos/'

format: $(READY)  ## let ruff rewrite the code
	$(BIN)/ruff check --fix --exit-zero $(CODE)
	$(BIN)/ruff format $(CODE)

clean:  ## remove the environment, caches and benchmark data
	rm -rf $(VENV) lance_duck/kernels/packs docs/_build docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist benchmarks/data
	find lance_duck tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
