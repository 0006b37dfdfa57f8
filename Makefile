# The verbs of Penstock. `make up` and `make test` need nothing but python3 and make; they create
# the environment in .venv from the hash-pinned locks, and again whenever a lock changes.

PYTHON ?= python3
BIN := .venv/bin
MODE := $(or $(PENSTOCK_EVENTS_MODE),$(APPHUB_EVENTS_MODE),spool)

.DEFAULT_GOAL := help
.PHONY: help up test check prove-quick prove prove-acting bench lock clean java browser
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help:  ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' $(MAKEFILE_LIST) | while read -r verb what; do \
		printf 'make %-12s %s\n' "$$verb" "$$what"; done

up: .venv/run.stamp java  ## start everything; prints one line with a URL and a token; Ctrl-C stops
	@exec $(BIN)/penstock up

test: check java browser  ## every check and every test, on real PostgreSQL, Spark and Chromium
	@$(BIN)/pytest -n 2 --dist loadgroup

check: .venv/dev.stamp  ## style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

prove-quick: .venv/dev.stamp java  ## kill parts at random for 20 rounds and account for every event
	@$(BIN)/python -m tests.prove.kill --rounds 20

prove: .venv/dev.stamp java  ## the same for hours
	@$(BIN)/python -m tests.prove.kill --rounds 1000

prove-acting: .venv/dev.stamp java  ## kill workers while 10,000 events flow and account for every run
	@$(BIN)/python -m tests.prove.acting --events 10000 --kills 20 --workers 1
	@$(BIN)/python -m tests.prove.acting --events 10000 --kills 20 --workers 2

bench: .venv/bench.stamp java  ## measure; prints a table and JSON
	@$(BIN)/python -m tests.bench

lock:  ## write the locks again from requirements/*.in; needs uv
	@command -v uv >/dev/null || { \
		echo 'error  setup_incomplete: expected uv on PATH, found none' >&2; \
		echo '  fix  Install uv, then run `make lock` again.' >&2; exit 1; }
	@for name in run dev bench; do \
		uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --no-annotate \
			--python-version 3.11 requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done

clean:  ## remove the environment and every cache; data in .penstock stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Talk goes to stderr: stdout belongs to what the verb prints.

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'error  setup_incomplete: expected Python 3.11 or newer as $(PYTHON)' >&2; \
		echo '  fix  Install it, or name another one: make PYTHON=/path/to/python3.' >&2; exit 1; }
	@echo 'creating the environment in .venv …' >&2
	@$(PYTHON) -m venv .venv >&2 || { rm -rf .venv; \
		echo 'error  setup_incomplete: expected the venv module in $(PYTHON), found none' >&2; \
		echo '  fix  Install it (on Debian and Ubuntu: apt-get install -y python3-venv).' >&2; exit 1; }

.venv/run.stamp: requirements/run.txt pyproject.toml | .venv/bin/python
	$(call install,run)

.venv/dev.stamp: requirements/dev.txt pyproject.toml | .venv/bin/python
	$(call install,dev)
	@touch .venv/run.stamp

.venv/bench.stamp: requirements/bench.txt .venv/dev.stamp | .venv/bin/python
	$(call install,bench)

define install
@echo 'installing requirements/$(1).txt …' >&2
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	-r requirements/$(1).txt >&2
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	--no-build-isolation -e . >&2
@touch .venv/$(1).stamp
endef

java:
ifneq ($(MODE),inline)
	@$(java_is_new_enough) || $(install_java)
	@$(java_is_new_enough) || { \
		echo 'error  setup_incomplete: expected Java 17 or newer, found none or an older one' >&2; \
		echo '  fix  Install it (on Debian and Ubuntu: apt-get install -y openjdk-17-jre-headless), or set JAVA_HOME.' >&2; \
		exit 1; }
endif

java_is_new_enough = test "$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 \
	| sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)" -ge 17 2>/dev/null

install_java = { $(can_install) \
	&& echo 'installing Java from the system'"'"'s packages …' >&2 \
	&& apt-get update -qq >&2 \
	&& { $(apt_install) openjdk-17-jre-headless >&2 || $(apt_install) default-jre-headless >&2; }; } || true

# Without one, the tests of pages are skipped and say so.
browser:
	@$(has_browser) || $(install_browser)

has_browser = { command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| command -v google-chrome-stable; } >/dev/null

install_browser = { $(can_install) \
	&& echo 'installing Chromium from the system'"'"'s packages …' >&2 \
	&& apt-get update -qq >&2 && $(apt_install) --no-install-recommends chromium >&2; } \
	|| echo 'no Chromium here: the tests of pages are skipped' >&2

can_install = test "$$(id -u)" = 0 && command -v apt-get >/dev/null
apt_install = DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
