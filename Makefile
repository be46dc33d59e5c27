# Two commands matter: `make demo` and `make test`. Both set everything up on a machine with Python 3.11+.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAME ?= rolling
SEED ?= $(shell date +%s)
EXAMPLES ?= 1000

.PHONY: help java kafka demo test test-cluster test-kafka test-device lint soak bench docs wheel clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

$(VENV)/.ready: requirements/runtime.txt requirements/spark.txt requirements/bench.txt requirements/device.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; set PYTHON=...")'
	@echo "Setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@if [ -n "$(SPARK)" ]; then $(BIN)/python -m pip install --quiet --disable-pip-version-check "pyspark==$(SPARK).*"; fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

java: ## Java 17 or 21 for Spark: installed on Debian and derivatives; elsewhere, says how
	@if ! "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version >/dev/null 2>&1; then \
	  if command -v apt-get >/dev/null; then \
	    echo "Installing Java for Spark (once)"; \
	    SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	    $$SUDO apt-get update -qq; \
	    $$SUDO apt-get install -y -qq openjdk-17-jre-headless >/dev/null 2>&1 || $$SUDO apt-get install -y -qq openjdk-21-jre-headless >/dev/null \
	      || { echo "Java could not be installed; as an administrator: apt-get install openjdk-17-jre-headless"; exit 1; }; \
	  else \
	    echo "Spark needs Java 17 or 21, and there is none; install it (macOS: brew install openjdk@17) and set JAVA_HOME"; exit 1; \
	  fi; \
	fi

demo: $(VENV)/.ready java ## cluster monitoring on Spark: a one-hour window that slides by a second, with times, a check and a picture
	@$(BIN)/sash demo

kafka: ## a Kafka broker and Spark's connector as jars in .kafka, for the tests that need them; from Maven's registry
	@if [ ! -e .kafka/.ready ] || [ requirements/kafka-broker.xml -nt .kafka/.ready ] || [ requirements/kafka-connector.xml -nt .kafka/.ready ]; then \
	  if ! command -v mvn >/dev/null && command -v apt-get >/dev/null; then \
	    echo "Installing Maven for Kafka's jars (once)"; \
	    SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	    $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq maven >/dev/null || true; \
	  fi; \
	  if command -v mvn >/dev/null \
	    && mvn -q -B -f requirements/kafka-broker.xml dependency:copy-dependencies -DoutputDirectory="$(CURDIR)/.kafka/broker" \
	    && mvn -q -B -f requirements/kafka-connector.xml dependency:copy-dependencies -DoutputDirectory="$(CURDIR)/.kafka/connector"; \
	  then touch .kafka/.ready; else echo "Kafka's jars could not be had (they need Maven): its tests are skipped"; fi; \
	fi

test: lint java kafka ## all checks and tests
	$(BIN)/python -m pytest -n auto --durations=10

test-cluster: $(VENV)/.ready java ## the tests that start a standalone cluster and Connect servers on loopback
	$(BIN)/python -m pytest tests/test_cluster.py tests/test_connect.py

test-kafka: $(VENV)/.ready java kafka ## queries from Kafka to Kafka, over a real broker on loopback
	$(BIN)/python -m pytest tests/test_kafka.py

test-device: $(VENV)/.ready ## all OpenCL devices, Intel's driver for CPUs among them, and every kernel under Oclgrind's checks
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/device-intel.txt
	SASH_DEVICES=all $(BIN)/python -m pytest tests/test_device.py

lint: $(VENV)/.ready ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(VENV)/.ready ## hundreds of thousands of random cases, 200 kills, a long stream (hours): make soak SEED=... EXAMPLES=...
	@echo "seed $(SEED), $(EXAMPLES) examples a test"
	SASH_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n auto --hypothesis-seed=$(SEED) tests/test_tables.py tests/test_operator.py tests/test_operator_machine.py tests/test_windows.py tests/test_rolling.py tests/test_algorithms.py tests/test_chunks.py tests/test_stored.py tests/test_row_by_row.py
	SASH_SEED=$(SEED) SASH_DAMAGE=100000 $(BIN)/python -m pytest tests/test_damage.py
	SASH_SEED=$(SEED) SASH_EXPRESSIONS=25000 $(BIN)/python -m pytest tests/test_expressions_on_spark.py
	SASH_SEED=$(SEED) SASH_MUTATIONS=100000 $(BIN)/python -m pytest tests/test_cql_errors.py
	SASH_SEED=$(SEED) SASH_KILLS=200 $(BIN)/python -m pytest tests/test_kills.py
	$(BIN)/python -m tests.soak_stream 1800

bench: $(VENV)/.ready ## benchmarks: make bench NAME=rolling (or hammer, reactive, table, slicing, spark, stream, cql, slider)
	$(BIN)/sash bench $(NAME)

$(VENV)/.docs-ready: $(VENV)/.ready requirements/docs.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

docs: $(VENV)/.docs-ready ## the pages of docs/ that are generated from the code, and the site in site/ (open site/index.html)
	$(BIN)/python -m sash.testing.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

wheel: $(VENV)/.ready ## a wheel in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -w dist .

clean: ## remove build products, but not .venv
	rm -rf dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis bench-results demo-output
