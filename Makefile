# `make demo` and `make test` work in a new clone with nothing but Python 3.10 or newer: they make .venv when it is needed.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
MARK ?= not network and not real and not e2e and not fleet
JOBS ?= auto
CATALOGUE ?= tests/catalogue/slime tests/catalogue/transformers tests/catalogue/load \
  tests/catalogue/verl/test_training.py::test_the_training_step_is_dumped_and_goes_on_the_same

.PHONY: demo test lint real fleet e2e environments bench messages wheel clean

demo: $(VENV)/installed
	$(PY) -m probepatch demo

test: $(VENV)/installed-dev
	$(PY) -m pytest -n $(JOBS) -m "$(MARK)" $(TESTS)

lint: $(VENV)/installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# real training workers on this CPU, patched and unpatched, then what the recipes bring to them
real: $(VENV)/installed-dev
	$(PY) -m pytest -m real -n $(JOBS) --dist loadfile tests/real $(CATALOGUE)

# eight nodes of a Ray cluster on this machine
fleet: $(VENV)/installed-dev
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[test,ray]'
	$(PY) -m pytest -m fleet tests/fleet

# the whole mission: real verl, vLLM, SGLang and msprobe, in environments of their own, through the commands only
e2e: $(VENV)/installed-dev
	$(PY) -m pytest -m e2e -n $(JOBS) --dist loadfile tests/e2e

# what `real` and `e2e` need: interpreters with the real frameworks, in PROBEPATCH_CACHE
environments: $(VENV)/installed-dev
	$(PY) -m tests.e2e.environments

bench: $(VENV)/installed-dev
	$(PY) -m tests.bench

# every sentence that a user sees, for translators
messages: $(VENV)/installed-dev
	$(VENV)/bin/pybabel extract -F locales/babel.cfg --no-wrap --sort-by-file --project=probepatch --copyright-holder="the probepatch authors" \
	  -k _ -k ngettext:1,2 -o locales/probepatch.pot probepatch.py cli.py commands fleet stages authoring \
	  codemods patch_ledger

wheel: $(VENV)/installed-dev
	$(PY) -m build --wheel

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "probepatch needs Python 3.10 or newer; call make with PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/installed
