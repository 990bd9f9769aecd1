"""A page far into a list is refused, since all that is before it would be read; a cursor goes on from there."""

from collections.abc import AsyncIterator

import httpx
import psycopg
import pytest

from tests.robustness.kit import NS, add_editor, application

# More than can be skipped, each a minute after the one before.
FILL = """
    INSERT INTO events (site_id, id, uid, revision, author_id, status, published_at, modified_utc, title, slug,
        timezone, start_local, end_local, start_utc, end_utc)
    SELECT 1, n, gen_random_uuid(), n, 1, 'publish', now(), now(), 'e' || n, 'e' || n, 'UTC', t, t,
        t AT TIME ZONE 'UTC', t AT TIME ZONE 'UTC'
    FROM generate_series(1, 10100) n,
        LATERAL (SELECT date_trunc('day', now()::timestamp) + n * interval '1 minute') s (t);
    INSERT INTO tags (site_id, id, revision, name, name_folded, slug)
    SELECT 1, n, 20000 + n, 't' || n, 't' || n, 't' || n FROM generate_series(1, 10100) n;
    ANALYZE;
"""


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    add_editor(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute(FILL)
    async with (
        application(database_url) as transport,
        httpx.AsyncClient(transport=transport, base_url=f"http://x{NS}", trust_env=False, timeout=30) as client,
    ):
        yield client


async def test_a_page_too_far_into_a_list_is_refused(client: httpx.AsyncClient) -> None:
    last = await client.get("/events", params={"per_page": 50, "page": 201})
    assert (last.status_code, last.json()["events"][0]["id"]) == (200, 10001)
    for order in ("start_date", "title", "modified"):
        deeper = await client.get("/events", params={"per_page": 50, "page": 202, "orderby": order})
        problem = deeper.json()["data"]["params"]["page"]
        assert (deeper.status_code, deeper.json()["code"]) == (400, "rest_invalid_param")
        assert "10000" in problem, problem
        assert "`cursor`" in problem, problem
    beyond = await client.get("/events", params={"per_page": 50, "page": 203})
    assert (beyond.status_code, beyond.json()["code"]) == (404, "event-archive-page-not-found")
    onward = await client.get("/events", params={"per_page": 50, "cursor": last.json()["next_cursor"]})
    assert [event["id"] for event in onward.json()["events"]] == list(range(10051, 10101))


async def test_a_list_without_cursors_is_bounded_too(client: httpx.AsyncClient) -> None:
    everything = {"per_page": 50, "hide_empty": "false"}
    assert len((await client.get("/tags", params={**everything, "page": 201})).json()["tags"]) == 50
    deeper = await client.get("/tags", params={**everything, "page": 202})
    assert (deeper.status_code, "narrow" in deeper.json()["data"]["params"]["page"]) == (400, True)
    beyond = await client.get("/tags", params={**everything, "page": 203})
    assert (beyond.status_code, beyond.json()["tags"]) == (200, [])


async def test_a_page_of_html_is_bounded_too(client: httpx.AsyncClient) -> None:
    answer = await client.get("http://x/events/list/", params={"per_page": 24, "page": 419})
    assert answer.status_code == 400
