"""What all tests share: a real PostgreSQL, a fresh migrated database per test, real server processes."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.servers import Server
from tools.postgres import throwaway

pytest_plugins = ["tests.description.plugin"]  # Holds every answer against /doc.


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a PostgreSQL where databases may be created.

    Each worker of pytest-xdist starts one of its own: it takes under a second, and nothing is shared.
    """
    if given := os.environ.get("KALENDS_TEST_DATABASE_URL"):
        yield given
        return
    with throwaway() as server:
        yield server.url


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> Iterator[str]:
    """The name of a migrated database without connections, to be copied."""
    from kalends.store.migrations import migrate

    with temporary_database(postgres_url) as name:
        migrate(address(postgres_url, name))
        yield name


@pytest.fixture
def empty_database_url(postgres_url: str) -> Iterator[str]:
    """A fresh database that no migration has seen."""
    with temporary_database(postgres_url) as name:
        yield address(postgres_url, name)


@pytest.fixture
def database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """A fresh migrated database."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield address(postgres_url, name)


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts a real server: `start_server(database_url, workers=2, environment={"KALENDS_…": "…"})`.

    Whatever still runs at the end of the session is stopped then.
    """
    directory = tmp_path_factory.mktemp("servers")
    with ExitStack() as running:

        def start(database_url: str, **options) -> Server:
            log = directory / f"{secrets.token_hex(4)}.log"
            return running.enter_context(Server.start(database_url, log=log, **options))

        yield start


def address(postgres_url: str, database: str) -> str:
    """The same server, another database."""
    return urlsplit(postgres_url)._replace(path=f"/{database}").geturl()


@contextmanager
def temporary_database(postgres_url: str, *, template: str = "template0") -> Iterator[str]:
    # The worker's name tells whose database was left behind by a run that was killed.
    name = f"kalends_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{secrets.token_hex(4)}"
    names = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template}").format(**names))
    try:
        yield name
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**names))
