# Everything runs in .venv, which each target makes when it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
EXTRAS := dev,exact,text,export,app,control,cluster,gpu

.PHONY: help demo test check bench docs clean

help:
	@echo "make demo    train on the shipped reviews, explain one, prove limits, write hardmax-demo.html"
	@echo "make test    install everything and run all tests"
	@echo "make check   formatting, lint, types"
	@echo "make bench   the benchmarks, one table each; smaller ones with ARGS=--quick"
	@echo "make docs    the documentation, in docs/_build/html"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) -e '.[$(EXTRAS),bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.browser: tests/browser/install.py | $(VENV)/.dev
	$(BIN)/python tests/browser/install.py
	@touch $@

demo: $(VENV)/.base
	$(BIN)/hardmax demo

test: $(VENV)/.dev $(VENV)/.browser
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-fail-under=95

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file $(ARGS) || exit 1; done

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf $(VENV) .browser docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
