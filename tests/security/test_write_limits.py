"""A write cannot keep others of its site waiting: it has a deadline, a bound on new records, and can be cancelled."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import psycopg
import pytest

from kalends.store.database import Database, Options
from kalends.store.sql import Sql
from tests.robustness.consistency import read_revision
from tests.robustness.site_fixtures import API_PATH, DATES, Login, add_users, run_application

BATCH_URL = "http://x/api/kalends/v1/batch"
SLOW_TRIGGER = """
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE INSERT ON organizers FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.fixture
def users(database_url: str) -> dict[str, Login]:
    return add_users(database_url, {"con": "contributor", "ed": "editor"})


@pytest.fixture
async def client(database_url: str, users: dict[str, Login]) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        run_application(database_url, transaction_timeout=1) as transport,
        httpx.AsyncClient(
            transport=transport, base_url=f"http://x{API_PATH}", auth=users["ed"], trust_env=False, timeout=30
        ) as client,
    ):
        yield client


def build_operations(events: int, venues: int) -> list[dict[str, object]]:
    return [
        {
            "method": "POST",
            "path": "/events",
            "body": {"title": f"e{i}", **DATES, "venue": [{"venue": f"v{i}-{j}"} for j in range(venues)]},
        }
        for i in range(events)
    ]


@pytest.mark.parametrize("atomic", [True, False])
async def test_batch_is_limited_to_1000_new_records(database_url: str, users: dict[str, Login], atomic: bool) -> None:
    async with (
        run_application(database_url, transaction_timeout=60) as transport,
        httpx.AsyncClient(transport=transport, auth=users["con"], trust_env=False, timeout=90) as client,
    ):
        response = await client.post(BATCH_URL, json={"operations": build_operations(500, 50), "atomic": atomic})
        error = response.json()["data"]["error"]
        assert (response.status_code, response.json()["code"]) == (400, "rest_batch_failed")
        assert (error["code"], error["data"]["limit"], "1000" in error["message"]) == (
            "rest_too_many_records",
            1000,
            True,
        )
        assert read_revision(database_url, 1) == 0
        within = await client.post(BATCH_URL, json={"operations": build_operations(2, 3)})
        assert within.status_code == 200
        assert read_revision(database_url, 1) == 8


async def test_write_beyond_timeout_is_rolled_back(database_url: str, client: httpx.AsyncClient) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(SLOW_TRIGGER)
    many = [{"method": "POST", "path": "/organizers", "body": {"organizer": f"o{n}"}} for n in range(50)]
    started = time.monotonic()
    slow = asyncio.create_task(client.post(BATCH_URL, json={"operations": many}))
    await asyncio.sleep(0.3)
    other = await client.post("/venues", json={"venue": "In between"})
    waited = time.monotonic() - started
    rejection = await slow
    assert time.monotonic() - started < 2
    assert (rejection.status_code, rejection.json()["code"], rejection.headers["retry-after"]) == (
        503,
        "rest_unavailable",
        "1",
    )
    assert "longer than 1 s" in rejection.json()["message"]
    assert (other.status_code, waited < 2) == (201, True)
    assert read_revision(database_url, 1) == 1, "only the other write is stored"
    assert (await client.post("/organizers", json={"organizer": "Alone"})).status_code == 201


@pytest.mark.parametrize("busy", [True, False])
async def test_cancelled_write_releases_lock_immediately(database_url: str, busy: bool) -> None:
    database = await Database.open(Options(database_url))
    locked = asyncio.Event()

    async def write() -> None:
        async with database.transaction("x", datetime.now(UTC), writing=True) as tx:
            await tx.lock_site(None)
            tx.changes.record("venues", 1, "create")
            locked.set()
            if busy:
                await tx.execute(Sql("SELECT pg_sleep(9)"))
            await asyncio.sleep(9)

    try:
        task = asyncio.create_task(write())
        await locked.wait()
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        started = time.monotonic()
        async with database.transaction("x", datetime.now(UTC), writing=True) as tx:
            await tx.lock_site(None)
        assert time.monotonic() - started < 2
        assert read_revision(database_url, 1) == 0
    finally:
        await database.close()


async def test_batch_parses_parameters_before_locking(
    database_url: str, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report a rejected operation in its place."""
    from kalends.api import batch

    free: list[bool] = []
    read_params = batch.read_params

    def look(*arguments: object, **more: object) -> object:
        with psycopg.connect(database_url) as connection:
            rows = connection.execute("SELECT id FROM sites FOR UPDATE SKIP LOCKED").fetchall()
        free.append(bool(rows))
        return read_params(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(batch, "read_params", look)
    writes = [
        {"method": "POST", "path": "/venues", "body": {"venue": "Good"}},
        {"method": "POST", "path": "/venues", "body": {"venue": ["bad"]}},
        {"method": "POST", "path": "/nowhere", "body": {}},
        {"method": "PUT", "path": "/venues", "body": {}},
    ]
    response = await client.post(BATCH_URL, json={"operations": writes, "atomic": False})
    assert [result["status"] for result in response.json()["results"]] == [201, 400, 404, 405]
    assert free == [True, True]


async def test_public_reads_have_shorter_timeout(database_url: str, users: dict[str, Login]) -> None:
    async with (
        run_application(database_url, public_statement_timeout=0.5, statement_timeout=2) as transport,
        httpx.AsyncClient(transport=transport, base_url=f"http://x{API_PATH}", trust_env=False, timeout=30) as client,
    ):
        with psycopg.connect(database_url) as holder:
            holder.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            for address, login, minimum, maximum in (
                ("/events", None, 0.5, 1.5),
                ("http://x/events/list/", None, 0.5, 1.5),
                ("/events", users["ed"], 2.0, 3.5),
            ):
                started = time.monotonic()
                response = await client.get(address, auth=login)
                assert response.status_code == 503, address
                assert minimum <= time.monotonic() - started < maximum, address
