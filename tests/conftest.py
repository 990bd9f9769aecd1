"""Fixtures of all tests: PostgreSQL, migrated databases and server processes; and the markers of slow tests.

Fixtures import the application themselves: tests/unit does not need it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.servers import EMPTY_CELLS, WITH_CELLS, Server
from tools.postgres import PostgresError, throwaway

if TYPE_CHECKING:
    from tests.api.running_app import RunningApp, User

# The first one validates every response against /doc.
pytest_plugins = ["tests.description.plugin", "tests.markers"]

TESTS = Path(__file__).parent

# Markers by folder or file, and by fixture. Single tests in other files carry theirs as decorators.
PATH_MARKERS = {
    "api/test_hostile_fields.py": ["exhaustive"],
    "api/test_permissions.py": ["exhaustive"],
    "api/test_place_lists.py": ["exhaustive"],
    "backup": ["process"],
    "caching/test_outdated_responses.py": ["exhaustive"],
    "caching/test_starved_reads.py": ["exhaustive"],
    "cells/test_cell_processes.py": ["process"],
    "cells/test_site_move_commands.py": ["process"],
    "cells/test_site_move_crashes.py": ["process"],
    "cells/test_site_moves.py": ["process"],
    "commands": ["process"],
    "console/test_emails.py": ["process"],
    "console/test_editor_bundle.py": ["npm"],
    "console/test_rich_text.py": ["npm"],
    "deploy/test_distributions.py": ["process"],
    "description/test_fuzz.py": ["process"],
    "docs/test_documentation.py": ["docs"],
    "faults": ["process"],
    "follow/test_follow_browser.py": ["npm"],
    "follow/test_sender_process.py": ["process"],
    "failover": ["process"],
    "imports/test_pipeline_process.py": ["process"],
    "lifecycle/test_job_queues.py": ["process"],
    "lifecycle/test_jobs.py": ["process"],
    "lifecycle/test_worker_stop.py": ["process"],
    "lifecycle/test_scheduled_publication.py": ["process"],
    "lifecycle/test_sync.py": ["process"],
    "lists": ["exhaustive"],
    "media/test_bucket.py": ["process"],
    "media/test_dns_rebinding.py": ["process"],
    "media/test_media_commands.py": ["process"],
    "media/test_media_crashes.py": ["process"],
    "media/test_upload_limiter.py": ["exhaustive"],
    "monitoring/test_metrics.py": ["process"],
    "move_in/test_move_in.py": ["process"],
    "move_in/test_move_in_recording.py": ["process"],
    "pages/test_browser.py": ["npm"],
    "pages/test_responsive_layout.py": ["npm"],
    "proposals/test_email_delivery.py": ["process"],
    "proposals/test_form_browser.py": ["npm"],
    "proxies": ["process"],
    "push/test_mirror_howto.py": ["process"],
    "push/test_post_speed.py": ["process"],
    "push/test_live_lists.py": ["process"],
    "push/test_live_list_oracle.py": ["exhaustive"],
    "push/test_stream_cuts.py": ["process"],
    "replicas": ["process"],
    "robustness": ["process"],
    "robustness/test_site_against_model.py": ["exhaustive"],
    "security/test_cache_memory.py": ["process"],
    "security/test_connections.py": ["process"],
    "security/test_expensive_bodies.py": ["process"],
    "security/test_http_semantics.py": ["process"],
    "security/test_read_only_database.py": ["process"],
    "security/test_request_head.py": ["process"],
    "seed": ["process"],
    "series/test_series_horizon.py": ["process"],
    "series/test_series_model.py": ["exhaustive"],
    "series/test_series_robustness.py": ["process"],
    "site_archive": ["process"],
    "speed": ["process"],
    "unit/description/test_document.py": ["exhaustive"],
    "upgrade": ["process"],
}
FIXTURE_MARKERS = {
    "chromium": "browser",
    "font_packages": "npm",
    "ical_js": "npm",
    "report": "exhaustive",
    "rule_reader": "npm",
    "stage": "varnish",
    "start_server": "process",
}
# The hosts of the site in a cell; the first one is that of tests/api.
HOSTS = ("calendar.test", "lists.example", "localhost", "127.0.0.1")
# Tests of a server or command without a directory: any host is served, /readyz has one line, no --site is needed.
WITHOUT_CELLS = {
    "tests/api/test_hostile_requests.py::test_request_without_host_is_served",
    "tests/api/test_index_and_doc.py::test_health_and_readiness",
    "tests/api/test_index_and_doc.py::test_schema_mismatch_is_healthy_but_not_ready",
    "tests/api/test_responses.py::test_links_use_request_url_or_configured_base_url",
    "tests/api/test_server_process.py::test_aborted_request_body_is_logged_as_408",
    "tests/console/test_emails.py::test_link_in_email_never_follows_the_host_header",
    "tests/series/test_series_owners.py::test_a_site_with_series_can_be_removed",
    "tests/series/test_series_times.py::test_new_time_zone_data_moves_instants_and_not_clocks",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if WITH_CELLS and item.nodeid.partition("[")[0] in WITHOUT_CELLS:
            item.add_marker(pytest.mark.skip(reason="differs with a directory"))
        fixtures = set(getattr(item, "fixturenames", ()))
        markers = {marker for name, marker in FIXTURE_MARKERS.items() if name in fixtures}
        for marker in markers.union(find_path_markers(item.path)):
            item.add_marker(marker)


@cache
def find_path_markers(path: Path) -> list[str]:
    """Return the markers of a test file and of the folders that contain it."""
    relative = PurePath(path.relative_to(TESTS))
    return [marker for part in (relative, *relative.parents) for marker in PATH_MARKERS.get(part.as_posix(), ())]


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a PostgreSQL server where databases may be created.

    Each worker of pytest-xdist starts a server, which takes less than a second, so that workers share nothing.
    """
    with ExitStack() as running:
        url = os.environ.get("KALENDS_TEST_DATABASE_URL")
        try:
            url = url or running.enter_context(throwaway()).url
            with psycopg.connect(url, autocommit=True) as connection:
                # Loads PL/pgSQL, which fails after an upgrade of PostgreSQL under a running server.
                connection.execute("DO $$ BEGIN END $$")
        except (psycopg.Error, PostgresError) as error:
            stop(request.session, f"PostgreSQL does not work, so no test can run: {error}")
        yield url


@pytest.fixture(scope="session")
def template_database(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    """Return the name of a migrated database without connections, to be copied."""
    from kalends.store.migrations import migrate

    with ExitStack() as running:
        name = running.enter_context(temporary_database(postgres_url))
        try:
            migrate(replace_database(postgres_url, name))
        except Exception as error:
            stop(request.session, f"The migrations fail on an empty database, so no test can run: {error!r}")
        if WITH_CELLS:
            for cell in ("a", "c"):
                copy = running.enter_context(temporary_database(postgres_url, template=name))
                EMPTY_CELLS[cell] = replace_database(postgres_url, copy)
            asyncio.run(add_directory(replace_database(postgres_url, name), "b", EMPTY_CELLS))
        yield name


async def add_directory(database_url: str, cell: str, empty_cells: Mapping[str, str]) -> None:
    """Make a database with one site a cell, with the directory of all cells and the hosts that the tests use."""
    from kalends.fleet.storage import directory as directory_changes

    with psycopg.connect(database_url) as connection:
        for host in HOSTS:
            connection.execute("INSERT INTO site_hosts VALUES (%s, 1)", [host])
    await directory_changes.apply_schema(database_url)
    for name, url in ((cell, database_url), *empty_cells.items()):
        await directory_changes.add_cell(database_url, url, name)


@pytest.fixture(scope="session")
def user_template(postgres_url: str, template_database: str) -> Iterator[tuple[str, dict[str, User]]]:
    """Return the name of a database with one user of each role, to be copied, and these users."""
    from tests.api.running_app import add_users

    with temporary_database(postgres_url, template=template_database) as name:
        try:
            users = asyncio.run(add_users(replace_database(postgres_url, name)))
        except Exception as error:
            pytest.fail(f"The users of the tests cannot be created: {error!r}", pytrace=False)
        yield name, users


@pytest.fixture(scope="session")
def shared_app(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[RunningApp]:
    """Return an application for many tests; each adds a site and leaves the first one alone."""
    from kalends.store.sites import add_host
    from tests.api.running_app import HOST, RunningApp

    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        if not WITH_CELLS:
            asyncio.run(add_host(url, HOST, 1))
        with RunningApp(url, users) as running:
            yield running


@pytest.fixture(scope="session")
def shared_app_with_purges(shared_app: RunningApp) -> Iterator[RunningApp]:
    """Return an application like `shared_app` whose responses have surrogate keys."""
    from tests.api.running_app import RunningApp

    with RunningApp(shared_app.database_url, {}, {"KALENDS_PURGE_URLS": "http://127.0.0.1:9/"}) as running:
        yield running


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """Return the URL of a new database without any migration."""
    with temporary_database(postgres_url) as name:
        yield replace_database(postgres_url, name)


@pytest.fixture
def database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """Return the URL of a new, migrated database."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield replace_database(postgres_url, name)


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server: `start_server(database_url, environment={"KALENDS_…": "…"})`.

    Servers that still run at the end of the session are stopped.
    """
    directory = tmp_path_factory.mktemp("servers")
    with ExitStack() as running:

        def start(database_url: str, **options) -> Server:
            log = directory / f"{secrets.token_hex(4)}.log"
            return running.enter_context(Server.start(database_url, log=log, **options))

        yield start


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Return a function that shows figures at the end of the run: `report("64 writes, 64 rejected")`."""
    return lambda figures: record_property("figures", str(figures))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    lines = [
        f"{report.nodeid.rpartition('/')[2]}: {value}"
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "figures" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(lines))


def stop(session: pytest.Session, reason: str) -> NoReturn:
    """End the run with one sentence. Under pytest-xdist, `shouldstop` passes it on to the controller."""
    session.shouldstop = reason
    pytest.exit(reason, returncode=pytest.ExitCode.INTERNAL_ERROR)


def replace_database(postgres_url: str, database: str) -> str:
    """Return the URL of another database on the same server."""
    return urlsplit(postgres_url)._replace(path=f"/{database}").geturl()


@contextmanager
def keep_logging() -> Iterator[None]:
    """Undo what a program that is called in this process does to the loggers of all later tests."""
    loggers = [
        logging.root,
        *(logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)),
    ]
    states = [(logger, logger.level, logger.handlers[:], logger.propagate, logger.disabled) for logger in loggers]
    try:
        yield
    finally:
        for logger, level, handlers, propagate, disabled in states:
            logger.setLevel(level)
            logger.handlers[:] = handlers
            logger.propagate, logger.disabled = propagate, disabled


@contextmanager
def temporary_database(postgres_url: str, *, template: str = "template0") -> Iterator[str]:
    # The name of the worker identifies databases that a killed run has left behind.
    name = f"kalends_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{secrets.token_hex(4)}"
    identifiers = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # Copying the files takes half the time of copying the blocks through the WAL, which is the default.
        copy = sql.SQL("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        connection.execute(copy.format(**identifiers))
    try:
        yield name
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**identifiers))
