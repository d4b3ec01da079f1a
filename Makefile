# make test   lint, types, tests and their coverage   make demo   the example of the README, in demo/
# One virtual environment in .venv serves every target; PYTHON= chooses the interpreter it is made of.
# make test-lowest   the tests with the lowest versions that pyproject.toml allows, in .venv-lowest

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
PIP := python -m pip --quiet --quiet --disable-pip-version-check
# One process for each core; whoever is done takes over what is left.
PYTEST := python -m pytest --numprocesses auto --dist worksteal
COVERAGE := --cov --cov-report=json:build/coverage.json

.PHONY: demo test test-lowest lint types bench docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed-plot
	$(BIN)/xcopula demo --output demo --overwrite

test: lint types
	@mkdir -p build
	$(BIN)/$(PYTEST) $(COVERAGE)
	@$(BIN)/python .ci/covered.py build/coverage.json

test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/$(PYTEST)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	@set -e; for script in $(sort $(wildcard benchmarks/bench_*.py)); do \
	    echo "== $$script"; $(BIN)/python "$$script"; \
	done

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo "built build/docs/index.html"

clean:
	rm -rf $(VENV) $(LOWEST) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find xcopula tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamp names the extra it has installed; a change of the metadata installs again.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) install --editable ".[$*]"
	@touch $@

# Made anew when a floor changes: what an older floor pulled in would stay.
$(LOWEST)/.installed: pyproject.toml .ci/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/lowest.py test > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/$(PIP) install --constraint $(LOWEST)/constraints.txt --editable ".[test]"
	@touch $@
