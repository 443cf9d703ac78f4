# Everything a newcomer and CI need. Each environment is an ordinary venv, made once and reused until pyproject.toml changes.
PYTHON ?= python3
JOBS ?= 2
SHELL := bash
BIN := .venv/bin
DEMO := .venv/.demo
DEV := .venv/.dev
PEERS := .venv-peers/.ready
HIVE := .venv-hive/.ready
AZURITE := .venv-azurite/.ready
OLDEST := .venv-oldest/.ready
DUCKDB1 := .venv-duckdb1/.ready
NEWEST := .venv-newest/.ready
NEWEST_PYTHON ?= python3.13
SA20 := .venv-sa20/.ready
SA14 := .venv-sa14/.ready
SA_PYTHONS := LAKE_SA20_PYTHON=$(CURDIR)/.venv-sa20/bin/python LAKE_SA14_PYTHON=$(CURDIR)/.venv-sa14/bin/python
PEERS_PYTHON ?= $(CURDIR)/.venv-peers/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Images of containers often set it, and every process would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

# What the oldest versions cannot do, beside the tests that DuckDB 1 skips: polars 1.0 reads no C stream, DuckDB 1.4 reads
# no lists of JSON by a schema, does not tell that a schema is missing rather than a table, nor bounds of decimals beyond
# 18 digits; s3fs of 2024.12 reports a refused upload a second time when collected.
NOT_OLDEST := --deselect tests/dbapi/test_arrow.py::test_consumers_of_the_c_stream \
    --deselect tests/formats/delta/test_struct_stats.py::test_statistics_are_written_as_structs \
    --deselect tests/formats/ducklake/test_inlined_values.py::test_hard_values_stay_what_they_are_wherever_they_go \
    --deselect tests/query/test_names.py::test_an_unknown_schema_is_named_wherever_a_statement_reads \
    -W ignore::pytest.PytestUnraisableExceptionWarning

.PHONY: help demo test check format compliance consumers superset sqlalchemy peers hive azurite oldest duckdb1 newest bench clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO) ## Row-level changes on 336,776 real flights, explained step by step
	$(BIN)/python examples/flights.py

test: $(DEV) ## The tests (under 10 minutes on 2 cores)
	$(BIN)/python -m pytest -n $(JOBS) -m "not thorough" tests

check: $(DEV) ## Style, types and the layering of the imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV) ## Let ruff format and mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

compliance: $(DEV) $(PEERS) $(HIVE) azurite $(SA20) $(SA14) consumers ## Other people's suites, and DuckDB on the same lakes
	LAKE_PEERS_PYTHON=$(PEERS_PYTHON) $(SA_PYTHONS) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup compliance --ignore compliance/consumers
	LAKE_PEERS_PYTHON=$(PEERS_PYTHON) $(BIN)/python -m pytest -n $(JOBS) -m thorough tests

sqlalchemy: $(DEV) $(SA20) $(SA14) ## SQLAlchemy's own dialect suite on SQLAlchemy 2.1, 2.0 and 1.4; on Delta and Iceberg, too
	$(SA_PYTHONS) $(BIN)/python -m pytest -n $(JOBS) compliance/sqlalchemy

$(SA20): pyproject.toml compliance/sqlalchemy/sqlalchemy-2.0.txt
	$(PYTHON) -m venv .venv-sa20
	.venv-sa20/bin/python -m pip install --quiet --requirement compliance/sqlalchemy/sqlalchemy-2.0.txt --editable .
	@touch $@

$(SA14): pyproject.toml compliance/sqlalchemy/sqlalchemy-1.4.txt
	$(PYTHON) -m venv .venv-sa14
	.venv-sa14/bin/python -m pip install --quiet --requirement compliance/sqlalchemy/sqlalchemy-1.4.txt --editable .
	@touch $@

consumers: .venv-consumers/.ready ## pandas, polars, Alembic, JupySQL, LangChain, dlt and more over a lake
	.venv-consumers/bin/python -m pytest compliance/consumers

.venv-consumers/.ready: pyproject.toml compliance/consumers/requirements.txt
	$(PYTHON) -m venv .venv-consumers
	.venv-consumers/bin/python -m pip install --quiet --requirement compliance/consumers/requirements.txt --editable .
	@touch $@

superset: .venv-superset/.ready ## Superset 6.1 over a lake, with a browser; needs Debian's chromium and chromium-driver
	.venv-superset/bin/python compliance/superset/run.py --home $(CURDIR)/.venv-superset/home --images $(CURDIR)/.venv-superset/images

.venv-superset/.ready: pyproject.toml compliance/superset/requirements.txt
	$(PYTHON) -m venv .venv-superset
	.venv-superset/bin/python -m pip install --quiet --requirement compliance/superset/requirements.txt --editable .
	@touch $@

peers: $(PEERS) ## The environment of the peers that the compliance tests and benchmarks run

hive: $(HIVE) ## The jars of a Hive Metastore, which needs Java 17

azurite: ## Azure's emulator, which needs Node.js: its tests are skipped without
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(AZURITE); fi

oldest: $(OLDEST) ## The tests on the oldest supported versions
	.venv-oldest/bin/python -m pytest -n $(JOBS) -m "not thorough" tests --ignore tests/docs --ignore tests/architecture $(NOT_OLDEST)

duckdb1: $(DUCKDB1) ## What depends on the engine most, on the newest DuckDB that there is for Python 3.10
	.venv-duckdb1/bin/python -m pytest -n $(JOBS) -m "not thorough" tests/engine tests/storage tests/faults tests/query \
	    tests/dbapi/test_values.py tests/dml/test_insert.py tests/formats/delta/test_golden.py tests/formats/ducklake/test_encrypted.py \
	    tests/formats/ducklake/test_inlined_values.py tests/formats/ducklake/test_variants.py tests/formats/ducklake/test_versions.py \
	    tests/dml/test_batch.py

newest: $(NEWEST) ## What depends on Python and its libraries most, on a newer Python: NEWEST_PYTHON=…
	.venv-newest/bin/python -m pytest -n $(JOBS) -m "not thorough" tests/dbapi tests/engine tests/faults tests/query tests/sqlalchemy tests/storage

bench: $(DEV) $(PEERS) ## Timings next to DuckDB's own ducklake extension
	LAKE_PEERS_PYTHON=$(PEERS_PYTHON) $(BIN)/python benchmarks/rowlevel.py

clean: ## Remove the environments and caches
	rm -rf .venv .venv-peers .venv-oldest .venv-duckdb1 .venv-newest .venv-consumers .venv-superset .venv-hive .venv-azurite .venv-sa20 .venv-sa14 .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(DEMO): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(DEMO)

$(PEERS): compliance/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement $<
	@touch $@

$(HIVE): compliance/iceberg/metastore.txt
	$(PYTHON) -m venv .venv-hive
	.venv-hive/bin/python -m pip install --quiet --requirement $<
	@touch $@

$(AZURITE): compliance/stores/azurite.txt
	mkdir -p .venv-azurite
	npm install --prefix .venv-azurite --no-audit --no-fund --loglevel=error $$(cat $<)
	@touch $@

$(OLDEST): pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable '.[test]' psycopg2-binary
	@touch $@

$(DUCKDB1): pyproject.toml
	$(PYTHON) -m venv .venv-duckdb1
	.venv-duckdb1/bin/python -m pip install --quiet --editable '.[dev]' 'duckdb<2' pytz
	@touch $@

$(NEWEST): pyproject.toml
	$(NEWEST_PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --editable '.[dev]'
	@touch $@
