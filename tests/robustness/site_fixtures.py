"""What the robustness tests share: people, clients, an application in this process, small and large runs."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import httpx
import psycopg

from kalends.asgi import create_application
from kalends.core import credentials
from tests.servers import make_cell_settings, make_environment

API_PATH = "/api/calendar/events/v1"
TOO_MANY_REQUESTS = 429

# Half a year hence: inside the window of every list, whatever the day of the run.
_DAY = (datetime.now(UTC) + timedelta(days=180)).strftime("%Y-%m-%d")
DATES = {"start_date": f"{_DAY} 19:00:00", "end_date": f"{_DAY} 21:00:00"}

type Login = tuple[str, str]

EDITOR: Mapping[str, str] = {"ed": "editor"}


def add_users(database_url: str, roles: Mapping[str, str], *, site_id: int = 1) -> dict[str, Login]:
    """One account per name, with its role. Their passwords count as used just now: none is noted later."""
    users: dict[str, Login] = {}
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT secret, last_user_id FROM sites WHERE id = %s", [site_id]).fetchone()
        assert row is not None
        secret, last_id = row
        for user_id, (login, role) in enumerate(roles.items(), last_id + 1):
            password = credentials.new_application_password()
            connection.execute(
                "INSERT INTO users (site_id, id, login, role) VALUES (%s, %s, %s, %s)",
                [site_id, user_id, login, role],
            )
            connection.execute(
                "INSERT INTO application_passwords (site_id, user_id, name, hash, last_used_at) "
                "VALUES (%s, %s, 'test', %s, now())",
                [site_id, user_id, credentials.hash_application_password(secret, password)],
            )
            users[login] = (login, password)
        connection.execute("UPDATE sites SET last_user_id = %s WHERE id = %s", [last_id + len(roles), site_id])
    return users


def add_editor(database_url: str) -> Login:
    return add_users(database_url, EDITOR)["ed"]


@dataclass(frozen=True)
class Tenant:
    """A site among others, with its people."""

    id: int
    host: str
    users: dict[str, Login]

    @property
    def login(self) -> Login:
        return self.users["ed"]


def add_tenant(database_url: str, roles: Mapping[str, str] = EDITOR) -> Tenant:
    """One more site; as soon as there are two, every request names its host."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("INSERT INTO sites (id) SELECT max(id) + 1 FROM sites RETURNING id").fetchone()
        assert row is not None
        host = f"site-{row[0]}.example"
        connection.execute("INSERT INTO site_hosts (host, site_id) VALUES (%s, %s)", [host, row[0]])
        if make_cell_settings(database_url):
            connection.execute("INSERT INTO kalends_directory.sites (id, cell) SELECT %s, name FROM cell", [row[0]])
            connection.execute("INSERT INTO kalends_directory.hosts VALUES (%s, %s)", [host, row[0]])
    return Tenant(row[0], host, add_users(database_url, roles, site_id=row[0]))


class PatientAuth(httpx.BasicAuth):
    """Repeat a write that was refused because earlier ones of its user still wait, as clients should."""

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        for authorized in self.auth_flow(request):
            response = yield authorized
            # A minute altogether. httpx counts repeats as redirects, and allows 20.
            for attempt in range(18):
                if response.status_code != TOO_MANY_REQUESTS:
                    break
                await asyncio.sleep(0.05 * 1.4**attempt)
                response = yield authorized


def create_client(
    base_url: str, login: Login | None = None, *, host: str = "", timeout: float = 30
) -> httpx.AsyncClient:
    """A client of a real server, which retries; paths are below the namespace."""
    auth = PatientAuth(*login) if login else None
    headers = {"Host": host} if host else {}
    # Reading the certificates of the world takes longer than many a test, and nothing here speaks TLS.
    return httpx.AsyncClient(
        base_url=base_url + API_PATH, auth=auth, headers=headers, timeout=timeout, trust_env=False, verify=False
    )


@asynccontextmanager
async def run_application(database_url: str, **settings: Any) -> AsyncIterator[httpx.ASGITransport]:
    """The application in this process, started and ended as a server does; the transport is for httpx."""
    given = {f"KALENDS_{name.upper()}": str(value) for name, value in settings.items()}
    environment = {**make_cell_settings(database_url), **given}
    with patch.dict(os.environ, make_environment(database_url, environment), clear=True):
        app = create_application()
    to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert await from_app.get() == {"type": "lifespan.startup.complete"}
    try:
        yield httpx.ASGITransport(app)
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await lifespan


async def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition holds, checking it every 50 ms."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds} s: {condition}"
        await asyncio.sleep(0.05)
