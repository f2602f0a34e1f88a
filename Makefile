# The two commands: `make demo` (the main job, on real servers) and `make test`.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
# Spark's workers must run the same Python as its driver.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
FUZZ_SECONDS ?= 600
SECONDS ?= 60
MUTATE_SECONDS ?= 1800
PYTHONS ?= 3.12 3.13
# An image of MySQL 8.4 or later; `make images` makes gtid-audit/mysql:debian without a registry.
MYSQL_IMAGE ?= mysql:8.4
# tests/distribution.py says which tests stay together, in which order and in how many processes.
BY_GROUP := --maxprocesses 4 --dist loadscope --no-loadscope-reorder -p tests.distribution
IN_PROCESSES := --numprocesses auto $(BY_GROUP)

.PHONY: help demo test all-tests compiled quick quick-tests lint types contracts docs lowest pythons nightly fuzz simulate mutate soak faults bench servers engine engine-down images up down fault \
    repair test-containers lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\)[a-z -]*:.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.venv/bin/python:
	@bash requirements/setup.sh create

.venv/.complete: requirements/setup.sh requirements/lock.txt requirements/bootstrap.txt pyproject.toml \
    | .venv/bin/python
	@bash requirements/setup.sh

# It needs no package: in a clean clone it runs beside their installation.
servers: | .venv/bin/python ## fetch and cache real MySQL servers (9.7 and 5.6), without installing any
	@$(PY) -m compose.native.provision
	@$(PY) -m compose.native.monitoring_programs

demo: .venv/.complete ## the main job: break three real pairs, find it, repair it, find nothing more
	@$(PY) -m compose.demo

# Python keeps what it compiled, whatever the environment says: half of the time of collecting tests
# is compiling them, and each process of pytest-xdist would compile all of them for itself.
test all-tests nightly compiled quick-tests: export PYTHONDONTWRITEBYTECODE :=

# The check of types runs beside the tests: it takes one processor a minute in a clean clone.
test: ## everything that must hold: lint, types, contracts, tests
	@$(MAKE) --no-print-directory --jobs types all-tests

all-tests: lint contracts servers compiled
	@$(PY) -m pytest $(IN_PROCESSES) -m "not slow"

compiled: .venv/.complete
	@$(PY) -m pytest --collect-only -q -p tests.distribution > .venv/collected.txt || { tail -n 40 .venv/collected.txt; exit 1; }

quick: .venv/.complete ## no server, no Spark, no long test; some of the examples and cases
	@$(MAKE) --no-print-directory --jobs --output-sync lint types contracts quick-tests

quick-tests: .venv/.complete
	@$(PY) -m pytest --numprocesses logical $(BY_GROUP) -p tests.hypothesis_profiles --hypothesis-profile=quick \
	    -p tests.some_cases -m "not mysql and not spark and not slow and not long"

lint: .venv/.complete ## ruff, check and format
	@.venv/bin/ruff check --no-cache .
	@.venv/bin/ruff format --no-cache --check --quiet .

types: .venv/.complete ## mypy, strict
	@.venv/bin/mypy

contracts: .venv/.complete ## who may import whom
	@.venv/bin/lint-imports --no-cache > .venv/contracts.txt || { cat .venv/contracts.txt; exit 1; }
	@tail -n 2 .venv/contracts.txt | head -n 1

docs: .venv/.complete ## write the generated pages
	@$(PY) -m gtid_audit.catalogue_page > docs/catalogue.md
	@$(PY) -m gtid_audit.scenario_page > docs/reconcile-scenarios.md
	@$(PY) -m gtid_audit.monitoring.monitoring_files > .venv/monitoring.txt
	@$(PY) -m gtid_audit.document_types.command_documents docs/reference
	@$(PY) -m gtid_audit.views.inventory_schema > docs/reference/inventory.schema.json

nightly: .venv/.complete lint types contracts servers ## the whole suite: slow tests too, ten times the examples, mutants
	@$(PY) -m pytest $(IN_PROCESSES) -p tests.hypothesis_profiles --hypothesis-profile=nightly
	@$(PY) -m tests.mutate.run SECONDS=$(MUTATE_SECONDS)
	@$(MAKE) --no-print-directory lowest pythons

lowest: .venv/.complete ## quick tests with the lowest versions of packages that pyproject.toml permits
	@bash requirements/other_environment.sh lowest-direct .venv/bin/python

pythons: .venv/.complete ## quick tests with each newer Python that is installed (PYTHONS="3.12 3.13")
	@for version in $(PYTHONS); do bash requirements/other_environment.sh highest $$version || exit 1; done

fuzz: .venv/.complete ## look for inputs that break the readers of text and bytes, FUZZ_SECONDS long
	@for target in text binary binlog; do \
	    $(PY) -m tests.fuzz.run $$target $$(( $(FUZZ_SECONDS) / 3 )) || exit 1; \
	done
	@for target in text binary binlog; do $(PY) -m tests.fuzz.run $$target distil; done
	@$(PY) -m tests.fuzz.servers $$(( $(FUZZ_SECONDS) / 3 ))

simulate: .venv/.complete ## histories of simulated topologies against the truth, SECONDS long (SEED=, KEEP=folder)
	@$(PY) -m tests.simulation.run SECONDS=$(SECONDS) $(if $(SEED),SEED=$(SEED)) $(if $(KEEP),KEEP=$(KEEP))

mutate: .venv/.complete ## change decisions at random, SECONDS long; report what no test notices (SEED=, ONLY=path, QUICK=1)
	@$(PY) -m tests.mutate.run SECONDS=$(SECONDS) $(if $(SEED),SEED=$(SEED)) \
	    $(if $(ONLY),ONLY=$(ONLY)) $(if $(QUICK),QUICK=1)

soak: .venv/.complete servers ## audit healthy servers under load, SECONDS long: nothing above info (SEED=, SHAPES=pair,ring)
	@$(PY) -m tests.soak.run SECONDS=$(SECONDS) $(if $(SEED),SEED=$(SEED)) $(if $(SHAPES),SHAPES=$(SHAPES))

faults: .venv/.complete servers ## inject random faults into real servers, SECONDS long: each is found, none misnamed (SEED=, CASE=, KIND=)
	@$(PY) -m tests.random_faults.run SECONDS=$(SECONDS) $(if $(SEED),SEED=$(SEED)) $(if $(CASE),CASE=$(CASE)) \
	    $(if $(KIND),KIND="$(KIND)")

bench: .venv/.complete ## measure, beside the peers, into benchmarks/results.md
	@$(PY) -m benchmarks.run

engine: ## start a private Docker engine from Debian's packages (root; nothing is installed)
	@python3 -m compose.containers.engine start

engine-down: ## end the private engine, with its containers and images
	@python3 -m compose.containers.engine stop

images: .venv/.complete ## make the images of the stack from Debian packages, where no registry is reached
	@$(PY) -m compose.containers.make_images

up: ## servers, the auditor, Prometheus, Alertmanager, Grafana in Docker (SHAPES=pair,chain,multi-source,group LOAD=1)
	@python3 -m compose.containers.stack up $(if $(SHAPES),--shapes=$(SHAPES)) $(if $(LOAD),--load)

down: ## remove what `make up` started
	@python3 -m compose.containers.stack down

fault repair: ## break the pair of `make up`, repair it again (NAME=conflict, stopped, partition, frozen)
	@python3 -m compose.containers.stack $@ $(NAME)

# Fails at once where no engine answers: without one it would skip every test on servers.
test-containers: .venv/.complete ## the live tests on containers of MYSQL_IMAGE (TESTS=folders or files)
	@$(PY) -m compose.containers.engine status
	GTID_AUDIT_MYSQL_IMAGE=$(MYSQL_IMAGE) $(PY) -m pytest $(IN_PROCESSES) -m "mysql and not slow" $(TESTS)

lock: .venv/.complete ## lock the dependencies anew
	echo uv | .venv/bin/uv pip compile - --quiet --generate-hashes --no-annotate \
	    --custom-compile-command "make lock" --output-file requirements/bootstrap.txt
	.venv/bin/uv pip compile pyproject.toml --quiet --extra dev --python-version 3.11 --generate-hashes \
	    --no-emit-package gtid-audit --custom-compile-command "make lock" \
	    --output-file requirements/lock.txt

clean: ## remove .venv and the cache
	rm -rf .venv .cache
