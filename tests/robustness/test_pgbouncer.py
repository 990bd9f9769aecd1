"""Behind PgBouncer in transaction mode: every kind of request works, and nothing of one leaks into another."""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.robustness.consistency import assert_consistent
from tests.robustness.site_fixtures import (
    API_PATH,
    DATES,
    Login,
    PatientAuth,
    Tenant,
    add_tenant,
    run_application,
    wait_until,
)
from tests.servers import find_free_port
from tests.soak import scaled

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
BACKENDS = 4
CLIENTS = 16
ROUNDS = scaled(2, 40)  # of 13 requests each: 416 in every run


def _version() -> tuple[int, ...]:
    if PROGRAM is None:
        return (0,)
    output = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", output.splitlines()[0])[:2])


pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """The address of the database behind a PgBouncer with few connections."""
    with (
        tempfile.TemporaryDirectory(prefix="kalends-pgbouncer-") as directory,
        run_pgbouncer(database_url, Path(directory)) as url,
    ):
        yield url


async def test_concurrent_requests_work_and_stay_isolated(
    database_url: str, pooled_url: str, report: Callable[[object], None]
) -> None:
    tenants = [add_tenant(database_url) for _ in range(2)]
    async with connect_client(pooled_url, prepared=False) as client:
        seen = await request_everything(client, tenants, ROUNDS)
    report(f"{seen.total()} requests with {CLIENTS} clients over {BACKENDS} connections: {dict(seen)}")
    assert seen == {"as expected": CLIENTS * ROUNDS * 13}
    for tenant in tenants:
        assert_consistent(database_url, tenant.id)
    assert list_connection_states(pooled_url) == [("postgres", True)] * BACKENDS


@pytest.mark.skipif(_version() >= (1, 21), reason="this PgBouncer knows prepared statements")
async def test_prepared_statements_would_fail(database_url: str, pooled_url: str) -> None:
    """The control of the test above: it can see the failures that the setting prevents."""
    tenants = [add_tenant(database_url) for _ in range(2)]
    async with connect_client(pooled_url, prepared=True) as client:
        seen = await request_everything(client, tenants, rounds=1)
    assert seen["as expected"] < seen.total()


@asynccontextmanager
async def connect_client(pooled_url: str, *, prepared: bool) -> AsyncIterator[httpx.AsyncClient]:
    settings = {"pool_size": CLIENTS, "pool_timeout": 30, "prepared_statements": prepared}
    async with (
        run_application(pooled_url, **settings) as transport,
        httpx.AsyncClient(transport=transport, base_url="http://server", trust_env=False) as client,
    ):
        yield client


async def request_everything(client: httpx.AsyncClient, tenants: list[Tenant], rounds: int) -> Counter[str]:
    """Clients of two sites, each asking for everything in turn. What differs from what is expected is named."""
    tasks = [
        request_in_sequence(client, tenants[number % 2], f"client{number}x", rounds) for number in range(CLIENTS)
    ]
    return sum(await asyncio.gather(*tasks), Counter[str]())


async def request_in_sequence(client: httpx.AsyncClient, tenant: Tenant, name: str, rounds: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()

    async def request(
        method: str, path: str, expected: int, *, by: Login | None = tenant.login, tag: str = "", body: Any = None
    ) -> httpx.Response:
        headers = {"Host": tenant.host} | ({"If-Match": tag} if tag else {})
        response = await client.request(
            method, path, auth=PatientAuth(*by) if by else None, headers=headers, json=body
        )
        foreign = ".example" in response.text.replace(tenant.host, "")
        is_right = response.status_code == expected and not foreign
        outcomes["as expected" if is_right else f"{method} {path} {response.status_code} {response.text[:200]}"] += 1
        return response

    for number in range(rounds):
        word = f"{name}{number}"
        linked = {"venue": {"venue": word}, "organizer": {"organizer": word}, "categories": [word], "tags": [word]}
        created = await request("POST", f"{API_PATH}/events", 201, body={"title": word, **DATES, **linked})
        event = f"{API_PATH}/events/{created.json().get('id', 0)}"
        await request("GET", event, 200, by=None)
        await request("GET", f"{API_PATH}/events/by-slug/{word}", 200)
        await request("PATCH", event, 200, body={"title": f"{word} again", "tags": []})
        await request("PATCH", event, 412, body={"title": "late"}, tag='"0-0"')
        await request("GET", f"{API_PATH}/events?search={word}&tags=nothing", 400)
        for kind in ("venues", "organizers", "categories", "tags"):
            await request(
                "GET", f"{API_PATH}/{kind}?search={word}", 200, by=None if kind == "venues" else tenant.login
            )
        await request("POST", f"{API_PATH}/venues", 400, body={"venue": ""})
        await request("DELETE", event, 200)
        await request("GET", "/readyz", 200)
    return outcomes


def list_connection_states(pooled_url: str) -> list[tuple[str, bool]]:
    """Of each connection that PgBouncer keeps: who it is, and whether it is in no site."""
    with ExitStack() as stack:
        rows = []
        for _ in range(BACKENDS):
            # Each transaction stays open, so that the next one gets another connection.
            connection = stack.enter_context(psycopg.connect(pooled_url, prepare_threshold=None))
            rows += connection.execute(
                "SELECT current_user::text, coalesce(current_setting('kalends.site_id', true), '') = ''"
            ).fetchall()
        return rows


@contextmanager
def run_pgbouncer(database_url: str, directory: Path) -> Iterator[str]:
    target, port = urlsplit(database_url), find_free_port()
    directory.chmod(0o755)  # It does not run as root, and has to read its settings.
    settings = directory / "pgbouncer.ini"
    settings.write_text(
        dedent(f"""\
            [databases]
            * = host=127.0.0.1 port={target.port} user=postgres
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = {BACKENDS}
            """)
    )
    process = subprocess.Popen(
        [str(PROGRAM), "-q", str(settings)], user="postgres" if os.geteuid() == 0 else None, stderr=subprocess.DEVNULL
    )
    try:
        url = target._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        asyncio.run(wait_until(lambda: _is_listening(url)))
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _is_listening(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
