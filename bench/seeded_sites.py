"""A PostgreSQL with seeded sites, reused by further runs of the same day, and servers for them."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import psycopg
from psycopg import sql

from bench.minimal_server import BARE, DATABASE, RECORDING, Exchange, write_recording
from kalends.store.migrations import migrate
from tests.servers import Server, find_free_port, make_environment
from tools import postgres

NS = "/api/calendar/events/v1"
LOGIN = "bench"
# Parallel workers end before their CPU time can be read, and autovacuum would distort the results.
SETTINGS = {
    **postgres.THROWAWAY,
    "max_parallel_workers_per_gather": "0",
    "autovacuum": "off",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
}
# Tables that a measurement fills from nothing need statistics, as in every installation.
FILLING_SETTINGS = {**SETTINGS, "autovacuum": "on"}
# Like the records of the reference: all events are upcoming, and there are few other records.
REFERENCE_OPTIONS = ("--venues", "50", "--organizers", "50", "--categories", "20", "--tags", "50")


@dataclass(frozen=True)
class SeededSite:
    """A seeded site with records for requests, and the password of a user who may write."""

    url: str
    events: int
    event_id: int
    slug: str
    category_id: int
    venue_id: int
    password: str
    login: str = LOGIN

    @property
    def week(self) -> tuple[str, str]:
        first = datetime.now(UTC).date() + timedelta(days=14)
        return first.isoformat(), (first + timedelta(days=7)).isoformat()

    @property
    def by_slug(self) -> str:
        return f"/events/by-slug/{quote(self.slug)}"


def find_cluster(directory: Path, stack: ExitStack, settings: Mapping[str, str] = SETTINGS) -> postgres.Server:
    data_directory = directory.absolute() / "postgres"
    cluster = postgres.find_running(data_directory)
    if cluster is None:
        cluster = postgres.start(data_directory, settings=settings)
        stack.callback(cluster.stop)
    return cluster


def make_site(cluster: postgres.Server, events: int, *, like_reference: bool = False) -> SeededSite:
    kind = "reference" if like_reference else "site"
    name = f"{kind}_{events}_{datetime.now(UTC):%Y%m%d}"
    url = find_database(cluster.url, name)
    return fill_site(url, events, *(("--upcoming", str(events), *REFERENCE_OPTIONS) if like_reference else ()))


def find_database(cluster_url: str, name: str) -> str:
    """Return the URL of a migrated database, which is created unless an earlier run has done so."""
    url = urlsplit(cluster_url)._replace(path=f"/{name}").geturl()
    with psycopg.connect(cluster_url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url)
    return url


def make_database(cluster_url: str, name: str) -> str:
    """Create a site without records in a new database, in place of that of an earlier run; return its URL."""
    with psycopg.connect(cluster_url, autocommit=True) as connection:
        identifier = sql.Identifier(name)
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
    url = urlsplit(cluster_url)._replace(path=f"/{name}").geturl()
    migrate(url)
    return url


def fill_site(url: str, events: int, *more: str) -> SeededSite:
    """Return the site of a migrated database; add events if it has none."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM events LIMIT 1").fetchone():
            run_command(url, "seed", "--events", str(events), *more)
            run_command(url, "user", "add", LOGIN, "--role", "editor")
        return _read_site(connection, url, events)


def _read_site(connection: psycopg.Connection[tuple[int | str, ...]], url: str, events: int) -> SeededSite:
    """Choose an event with a venue and terms, and the category and venue with the most upcoming events."""
    event = connection.execute(
        """SELECT e.id, e.slug FROM events e
            WHERE e.listed AND e.start_utc > now() + interval '20 days'
                AND EXISTS (SELECT FROM event_venues l WHERE l.event_id = e.id)
                AND EXISTS (SELECT FROM event_organizers l WHERE l.event_id = e.id)
                AND EXISTS (SELECT FROM event_tags l WHERE l.event_id = e.id)
            ORDER BY md5(e.id::text) LIMIT 1"""
    ).fetchone()
    category = connection.execute(_MOST_USED.format("category_id", "event_categories")).fetchone()
    venue = connection.execute(_MOST_USED.format("venue_id", "event_venues")).fetchone()
    if event is None or category is None or venue is None:
        raise AssertionError("a site without events")
    number = datetime.now(UTC).timestamp()
    password = run_command(url, "app-password", "create", LOGIN, f"bench {number}").strip()
    return SeededSite(url, events, int(event[0]), str(event[1]), int(category[0]), int(venue[0]), password)


_MOST_USED = "SELECT {0} FROM {1} WHERE listed AND start_utc > now() GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"


def delete_last_change(site: SeededSite) -> None:
    """Delete the last entry of the change log, so that a recorded write can be replayed without a conflict."""
    with psycopg.connect(site.url) as connection:
        connection.execute("DELETE FROM changes WHERE revision = (SELECT max(revision) FROM changes)")


def start_server(
    site: SeededSite,
    log: Path,
    stack: ExitStack,
    *,
    megabytes: int,
    port: int | None = None,
    base_url: str = "",
    purge_url: str = "",
    python: Sequence[str] = (sys.executable,),
) -> Server:
    """Start a server with one process; 0 megabytes disable its cache. Without a base URL, links follow the host.

    Varnish caches responses only with a purge URL, without which they have no cache tags.
    """
    settings = {
        "KALENDS_CACHE_MB": str(megabytes),
        "KALENDS_BASE_URL": base_url,
        "KALENDS_PURGE_URLS": purge_url,
        "KALENDS_SHARED_CACHE_SECONDS": "3600",
        "KALENDS_POOL_TIMEOUT": "30",  # Slow responses must be measured instead of being replaced by 503.
    }
    kalends = (*python, "-m", "kalends")
    return stack.enter_context(Server.start(site.url, log=log, port=port, environment=settings, kalends=kalends))


def start_minimal_server(
    site: SeededSite, exchanges: Mapping[str, Exchange], directory: Path, stack: ExitStack, python: Sequence[str]
) -> Server:
    """Start a server that only repeats recorded exchanges (`bench/minimal_server.py`)."""
    recording, log, port = directory.absolute() / "exchanges", directory / "minimal.log", find_free_port()
    write_recording(recording, exchanges)
    command = (*python, "-m", "granian", "--interface", "asgi", "--http", "1", "--no-ws", "--factory")
    command += ("--host", "127.0.0.1", "--port", str(port), "bench.minimal_server:create_application")
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603  Our own command.
            command,
            env={**os.environ, RECORDING: str(recording), DATABASE: site.url},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = stack.enter_context(Server(process, f"http://127.0.0.1:{port}", log))
    deadline = time.monotonic() + 30
    while True:
        try:
            httpx.get(f"{server.base_url}{BARE}{next(iter(exchanges))}").raise_for_status()
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise AssertionError(server.read_log()) from None
            time.sleep(0.1)
        else:
            return server


def run_command(url: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    command = [sys.executable, "-m", "kalends", *arguments]
    values = make_environment(url, environment)
    return subprocess.run(command, env=values, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603
