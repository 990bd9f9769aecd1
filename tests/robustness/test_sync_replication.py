"""A primary whose standby does not answer acknowledges nothing, neither a write nor its repetition.

PostgreSQL lets a commit succeed with a mere warning when its wait for a standby is cancelled, and a repetition
that only reads would then call a write stored that one more crash takes away.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any, LiteralString

import httpx
import psycopg
import pytest

from kalends.store.database import Database
from kalends.store.migrations import migrate
from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.site_fixtures import API_PATH, DATES, Tenant, add_tenant, run_application, wait_until
from tools.postgres import Server, throwaway

STATEMENT_TIMEOUT = 1.0
# The response to a client whose write may or may not survive.
UNACKNOWLEDGED_ERRORS = {(503, "rest_outcome_unknown"), (503, "rest_unavailable"), (409, "rest_request_in_progress")}


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    """Commits wait for whoever is named, but not for the disk."""
    with throwaway({"fsync": "off", "full_page_writes": "off"}) as cluster:
        migrate(cluster.url)
        yield cluster


@pytest.fixture
def tenant(primary: Server) -> Tenant:
    return add_tenant(primary.url)


@pytest.fixture
async def client(primary: Server, tenant: Tenant) -> AsyncIterator[httpx.AsyncClient]:
    """An editor, of whose site the first revision is a venue."""
    async with run_application(primary.url, statement_timeout=STATEMENT_TIMEOUT) as transport:
        base_url = f"http://{tenant.host}{API_PATH}"
        async with httpx.AsyncClient(
            transport=transport, base_url=base_url, auth=tenant.login, trust_env=False
        ) as client:
            # On a busy machine, opening the first connection alone can exceed the short timeout.
            await _retry_until_stored(client, "/venues", {"venue": "Before"}, {"Idempotency-Key": "before"})
            # The use of the password is noted after the answer; it must not be what waits later.
            await wait_until(lambda: _is_use_recorded(primary, tenant))
            yield client
            set_required_standby(primary, "")


async def test_writes_are_not_acknowledged_without_standby(
    client: httpx.AsyncClient, primary: Server, tenant: Tenant
) -> None:
    body, key = {"title": "Once", "venue": {"venue": "Once"}, **DATES}, {"Idempotency-Key": "once"}
    require_absent_standby(primary)
    started = time.monotonic()
    first = await client.post("/events", json=body, headers=key)
    assert _error_code(first) == (503, "rest_outcome_unknown")
    assert "retry-after" in first.headers
    assert time.monotonic() - started < STATEMENT_TIMEOUT + 2
    for _ in range(3):
        again = await client.post("/events", json=body, headers=key)
        assert _error_code(again) in UNACKNOWLEDGED_ERRORS
        assert "retry-after" in again.headers
    set_required_standby(primary, "")
    stored = await _retry_until_stored(client, "/events", body, key)
    assert (stored.status_code, stored.headers.get("idempotent-replay")) == (201, "true")
    listed = await client.get("/events", params={"search": "Once"})
    assert [event["id"] for event in listed.json()["events"]] == [stored.json()["id"]]
    assert (await client.get("/venues")).json()["total"] == 2
    assert_consistent(primary.url, tenant.id)
    assert read_revision(primary.url, tenant.id) == 3


@pytest.mark.parametrize("ending", ["pg_cancel_backend", "pg_terminate_backend"])
async def test_cancelled_wait_is_not_an_acknowledgement(
    client: httpx.AsyncClient, primary: Server, tenant: Tenant, ending: LiteralString
) -> None:
    """The write is stored here then, and its repetition finds it: it must wait for the standby all the same."""
    body, key = {"venue": "Once"}, {"Idempotency-Key": "once"}
    require_absent_standby(primary)
    for attempt in range(3):
        response, _ = await asyncio.gather(
            client.post("/venues", json=body, headers=key), asyncio.to_thread(cancel_wait, primary, ending)
        )
        assert _error_code(response) == (503, "rest_outcome_unknown"), attempt
        assert read_revision(primary.url, tenant.id) == 2, "it is stored here"
    set_required_standby(primary, "")
    stored = await _retry_until_stored(client, "/venues", body, key)
    assert (stored.status_code, stored.headers.get("idempotent-replay")) == (201, "true")
    assert read_revision(primary.url, tenant.id) == 2


async def test_ignoring_warning_would_acknowledge(
    client: httpx.AsyncClient, primary: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: it can see the false acknowledgement."""

    async def commit(connection: Any, writing: bool) -> None:
        await connection.execute("COMMIT")

    monkeypatch.setattr(Database, "_commit", staticmethod(commit))
    require_absent_standby(primary)
    response, _ = await asyncio.gather(
        client.post("/venues", json={"venue": "Once"}), asyncio.to_thread(cancel_wait, primary, "pg_cancel_backend")
    )
    assert response.status_code == 201


async def test_repeated_no_op_update_is_not_acknowledged(client: httpx.AsyncClient, primary: Server) -> None:
    require_absent_standby(primary)
    for _ in range(3):
        assert _error_code(await client.put("/venues/1", json={"venue": "After"})) in UNACKNOWLEDGED_ERRORS
    set_required_standby(primary, "")
    assert (await _retry_until_stored(client, "/venues/1", {"venue": "After"}, {})).json()["venue"] == "After"


async def test_reads_work_without_standby(client: httpx.AsyncClient, primary: Server) -> None:
    require_absent_standby(primary)
    assert _error_code(await client.post("/venues", json={"venue": "Lost"})) in UNACKNOWLEDGED_ERRORS
    for path in ("/venues", "/venues/1", "/events", "/doc"):
        assert (await client.get(path)).status_code == 200


async def test_waiting_writers_do_not_exhaust_connections(primary: Server) -> None:
    """Whoever gives up waiting for a standby does not leave the wait behind: it would go on without end."""
    tenants = [add_tenant(primary.url) for _ in range(3)]
    async with (
        run_application(primary.url, statement_timeout=0.2, pool_size=1) as transport,
        httpx.AsyncClient(transport=transport, trust_env=False) as client,
    ):
        require_absent_standby(primary)
        for tenant in tenants:
            path, body = f"http://{tenant.host}{API_PATH}/venues", {"venue": "Waiting"}
            assert _error_code(await client.post(path, json=body, auth=tenant.login)) in UNACKNOWLEDGED_ERRORS
        with psycopg.connect(primary.url) as connection:
            query = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            connections = connection.execute(query).rowcount
        set_required_standby(primary, "")
    assert connections <= 1, "more connections than the pool may have"


def set_required_standby(cluster: Server, standby: LiteralString) -> None:
    """From now on each commit waits for this standby, or for none."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'")
        connection.execute("SELECT pg_reload_conf()")
        for _ in range(100):
            if connection.execute("SHOW synchronous_standby_names").fetchone() == (standby,):
                return
            time.sleep(0.05)
    raise AssertionError("the setting did not take effect")


def require_absent_standby(cluster: Server) -> None:
    """From now on no commit ends by itself.

    Commits begin to wait when the checkpointer has read the setting, which can be after the reload.
    """
    set_required_standby(cluster, "absent")
    with psycopg.connect(cluster.url, autocommit=True) as observer:
        for _ in range(100):
            if _does_commit_wait(cluster, observer):
                return
            time.sleep(0.05)
    raise AssertionError("commits do not wait")


def _does_commit_wait(cluster: Server, observer: psycopg.Connection[Any]) -> bool:
    with closing(psycopg.connect(cluster.url, autocommit=True)) as connection:
        connection.pgconn.send_query(b"SELECT pg_logical_emit_message(true, 'probe', '')")
        while connection.pgconn.is_busy():
            query = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
            if observer.execute(query, [connection.info.backend_pid]).fetchone():
                return True
            connection.pgconn.consume_input()
    return False


def cancel_wait(cluster: Server, ending: LiteralString) -> None:
    """End the first commit that waits for a standby."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        for _ in range(200):
            query = f"SELECT {ending}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            if connection.execute(query).fetchone():
                return
            time.sleep(0.01)
    raise AssertionError("nothing waited for a standby")


def cancel_waits(cluster: Server, seconds: float) -> None:
    """Cancel every wait for a standby during this many seconds."""
    deadline = time.monotonic() + seconds
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            time.sleep(0.05)


async def _retry_until_stored(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    """Repeat a write as the documentation tells clients to."""
    for _ in range(20):
        response = await client.post(path, json=body, headers=headers)
        if response.is_success:
            return response
        assert _error_code(response) in UNACKNOWLEDGED_ERRORS
        await asyncio.sleep(0.2)
    raise AssertionError("never acknowledged")


def _is_use_recorded(cluster: Server, tenant: Tenant) -> bool:
    with psycopg.connect(cluster.url) as connection:
        query = "SELECT FROM application_password_uses WHERE site_id = %s"
        return connection.execute(query, [tenant.id]).rowcount == 1


def _error_code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")
