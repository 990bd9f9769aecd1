# All development commands. `just` without arguments lists them.

set positional-arguments

# Tests start many processes; without compiled modules on disk, each of them starts slowly.
unexport PYTHONDONTWRITEBYTECODE

local := ".local"
host := "127.0.0.1"
port := "8000"
# uv tells its own path to the programs that it runs, so that it need not be on the PATH.
uv := env("UV", "uv")
# Markers of tests that are too slow for `just test-quick`, or need more than PostgreSQL.
quick := "not (process or browser or varnish or npm or docs or exhaustive or large)"

_list:
    @just --list --unsorted

# Install all dependencies into .venv
setup:
    uv sync

# Run a server and a worker on a local PostgreSQL that is kept in .local; another port: just port=8001 run
run:
    @{{ uv }} run python -m tools.run --directory {{ local }} --host {{ host }} --port {{ port }}

# The same with a made-up town and its events
demo:
    @{{ uv }} run python -m tools.run --directory {{ local }} --host {{ host }} --port {{ port }} --town

# Stop the local PostgreSQL of `just run`
stop:
    uv run python tools/postgres.py stop {{ local }}/postgres

# Fill the local site with made-up records: --events N, --seed N (`kalends seed --help` has them all)
seed *arguments:
    #!/usr/bin/env bash
    set -euo pipefail
    KALENDS_DATABASE_URL="$(uv run python tools/postgres.py ensure {{ local }}/postgres)"
    export KALENDS_DATABASE_URL KALENDS_MEDIA_DIR="{{ local }}/media"
    uv run kalends migrate
    uv run kalends seed "$@"

# Install the npm packages for the tests of pages and feeds, and for the rich-text editor
setup-node:
    cd tests/node && npm ci --ignore-scripts --no-audit --no-fund
    cd tools/editor && npm ci --ignore-scripts --no-audit --no-fund

# Run the tests that need no database, of all areas or of some: just test core feeds; arguments go to pytest
test *arguments:
    @{{ just_executable() }} _test-areas tests/unit "$@"

# Run the quick tests with and without a database, of all areas or of some: just test-quick series -k undo
test-quick *arguments:
    @{{ just_executable() }} _test-areas tests "$@"

# Leading names are areas: folders of tests/unit and, if `root` is tests, of tests.
_test-areas root *arguments:
    #!/usr/bin/env bash
    set -euo pipefail
    root="$1" paths=()
    shift
    while [[ "${1:-}" =~ ^[a-z_]+$ ]]; do
        folders=()
        for folder in "tests/unit/$1" "$root/$1"; do
            [[ ! -d "$folder" || " ${folders[*]} " == *" $folder "* ]] || folders+=("$folder")
        done
        ((${#folders[@]})) || { echo "There is no folder $1 in $root." >&2; exit 2; }
        paths+=("${folders[@]}")
        shift
    done
    if ((${#paths[@]} == 0)) && [[ " $*" != *" tests/"* ]]; then
        paths=(-n 2 "$root")
    fi
    exec uv run pytest -m "{{ quick }}" "${paths[@]}" "$@"

# Break one rule at a time (tests/mutants) and see the quick tests of its area fail: just mutants [AREA|NAME...]
mutants *names:
    {{ uv }} run python -m tools.mutants "{{ quick }}" "$@"

# Run all tests except `-m large`; arguments go to pytest
test-all *arguments:
    uv run pytest "$@"

# Run the tests of API, lists, series, feeds, pages and console on a site in one of three cells; arguments go to pytest
test-cells *arguments:
    #!/usr/bin/env bash
    [[ " $*" == *" tests/"* ]] || set -- -n 2 tests/api tests/lists tests/series tests/feeds tests/pages tests/console "$@"
    KALENDS_TEST_CELLS=1 exec uv run pytest "$@"

# Install an S3-compatible server into .local, for the tests of bucket storage
setup-s3:
    uv venv --quiet --allow-existing {{ local }}/moto
    uv pip install --quiet --python {{ local }}/moto 'moto[server,s3,iam]==5.2.5'

# Run the tests of races, crashes, isolation, hostile requests, models and caches with many more cases
soak *paths:
    #!/usr/bin/env bash
    [ $# -gt 0 ] || set -- tests/api/test_hostile_fields.py tests/backup tests/caching tests/cells tests/console tests/failover tests/feeds tests/imports tests/lifecycle tests/lists tests/media tests/move_in tests/pages tests/push tests/replicas tests/robustness tests/security tests/series tests/speed tests/unit tests/varnish
    KALENDS_SOAK=1 exec uv run pytest "$@"

# Replace servers and workers of three versions one by one, under 200 requests and 10 writes per second
upgrade-test *arguments:
    KALENDS_SOAK=1 uv run pytest tests/upgrade "$@"

# Check style, types, import contracts, migrations and message catalogues
check:
    #!/usr/bin/env bash
    set -euo pipefail
    uv run ruff check
    uv run ruff format --check
    uv run python -m tools.migration_lint
    uv run python -m tools.translations --check
    # Each of the two uses one core.
    uv run pyright &
    status=0
    uv run mypy || status=$?
    wait $! || status=$?
    uv run lint-imports
    exit "$status"

# Fix style and formatting with ruff
fix:
    uv run ruff check --fix
    uv run ruff format

# Run the conformance kit against a new server: --phase, --sections 01,02, --only GLOB, --cells
conformance *arguments:
    uv run python -m tools.conformance "$@"

# Benchmark requests against plain SQL and write docs/performance: --quick, --only NAME
bench *arguments:
    uv run python -m bench.speed "$@"

# Read with 64 connections while writing 20 times a second, and count stale responses
bench-staleness *arguments:
    uv run python -m bench.staleness "$@"

# Find the highest rate of mixed requests with one, two and four processes: --events N, --seconds N
bench-knee *arguments:
    uv run python -m bench.knee "$@"

# Measure the throughput of cached reads while the site is being written: --events N, --seconds N, --rounds N
bench-busy *arguments:
    uv run python -m bench.busy "$@"

# Compare CPU per request at 20,000 and 2,000,000 events: --quick, --only NAME, --small N, --large N, --series
bench-growth *arguments:
    uv run python -m bench.scaling "$@"

# Spread requests over 10,000 of 100,000 sites in one database, and run the periodic jobs: --quick, --sites N
bench-sites *arguments:
    uv run python -m bench.many_sites "$@"

# Measure small and large sites in one database against databases that have the site alone: --sites N
bench-mixed *arguments:
    uv run python -m bench.mixed_sites "$@"

# Spread 100,000 sites over three cells; measure the directory, jobs, and the loss of a cell: --quick, --sites N
bench-cells *arguments:
    uv run python -m bench.cells "$@"

# Measure pages on a slow phone, their weight, suggestions and the front page at 20,000 events: --rounds N, --events N
bench-pages *arguments:
    uv run python -m bench.felt_speed "$@"

# Measure a month of 1,000 events and a feed of 5,000, also in a site of 2,000,000: --quick, --small N, --large N
bench-calendar *arguments:
    uv run python -m bench.calendar_pages "$@"

# Measure other clients during attacks at 200,000 events, and write docs/performance/fairness.md: --quick, --only NAME
bench-fairness *arguments:
    uv run python -m bench.fairness "$@"

# Send events with the public form at a high rate while others read and edit: --events N, --seconds N, --per-minute N
bench-submissions *arguments:
    uv run python -m bench.submissions "$@"

# Measure the sender of digests: --quick, --people N, --lists N, --delay SECONDS
bench-digests *arguments:
    uv run python -m bench.digests "$@"

# Hold idle streams, and follow 200 lists while five events per second change: --seconds N, --only idle
bench-streams *arguments:
    uv run python -m bench.streams "$@"

# Edit with 100 people in the console while others read: --quick, --editors N, --rounds N
bench-console *arguments:
    uv run python -m bench.console_editors "$@"

# Measure the pages of the console at 20,000 events: --events N, --requests N
bench-console-pages *arguments:
    uv run python -m bench.console_pages "$@"

# Measure edits of series, new series, undo, previews and the nightly job: --quick, --events N, --rounds N
bench-series *arguments:
    uv run python -m bench.series "$@"

# Import 5,000 events into a site of 20,000 while others read and write: --quick, --events N, --site N
bench-imports *arguments:
    uv run python -m bench.imports "$@"

# Move a made-up WordPress site in while others read: --quick, --events N
bench-move-in *arguments:
    uv run python -m bench.move_in "$@"

# Move a made-up WordPress site in from the plan to the switch, with a worker: --events N, --delay SECONDS
bench-whole-move *arguments:
    uv run python -m bench.whole_move "$@"

# Generate docs/settings.md and docs/reference from the code
reference:
    uv run python -m tools.reference
    uv run python -m tools.docs

# Generate docs/statuses.md and its diagram from the table of statuses
statuses:
    uv run python -m tools.statuses

# Update the message catalogues and list untranslated messages; --check changes nothing
translations *arguments:
    uv run python -m tools.translations "$@"

# Record the examples of /doc from a server with a fixed clock
examples:
    uv run python -m tools.examples

# Record responses and SQL of many requests, or compare two recordings: record DIR, compare DIR DIR --skip PATTERN
wire *arguments:
    uv run python -m tools.wire "$@"

# Count the files, functions and calls of kalends in one request
walk:
    uv run python -m tools.walk

# Take the pictures in docs/images, or some: just screenshots home; every public page: just screenshots --all [DIR]
screenshots *arguments:
    uv run python -m tools.screenshots "$@"

# Generate the models of the example client from /doc
client:
    uv run python -m tools.client

# Build the rich-text editor of the console from tools/editor
editor:
    cd tools/editor && npm ci --ignore-scripts --no-audit --no-fund && npm run build

# Build the documentation as a site, in .local/site
docs: reference
    uv run zensical build --clean --strict

# Fuzz all operations of /doc with every role, in more than 20,000 requests; --small sends fewer
schemathesis *arguments:
    uv run python -m tools.fuzz "$@"

# Measure the time from a clean clone to the calendar in Chromium, with an empty home directory
first-hour:
    uv run python -m tools.first_hour

# Build the wheel and the source distribution in dist, and check that both are complete
dist:
    uv run python -m tools.dist

# Build the container image as an OCI archive in .local/image, without Docker; --fresh-base downloads Debian again
image *arguments:
    uv run python -m tools.image "$@"

# Run the image against a PostgreSQL: migrate, serve, write, read, upload, stop; needs root
image-test:
    uv run python -m tools.image_test

# Follow docs/how-to/install.md on a bare Debian with its own systemd, up to HTTPS, and print the time; needs root
install-test *arguments:
    uv run python -m tools.install_test "$@"

# Build and check a release, then commit and tag it: just release 1.2.3; --dry-run does neither
release version *arguments:
    uv run python -m tools.release "$@"

# Remove caches, builds and the local database
clean: stop
    rm -rf {{ local }} .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* dist
    find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
