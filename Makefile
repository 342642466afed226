# Two commands do everything on a fresh machine: `make demo` and `make test`.
# What runs when is explained in docs/contributing.md.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PACKAGING := pyproject.toml setup.py
PYTEST_ARGS ?=
# Every process of the tests would compile all of them again where Python may not keep what it compiles. A test
# that catches its own time limit, as Hypothesis does, says at least where it hangs.
TESTING := env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest --timeout=300 -o faulthandler_timeout=600
# Random examples: how many times the usual number the full run draws, and from which seed.
FUZZ_FACTOR := $(or $(FAKEAMQP_FUZZ),1)
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
# One process does what needs Spark, one the jobs that are killed, one RabbitMQ (compat_tests/tools/sharing.py).
SHARED := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadgroup
FUZZ := compat_tests/fuzz compat_tests/programs compat_tests/differential/test_random_programs.py
# What a broker in a thread does, one in an event loop does as well (compat_tests/tools/runtimes.py).
BEHAVIOUR := compat_tests/broker compat_tests/time compat_tests/faults/test_network.py \
	compat_tests/faults/test_catalogue_aio_pika.py compat_tests/clients/test_aio_pika.py \
	compat_tests/clients/test_aioamqp.py compat_tests/clients/test_aiormq.py compat_tests/clients/test_pika_blocking.py
# What a broker does, one behind a proxy does as well (compat_tests/scripted/through_proxy.py).
PROXIED := compat_tests/protocol/amqp_0_9_1 compat_tests/protocol/amqp_1_0 compat_tests/unit/faults
SPARK := compat_tests/spark compat_tests/unit/spark compat_tests/crashes $(wildcard examples/spark_*)
SPARK_CORE := compat_tests/unit/spark compat_tests/spark/test_session.py compat_tests/spark/test_stream_fixture.py
PYSPARK ?= 4.0

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-long fuzz flake-hunt crashes spark spark-core conformance blanking personalities
.PHONY: faults bench bench-profile bench-parts lint format clean environment fidelity spark-environment attempts soak mutants
.PHONY: docs docs-serve dist recipes recipes-environment pythons another-python floors floors-environment
.NOTPARALLEL:

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

JAVA := $(shell [ -x "$$JAVA_HOME/bin/java" ] && echo "$$JAVA_HOME/bin/java" || command -v java)
demo: $(VENV)/.demo$(if $(JAVA),-spark) ## Show pika and aio-pika apps using the broker, and a Spark pipeline
	@echo
	@echo "== A tour: the broker starts, pika publishes and consumes, nothing else runs on this machine."
	@echo
	@$(PY) -m fakeamqp demo
	@echo
	@echo "== The examples: small apps, each with the tests that a user would write."
	@echo "   Every test gets a broker of its own from the fixture amqp_broker."
	@echo
	@$(PY) -m pytest examples --ignore-glob='examples/spark_*' -v --no-header -rfEs --amqp-schedules 20 $(PYTEST_ARGS)
	@echo
ifdef JAVA
	@echo "== A Spark pipeline: a streaming job that reads orders from a queue and publishes alerts."
	@echo
	@$(PY) -m pytest examples/spark_orders -v --no-header -rfEs -k raises_an_alert $(PYTEST_ARGS)
	@echo
else
	@echo "Left out: the Spark pipeline in examples/spark_orders, which needs Java 17 or later."
endif
	@echo "That was pytest talking to a real AMQP broker inside its own process."
	@echo "Read examples/ next: every folder is an app, its tests and a page about them."

# Compiled beforehand: the workers of Spark and other processes of tests may not keep what they compile.
test: $(VENV)/.test ## Run the quick tests: what must be green before a commit
	@$(PY) -m compileall -q -j 0 fakeamqp pytest_plugin
	$(TESTING) compat_tests examples --tier quick $(SHARED) $(PYTEST_ARGS)

PYTHONS ?= 3.10 3.12 3.13 3.14
# The interpreter of a version, on PATH or of pyenv; nothing if there is none.
python_of = $(shell for python in python$(1) $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$(1).*/bin/python; do \
	"$$python" -c '' 2>/dev/null && echo "$$python" && break; done)
AT_HAND = $(foreach version,$(PYTHONS),$(if $(call python_of,$(version)),$(version)))
pythons: ## Run the quick tests on every other Python at hand: make pythons PYTHONS='3.12 3.14'
	@at_hand='$(AT_HAND)'; failed=; for version in $(PYTHONS); do \
		case " $$at_hand " in \
			*" $$version "*) $(MAKE) --no-print-directory .venv-$$version/.test \
				&& $(MAKE) --no-print-directory test VENV=.venv-$$version || failed="$$failed $$version";; \
			*) echo "Skipped: there is no python$$version.";; \
		esac; \
	done; [ -z "$$failed" ] || { echo "Failed on Python$$failed."; exit 1; }

another-python: ## Run a sample of the quick tests on another Python, which SEED draws
	@set -- $(AT_HAND); [ $$# -gt 0 ] || { echo "Skipped: there is no other Python."; exit 0; }; \
	shift $$(($(SEED) % $$#)); \
	echo "One in $(SAMPLE_OF_QUICK) of the quick tests on Python $$1; all of them, on every Python: make pythons"; \
	$(MAKE) --no-print-directory pythons PYTHONS=$$1 \
		PYTEST_ARGS="--one-in $(SAMPLE_OF_QUICK) --hypothesis-seed=$(SEED) $(PYTEST_ARGS)"

SAMPLE_OF_QUICK ?= 20
# Tests of what depends on the libraries of users: pika, aio-pika, freezegun, Celery, anyio.
FLOORS := $(addprefix compat_tests/,broker/test_broker.py broker/test_canary.py broker/test_inspection.py \
	broker/test_resets.py clients/test_aio_pika.py clients/test_pika_blocking.py plugin/test_asynchronous.py \
	simulation/test_deadlock.py simulation/test_exploring.py simulation/test_memory.py simulation/test_network.py \
	time/test_celery_delays.py time/test_clients.py time/test_consumer_timeout.py time/test_wall_clock.py \
	time/test_wall_clock_libraries.py time/test_retry_ladder.py)
# pytest-asyncio before 1.4, which needs a newer pytest, leaves an event loop open at times.
floors: ## Run tests on Python 3.10 with the lowest versions that pyproject.toml names
ifneq ($(call python_of,3.10),)
	@$(MAKE) --no-print-directory floors-environment
	$(subst $(PY),.venv-lowest/bin/python,$(TESTING)) $(FLOORS) $(SHARED) \
		-W ignore::pytest.PytestUnraisableExceptionWarning $(PYTEST_ARGS)
else
	@echo "Skipped: the lowest versions are for Python 3.10, and there is no python3.10."
endif

floors-environment: $(if $(call python_of,3.10),.venv-lowest/.test) ## Build the environment with the lowest versions

test-all: test test-long spark-core ## Run every test of the project, with new random examples

ONE_IN ?= 1
test-long: $(VENV)/.test ## Run the long tests only, with new random examples
	FAKEAMQP_FUZZ=$(FUZZ_FACTOR) $(TESTING) compat_tests examples --tier long --one-in $(ONE_IN) $(SHARED) \
		--hypothesis-seed=$(SEED) $(PYTEST_ARGS)
	$(TESTING) $(BEHAVIOUR) --runtime asyncio $(SHARED) $(PYTEST_ARGS)
	$(TESTING) $(PROXIED) --through-proxy --tier quick --one-in $(ONE_IN) $(SHARED) --hypothesis-seed=$(SEED) \
		$(PYTEST_ARGS)

fuzz: $(VENV)/.test ## Run the fuzz tests at twenty times their length, with new random examples
	FAKEAMQP_FUZZ=$(or $(FAKEAMQP_FUZZ),20) $(TESTING) $(FUZZ) --timeout=0 --hypothesis-seed=$(SEED) $(PYTEST_ARGS)

flake-hunt: $(VENV)/.test ## Run the quick tests 20 times in random orders on a busy machine
	@$(PY) -m compileall -q -j 0 fakeamqp pytest_plugin
	$(PY) -m compat_tests.reliability.flake_hunt --record

crashes: $(VENV)/.test ## Kill streaming jobs of Spark at every point there is, with five seeds
	FAKEAMQP_CRASHES=$${FAKEAMQP_CRASHES:-5} $(PY) -m pytest compat_tests/crashes --timeout=900 -rP $(PYTEST_ARGS)

spark: $(VENV)-pyspark-$(PYSPARK)/.test ## Run the tests about Spark on another version: make spark PYSPARK=4.0
	FAKEAMQP_FUZZ=$(FUZZ_FACTOR) $(VENV)-pyspark-$(PYSPARK)/bin/python -m pytest $(SPARK) --timeout=300 \
		--hypothesis-seed=$(SEED) $(PYTEST_ARGS)

recipes: $(VENV)/.recipes ## Run the code of docs/recipes, with the libraries that it is about
	$(TESTING) compat_tests/docs/test_recipes.py $(PYTEST_ARGS)

recipes-environment: $(VENV)/.recipes ## Build the environment of the tests with what recipes need

environment: $(VENV)/.test ## Build the environment of the tests

spark-environment: $(VENV)-pyspark-$(PYSPARK)/.test ## Build the environment with another version of PySpark

spark-core: $(VENV)-pyspark-$(PYSPARK)/.test ## Run the core of the tests about Spark on another version
	$(VENV)-pyspark-$(PYSPARK)/bin/python -m pytest $(SPARK_CORE) --timeout=300 $(PYTEST_ARGS)

conformance: $(VENV)/.test ## Run the protocol tests and write docs/conformance.md and a page for each protocol
	$(TESTING) compat_tests/protocol compat_tests/unit compat_tests/broker $(SHARED) \
		--conformance docs/conformance.md $(PYTEST_ARGS)

blanking: $(VENV)/.test ## Check that no test of a rule counts in docs/conformance.md without its body
	$(PY) -m compat_tests.tools.blanking

personalities: $(VENV)/.test ## Write the tables of docs/personalities.md
	$(PY) -m compat_tests.tools.personalities

faults: $(VENV)/.test ## Record what clients do about faults and write docs/faults.md
	$(PY) -m pytest compat_tests/faults/test_clients.py --timeout=300 --record-faults $(PYTEST_ARGS)

fidelity: $(VENV)/.test ## Compare with every RabbitMQ at hand and write docs/fidelity.md
	$(PY) -m compat_tests.differential.fidelity

mutants: $(VENV)/.test ## Change lines of the model and the handlers, or PART=trace: do the quick tests notice?
	$(PY) -m compat_tests.reliability.mutants --part $(or $(PART),model) --sample $(or $(SAMPLE),1000) \
		--seed $(or $(MUTANT_SEED),17)

attempts: $(VENV)/.test ## Attack the broker and RabbitMQ in every way there is and write docs/attempts.md
	$(PY) -m compat_tests.attempts

MINUTES ?= 2
soak: $(VENV)/.test ## Let clients work for 30 days of the broker's time under chaos: make soak MINUTES=10
	$(PY) -m compat_tests.reliability.soak --minutes $(MINUTES)

bench: $(VENV)/.bench ## Measure the broker beside RabbitMQ: all (docs/benchmarks.md), or make bench BENCH="'pika: *'"
	$(PY) -m compat_tests.benchmarks.side_by_side $(or $(BENCH),--record)

bench-profile: $(VENV)/.bench ## Sample where the time goes and write the table in docs/benchmarks-internal.md
	$(PY) -m compat_tests.benchmarks.side_by_side.profile

bench-parts: $(VENV)/.test ## Measure parts of the broker and write their tables in docs/benchmarks-internal.md
	$(PY) -m compat_tests.benchmarks.parts

# mkdocstrings formats signatures with the command ruff.
MKDOCS := NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m mkdocs
docs: $(VENV)/.docs ## Build the documentation as a site, in build/site
	$(MKDOCS) build
	@echo "Open build/site/index.html, or run: make docs-serve"

docs-serve: $(VENV)/.docs ## Show the documentation as a site while you edit it
	$(MKDOCS) serve

dist: $(VENV)/.docs ## Build the distributions and check them
	@rm -rf build/lib build/bdist.* dist
	$(PY) -m build --quiet
	$(PY) -m twine check --strict dist/*

lint: $(VENV)/.test ## Check style, types and import contracts
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest compat_tests/packaging/test_types.py -k declared_type
	$(VENV)/bin/lint-imports
	$(PY) -m pytest --collect-only --quiet compat_tests examples >/dev/null  # Every import, of the long tests too.

format: $(VENV)/.test ## Let ruff put the code into shape
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## Remove the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-* build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "fakeamqp needs Python 3.10 or later; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "No virtual environment; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/.demo: $(PACKAGING) | $(PY)
	@echo "Installing fakeamqp, pika and aio-pika into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[pytest,pika,aio-pika]' 'pytest-asyncio>=1.0'
	@touch $@

$(VENV)/.demo-spark: $(PACKAGING) | $(VENV)/.demo
	@echo "Installing PySpark into $(VENV): some 450 MB, once ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[spark]'
	@touch $@

$(VENV)/.test: $(PACKAGING) | $(PY)
	@echo "Installing fakeamqp and all that its tests need into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[test,spark]'
	$(amqp_1_0_clients)
	@touch $@ $(VENV)/.demo $(VENV)/.demo-spark

# They are built from source, which needs a compiler of C.
define amqp_1_0_clients
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[amqp-1-0]' \
		|| echo "Clients of AMQP 1.0 cannot be built here: the tests that need them are skipped."
endef

# Pages draw diagrams with a program that comes from npm. Without npm they load it from another server.
$(VENV)/.docs: $(PACKAGING) | $(PY)
	@echo "Installing what the documentation and a release need into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[docs,pytest,release]'
	@mkdir -p build/mermaid && cd build/mermaid && npm pack --silent mermaid@11 >/dev/null \
		&& tar -xzf mermaid-11.*.tgz package/dist/mermaid.min.js && rm mermaid-11.*.tgz || echo "No npm: pages load mermaid from unpkg.com."
	@touch $@

$(VENV)/.bench: $(PACKAGING) | $(VENV)/.test
	@echo "Installing matplotlib and py-spy into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/.recipes: $(PACKAGING) | $(PY)
	@echo "Installing fakeamqp, all that its tests need and what recipes need into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[test,spark,recipes]'
	$(amqp_1_0_clients)
	@touch $@ $(VENV)/.test $(VENV)/.demo $(VENV)/.demo-spark

# Environments of other Pythons have no PySpark, which is large.
.venv-3.%/.test: $(PACKAGING) | $(VENV)/.test
	$(call uv_environment,3.$*,highest)

.venv-lowest/.test: $(PACKAGING) | $(VENV)/.test
	$(call uv_environment,3.10,lowest-direct)

define uv_environment
	@echo "Installing fakeamqp and all that its tests need into $(@D) ..."
	@rm -rf $(@D)
	@$(VENV)/bin/uv venv --quiet --python $(call python_of,$(1)) $(@D)
	@$(VENV)/bin/uv pip install --quiet --python $(@D) --resolution $(2) -e '.[test]'
	@touch $@
endef

$(VENV)-pyspark-%/.test: $(PACKAGING)
	@echo "Installing fakeamqp and PySpark $* into $(@D) ..."
	@test -d $(@D) || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,spark]' 'pyspark==$*.*'
	@touch $@
