"""A database that is busy, slow, silent, cut off or away: an answer in time, 503 and Retry-After, and recovery."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio

from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.faulty_proxy import FaultyProxy
from tests.robustness.process_control import launch_server
from tests.robustness.site_fixtures import DATES, Tenant, add_editor, add_tenant, create_client
from tests.servers import Server, find_free_port
from tests.soak import scaled

STATEMENT_TIMEOUT, POOL_TIMEOUT, POOL_SIZE = 1.0, 0.5, 2
ENVIRONMENT = {
    "KALENDS_POOL_SIZE": str(POOL_SIZE),
    "KALENDS_POOL_TIMEOUT": str(POOL_TIMEOUT),
    "KALENDS_STATEMENT_TIMEOUT": str(STATEMENT_TIMEOUT),
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def proxy(module_database_url: str) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(module_database_url) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    log = tmp_path_factory.mktemp("pool") / "server.log"
    started = await asyncio.to_thread(Server.start, proxy.url, log=log, environment=ENVIRONMENT)
    with started as server:
        yield server


@pytest.fixture
def tenant(module_database_url: str) -> Tenant:
    return add_tenant(module_database_url)


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Server, tenant: Tenant) -> AsyncIterator[httpx.AsyncClient]:
    async with create_client(server.base_url, tenant.login, host=tenant.host) as client:
        yield client


async def test_lock_delays_requests_for_bounded_time(
    client: httpx.AsyncClient, tenant: Tenant, module_database_url: str
) -> None:
    leeway = await _measure_leeway(client)
    with psycopg.connect(module_database_url) as holder:
        holder.execute("SELECT FROM sites WHERE id = %s FOR UPDATE", [tenant.id])
        writes = [_measure(client.post("/venues", json={"venue": "Waiting"})) for _ in range(10)]
        reads = [_measure(client.get("/venues", auth=None if n % 2 else tenant.login)) for n in range(10)]
        responses = await asyncio.gather(*writes, *reads)
    assert max(seconds for seconds, _ in responses) < POOL_TIMEOUT + STATEMENT_TIMEOUT + leeway
    assert {_error_summary(response) for _, response in responses[:10]} == {(503, "rest_unavailable", "1")}
    assert {_error_summary(response) for _, response in responses[10:]} <= {
        (200, "", ""),
        (503, "rest_unavailable", "1"),
    }
    await _assert_recovered(client)
    assert_consistent(module_database_url, tenant.id)
    assert read_revision(module_database_url, tenant.id) == 1


async def test_statement_timeout_is_enforced(client: httpx.AsyncClient, module_database_url: str) -> None:
    leeway = await _measure_leeway(client)
    with psycopg.connect(module_database_url) as holder:
        holder.execute("LOCK TABLE organizers IN ACCESS EXCLUSIVE MODE")
        seconds, response = await _measure(client.get("/organizers"))
        # Others are served meanwhile.
        await _wait_for_status(client, "/tags", 200, seconds=10)
    assert _error_summary(response) == (503, "rest_unavailable", "1")
    assert STATEMENT_TIMEOUT <= seconds < STATEMENT_TIMEOUT + leeway
    await _assert_recovered(client)


@pytest.mark.parametrize("caller", ["public", "editor", "writer"])
async def test_unresponsive_database_is_503_until_it_recovers(
    client: httpx.AsyncClient, proxy: FaultyProxy, tenant: Tenant, caller: str
) -> None:
    await _assert_recovered(client)
    leeway = await _measure_leeway(client)
    proxy.pause()
    try:
        for _ in range(2):  # First on connections that were open, then on new ones.
            if caller == "writer":
                pending = client.post("/venues", json={"venue": "Unheard"})
            else:
                pending = client.get("/venues", auth=None if caller == "public" else tenant.login)
            seconds, response = await _measure(pending)
            assert seconds < STATEMENT_TIMEOUT + leeway
            assert (response.status_code, "retry-after" in response.headers) == (503, True)
    finally:
        proxy.resume()
    await _assert_recovered(client)


@pytest.mark.parametrize("by", ["network", "database"])
async def test_broken_connections_cause_no_server_error(
    client: httpx.AsyncClient, proxy: FaultyProxy, tenant: Tenant, module_database_url: str, by: str
) -> None:
    seen: Counter[tuple[int, str, str]] = Counter()
    done = asyncio.Event()

    async def send_requests(number: int) -> None:
        while not done.is_set():
            body = {"title": f"{number}", "venue": {"venue": f"{number}"}, **DATES}
            seen[_error_summary(await client.post("/events", json=body))] += 1
            seen[_error_summary(await client.get("/events"))] += 1
            seen[_error_summary(await client.get("/events", auth=None))] += 1

    tasks = [asyncio.create_task(send_requests(number)) for number in range(4)]
    for _ in range(scaled(30, 600)):
        await asyncio.sleep(0.04)
        if by == "network":
            proxy.reset()
        else:
            await asyncio.to_thread(_terminate_backends, module_database_url)
    done.set()
    await asyncio.gather(*tasks)
    assert {status for status, _, _ in seen} <= {200, 201, 503}, seen
    assert all(retry for status, _, retry in seen if status == 503)
    assert any(status == 503 for status, _, _ in seen), "no connection was cut in use, so nothing was shown"
    await _assert_recovered(client)
    assert_consistent(module_database_url, tenant.id)


async def test_commit_with_lost_response_has_unknown_outcome(
    client: httpx.AsyncClient, proxy: FaultyProxy, tenant: Tenant, module_database_url: str
) -> None:
    key = {"Idempotency-Key": "once"}
    proxy.drop_response_to(b"COMMIT")
    first = await client.post("/venues", json={"venue": "Once"}, headers=key)
    assert _error_summary(first)[:2] == (503, "rest_outcome_unknown")
    assert read_revision(module_database_url, tenant.id) == 1, "it was stored after all"
    again = await client.post("/venues", json={"venue": "Once"}, headers=key)
    assert (again.status_code, again.headers.get("idempotent-replay")) == (201, "true")
    assert read_revision(module_database_url, tenant.id) == 1


async def test_errors_and_wrong_passwords_do_not_close_connections(
    client: httpx.AsyncClient, server: Server, tenant: Tenant, module_database_url: str
) -> None:
    await _assert_recovered(client)
    before = _list_backends(module_database_url)
    async with create_client(server.base_url, ("ed", "wrong"), host=tenant.host) as stranger:
        for _ in range(3):
            assert (await client.get("/venues/9999")).status_code == 404
            assert (await client.post("/venues", json={})).status_code == 400
            assert (await stranger.get("/venues")).status_code == 401
            assert (await stranger.post("/venues", json={"venue": "No"})).status_code == 401
    assert _list_backends(module_database_url) >= before, "connections were closed"


async def test_server_starts_without_database_and_recovers(database_url: str, tmp_path: Path) -> None:
    login = add_editor(database_url)
    proxy = FaultyProxy(database_url, port=find_free_port())
    with launch_server(proxy.url, tmp_path / "server.log", ENVIRONMENT) as server:
        async with create_client(server.base_url, login) as client:
            await _wait_for_status(client, f"{server.base_url}/healthz", 200, seconds=60)
            assert (await client.get(f"{server.base_url}/readyz")).status_code == 503
            assert _error_summary(await client.get("/events")) == (503, "rest_unavailable", "1")
            async with proxy:
                await _wait_for_status(client, f"{server.base_url}/readyz", 200, seconds=10)
                assert (await client.post("/venues", json={"venue": "At last"})).status_code == 201


async def _measure(pending: Coroutine[Any, Any, httpx.Response]) -> tuple[float, httpx.Response]:
    started = time.monotonic()
    response = await pending
    return time.monotonic() - started, response


async def _measure_leeway(client: httpx.AsyncClient) -> float:
    """Return the seconds that a request may take beyond the timeouts: 2, and more on a busy machine.

    Ten writes on two connections without a timeout of the pool take 5 s, which a quiet machine still detects.
    """
    responses = await asyncio.gather(*[_measure(client.get("/venues")) for _ in range(10)])
    return 2 + 3 * max(seconds for seconds, _ in responses)


def _error_summary(response: httpx.Response) -> tuple[int, str, str]:
    """Status, code and Retry-After."""
    code = response.json()["code"] if response.is_error else ""
    return response.status_code, code, response.headers.get("retry-after", "")


async def _assert_recovered(client: httpx.AsyncClient) -> None:
    await _wait_for_status(client, "/venues", 200, seconds=10)
    await _wait_for_status(client, "/venues", 201, seconds=10, body={"venue": f"Again {time.monotonic()}"})


async def _wait_for_status(
    client: httpx.AsyncClient, url: str, status: int, seconds: float, body: dict[str, str] | None = None
) -> None:
    """Send a request, a POST if it has a body, until it gets the status."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            seen = (await client.request("POST" if body else "GET", url, json=body)).status_code
        except httpx.TransportError:
            seen = 0  # It does not listen yet.
        if seen == status:
            return
        assert time.monotonic() < deadline, f"{url} answers {seen}, not {status}"
        await asyncio.sleep(0.05)


def _terminate_backends(database_url: str) -> None:
    """As an operator does, or a server that shuts down."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _list_backends(database_url: str) -> set[int]:
    """The processes of PostgreSQL that serve connections of the server."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in rows}
