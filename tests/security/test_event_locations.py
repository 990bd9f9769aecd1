"""`geoloc` finds events by a column that follows links and venues, also where a venue has very many events."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest

from kalends.store.database import Database, Options
from kalends.worker import update_all_event_locations
from tests.robustness.consistency import assert_consistent
from tests.robustness.site_fixtures import API_PATH, DATES, add_editor, run_application

BUSY_EVENT_COUNT = 1200  # events of one venue: more than follow it at once
FILL_SQL = """
    INSERT INTO events (site_id, id, uid, revision, author_id, status, published_at, modified_utc, title, slug,
        timezone, start_local, end_local, start_utc, end_utc)
    SELECT 1, 1000 + n, gen_random_uuid(), 1000 + n, 1, 'publish', now(), now(), 'e' || n, 'e' || n, 'UTC', t, t,
        t AT TIME ZONE 'UTC', t AT TIME ZONE 'UTC'
    FROM generate_series(1, %(events)s) n,
        LATERAL (SELECT date_trunc('day', now()::timestamp) + n * interval '1 minute') s (t);
    INSERT INTO event_venues (site_id, event_id, venue_id, position, start_utc, listed, published)
    SELECT 1, id, %(venue)s, 1, start_utc, listed, true FROM events WHERE id > 1000
"""


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    login = add_editor(database_url)
    async with (
        run_application(database_url) as transport,
        httpx.AsyncClient(
            transport=transport, base_url=f"http://x{API_PATH}", auth=login, trust_env=False, timeout=30
        ) as client,
    ):
        yield client


async def test_placed_column_follows_links_and_venues(database_url: str, client: httpx.AsyncClient) -> None:
    async def count() -> int:
        assert_consistent(database_url)
        assert await _count_events(client, "false") == 1
        return await _count_events(client, "true")

    here: dict[str, Any] = {"venue": "Here", "geo_lat": 48.5, "geo_lng": 9.0}
    venue = (await client.post("/venues", json=here)).json()["id"]
    nowhere = (await client.post("/venues", json={"venue": "Nowhere"})).json()["id"]
    event = (await client.post("/events", json={"title": "E", **DATES, "venue": [venue]})).json()["id"]
    assert await count() == 1
    for path, body, expected in (
        (f"/venues/{venue}", {"status": "private"}, 0),
        (f"/venues/{venue}", {"status": "publish"}, 1),
        (f"/events/{event}", {"venue": [nowhere]}, 0),
        (f"/events/{event}", {"venue": [nowhere, venue]}, 1),
        (f"/venues/{venue}", {"geo_lat": None, "geo_lng": None}, 0),
        (f"/venues/{nowhere}", {"geo_lat": 1, "geo_lng": 1}, 1),
        (f"/events/{event}", {"venue": []}, 0),
    ):
        assert (await client.put(path, json=body)).status_code == 200, body
        assert await count() == expected, (path, body)


async def test_events_of_busy_venue_are_updated_in_batches(database_url: str, client: httpx.AsyncClient) -> None:
    venue = (await client.post("/venues", json={"venue": "Busy"})).json()["id"]
    with psycopg.connect(database_url) as connection, psycopg.ClientCursor(connection) as cursor:
        cursor.execute(FILL_SQL, {"events": BUSY_EVENT_COUNT, "venue": venue})
    database = await Database.open(Options(database_url))
    try:
        for body, placed in (
            ({"geo_lat": 48.5, "geo_lng": 9.0}, BUSY_EVENT_COUNT),
            ({"status": "private"}, 0),
            ({"status": "publish"}, BUSY_EVENT_COUNT),
        ):
            assert (await client.put(f"/venues/{venue}", json=body)).status_code == 200
            assert _count_unsettled_venues(database_url) == 1
            assert (await _count_events(client, "true"), await _count_events(client, "false")) == (
                placed,
                BUSY_EVENT_COUNT,
            )
            await update_all_event_locations(database)
            assert _count_unsettled_venues(database_url) == 0
            assert_placed(database_url, placed)
            assert (await _count_events(client, "true"), await _count_events(client, "false")) == (
                placed,
                BUSY_EVENT_COUNT,
            )
    finally:
        await database.close()


async def _count_events(client: httpx.AsyncClient, placed: str) -> int:
    total: int = (await client.get("/events", params={"geoloc": placed})).json()["total"]
    return total


def _count_unsettled_venues(database_url: str) -> int:
    return _fetch_number(database_url, "SELECT count(*) FROM venues WHERE geoloc_pending")


def assert_placed(database_url: str, placed: int) -> None:
    assert _fetch_number(database_url, "SELECT count(*) FROM events WHERE geoloc_known") == placed


def _fetch_number(database_url: str, query: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])
