# Two commands do everything: `make demo` and `make test`. Both set up .venv first, when it is out of date.
.DEFAULT_GOAL := help
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

bin := .venv/bin
ready := .venv/.ready
# One file of tests stays on one worker, so a test that kills processes shares them with nobody. Of three workers one goes
# through the tests of Spark and one through those of Cassandra, which wait half of the time (tests/ordering.py).
workers ?= 3
pytest := $(bin)/python -m pytest
parallel := -n $(workers) --dist loadfile

.PHONY: help system setup archive demo test check coverage proof bench docs lock clean

help: ## show this list
	@echo "Fairway: a fair, durable work queue for multi-tenant data pipelines."
	@echo
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

system: ## install what some tests need: Java, Maven, a browser (Debian)
	@sh tools/system.sh

setup: $(ready) ## make .venv; quick when nothing changed (PYTHON=... names one)
	@echo "Fairway is set up in .venv."

$(ready): pyproject.toml requirements/uv.txt requirements/dev.txt requirements/java.txt \
		tools/setup.sh tools/probe_python.py $(wildcard hatch_build.py src/fairway/ring/*.c)
	@sh tools/setup.sh

archive: $(ready) ## let Spark's local sessions start in half the time (a minute)
	@$(bin)/fairway dev spark || true

demo: $(ready) ## run the main job and draw what it did
	@$(bin)/fairway demo

test: $(ready) archive ## run all tests, quick and real, and print each area's budget
	@$(pytest) $(parallel) --budgets

check: $(ready) ## lint, format, types, import contracts, house style
	@status=0; for step in "ruff check ." "ruff format --check ." basedpyright "lint-imports --no-logo" \
		"python -m tools.tidy"; do echo "== $$step"; $(bin)/$$step || status=1; done; exit $$status

coverage: $(ready) archive ## run all tests and show the lines that none of them ran
	@$(bin)/coverage erase
	@status=0; $(bin)/coverage run -m pytest $(parallel) || status=$$?; \
	$(bin)/coverage combine --quiet; $(bin)/coverage html --quiet; $(bin)/coverage report; exit $$status

proof: $(ready) ## run the long storms (hours)
	@sh tools/proof.sh

bench: $(ready) ## measure beside the peers, write the tables (BENCH="NAME ...")
	@$(bin)/python -m tools.bench --install $(BENCH)

docs: $(ready) ## write the reference anew and build build/site, strictly
	@$(bin)/python -m tools.reference
	@$(bin)/python -m tools.pages
	@$(bin)/zensical build --strict -f mkdocs.yml
	@echo "The documentation is in build/site/index.html; its search needs a server: python3 -m http.server -d build/site"

lock: $(ready) ## solve the requirement files again (UPGRADE=1: newer versions)
	@sh tools/lock.sh

clean: ## remove what make and its tools made
	@rm -rf .venv build dist htmlcov .hypothesis .import_linter_cache .pytest_cache .ruff_cache .coverage .coverage.*
	@find src tests tools -name __pycache__ -type d -exec rm -rf {} +
