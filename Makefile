# Each target does all the set-up it needs; running it again installs nothing.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test mutants fuzz lint format docs results

demo: .venv/.core
	rm -rf runs/demo
	$(BIN)/cores train --dataset motifs --model cores-node --epochs 120 --pictures 6 --out runs/demo
	$(BIN)/cores explain runs/demo

# One thread from the start: a copy of a process that had more waits for threads it does not have.
test: lint .venv/.browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

mutants: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/mutmut run
	$(BIN)/mutmut results

# Without the checks of shapes: an input must not end in a traceback where they are off.
fuzz: SECONDS ?= 60
fuzz: .venv/.dev
	FUZZ_SECONDS=$(SECONDS) JAXTYPING_DISABLE=1 OMP_NUM_THREADS=1 $(BIN)/pytest tests/tools/test_fuzz.py -k any_target

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: .venv/.dev
	$(BIN)/sphinx-build --quiet --fail-on-warning -c docs . site

results: .venv/.core
	$(BIN)/python tools/page.py .

.venv/.core: pyproject.toml src/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[chem]' -e src
	touch $@

.venv/.dev: .venv/.core
	$(INSTALL) -e '.[dev]'
	touch $@

# Debian's chromium, in which the pages are tested; where it cannot be installed, tests say so.
.venv/.browser: .venv/.dev
	command -v chromium > /dev/null || (apt-get update && apt-get install --yes --no-install-recommends chromium) \
		|| echo "no chromium: tests in a browser will be skipped"
	touch $@
