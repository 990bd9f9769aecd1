"""A primary with a standby, whose replay can be stopped, and callers of an application that reads from both."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import httpx
import psycopg
from psycopg import sql

from kalends.store.migrations import migrate
from tests.robustness.site_fixtures import API_PATH, DATES, Login, add_editor, run_application
from tests.robustness.test_failover import SETTINGS, start_standby
from tools import postgres

# Generous, because a busy machine delays everything. Polling ends earlier.
TIMEOUT = 120.0


@dataclass(frozen=True)
class Pair:
    primary: postgres.Server
    standby: postgres.Server
    login: Login

    @contextmanager
    def paused_replay(self) -> Iterator[None]:
        """Let the standby receive changes without showing them."""
        self.catch_up()
        run_on(self.standby, "SELECT pg_wal_replay_pause()")
        wait_for(lambda: run_on(self.standby, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            run_on(self.standby, "SELECT pg_wal_replay_resume()")

    def delay_replay(self, seconds: int) -> None:
        """Let the standby hold back each change for this time from now on."""
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER SYSTEM SET recovery_min_apply_delay = {}").format(f"{seconds}s"))
            connection.execute("SELECT pg_reload_conf()")
        wait_for(lambda: run_on(self.standby, "SHOW recovery_min_apply_delay") == f"{seconds}s")

    def catch_up(self) -> None:
        """Wait until the standby shows everything."""
        target = run_on(self.primary, "SELECT pg_current_wal_lsn()::text")
        query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        wait_for(lambda: bool(run_on(self.standby, query, target)))


def run_on(cluster: postgres.Server, statement: LiteralString, *values: object) -> Any:
    """Run a statement and return the first value of its result."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def wait_for(condition: Any, timeout: float = TIMEOUT) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not so after {timeout} s"
        time.sleep(0.05)


@contextmanager
def start_pair() -> Iterator[Pair]:
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        login = add_editor(primary.url)
        with start_standby(primary) as standby:
            yield Pair(primary, standby, login)


@dataclass
class Site:
    """An application with a replica, and its callers."""

    pair: Pair
    anonymous: httpx.AsyncClient
    editor: httpx.AsyncClient
    count: int = field(default=0)

    async def add(self, title: str) -> int:
        """Create an event and return the site revision of the write."""
        response = await self.editor.post(f"{API_PATH}/events", json={"title": title, "status": "publish", **DATES})
        assert response.status_code == 201, response.text
        return int(response.headers["x-kalends-revision"])

    async def sees(self, title: str, client: httpx.AsyncClient | None = None, **headers: str) -> bool:
        """Return whether a list contains an event. Each list has another URL, so that none comes from memory."""
        self.count += 1
        start = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=self.count)
        path = f"{API_PATH}/events?search={title}&start_date={start:%Y-%m-%d %H:%M:%S}"
        response = await (client or self.anonymous).get(
            path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        assert response.status_code == 200, response.text
        return bool(response.json()["events"])


@asynccontextmanager
async def run_site(pair: Pair, **settings: Any) -> AsyncIterator[Site]:
    """Run the application. The settings of the database pools suit a busy machine unless a test says otherwise."""
    defaults = {"replica_url": pair.standby.url, "replica_max_lag": 300, "pool_timeout": 10}
    options = {"database_url": pair.primary.url, **defaults, **settings}
    url = options.pop("database_url")
    async with (
        run_application(url, **options) as transport,
        httpx.AsyncClient(transport=transport, base_url="http://x", trust_env=False) as anonymous,
        httpx.AsyncClient(transport=transport, base_url="http://x", trust_env=False, auth=pair.login) as editor,
    ):
        yield Site(pair, anonymous, editor)
