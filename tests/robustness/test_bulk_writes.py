"""Counters and copies after statements that write many rows at once, as the role of the server."""

import asyncio
from random import Random
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from kalends.demo.seed import DemoOptions, seed
from tests.robustness.consistency import LINKS, assert_counters_match
from tests.soak import scaled

COLUMNS = {
    "event_venues": "venue_id",
    "event_organizers": "organizer_id",
    "event_categories": "category_id",
    "event_tags": "tag_id",
}
SOME_EVENTS: LiteralString = "site_id = 1 AND id IN (SELECT id FROM events WHERE random() < 0.3)"

UPDATES: tuple[LiteralString, ...] = (
    "title = title || '.'",
    "start_utc = start_utc + interval '90 minutes', end_utc = end_utc + interval '90 minutes'",
    "start_utc = start_utc + interval '3 days', end_utc = end_utc + interval '40 days'",
    "end_utc = end_utc + interval '1 day'",
    "status = (ARRAY['publish', 'draft', 'private', 'future', 'trash'])[1 + floor(5 * random())]",
    "hide_from_listings = NOT hide_from_listings",
    "hide_from_listings = false, status = 'publish'",
    "password_hash = CASE WHEN password_hash IS NULL THEN '\\x01'::bytea END",
)
STATEMENTS: tuple[LiteralString, ...] = (
    *(f"UPDATE events SET {assignment} WHERE {SOME_EVENTS}" for assignment in UPDATES),
    "DELETE FROM events WHERE site_id = 1 AND random() < 0.05",
    # Copies of events with other IDs and dates.
    """WITH clock AS (SELECT max(id) AS last_id, max(revision) AS revision FROM events)
        INSERT INTO events (site_id, id, uid, revision, author_id, status, published_at, modified_utc, title,
            timezone, start_local, end_local, start_utc, end_utc, hide_from_listings)
        SELECT site_id, c.last_id + row_number() OVER (), gen_random_uuid(), c.revision + row_number() OVER (),
            author_id, status, published_at, modified_utc, title,
            timezone, start_local, end_local, start_utc, end_utc, hide_from_listings
        FROM events, clock c WHERE random() < 0.2""",
)
LINK_STATEMENTS: tuple[LiteralString, ...] = (
    "DELETE FROM {table} WHERE site_id = 1 AND random() < 0.2",
    "UPDATE {table} SET position = position + 1 WHERE site_id = 1 AND random() < 0.3",
    # New links, and others that exist already.
    """INSERT INTO {table} (site_id, event_id, {column}, position, start_utc, listed, published)
        SELECT e.site_id, e.id, r.id, 9, e.start_utc, e.listed, e.status = 'publish'
        FROM events e CROSS JOIN (SELECT id FROM {records} ORDER BY random() LIMIT 2) r WHERE random() < 0.5
        ON CONFLICT (site_id, event_id, {column}) DO UPDATE SET position = excluded.position""",
    "DELETE FROM {records} WHERE site_id = 1 AND id = (SELECT {column} FROM {table} ORDER BY random() LIMIT 1)",
)


@pytest.fixture
def seeded_url(database_url: str) -> str:
    asyncio.run(seed(database_url, "", DemoOptions(events=200, venues=8, organizers=8), lambda *_: None))
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE categories SET parent = NULL")  # A category with others below it stays.
    return database_url


@pytest.mark.parametrize("number", range(scaled(3, 60)))
def test_counters_match_after_bulk_writes(number: int, seeded_url: str) -> None:
    rng = Random(number)
    with psycopg.connect(seeded_url) as connection:
        connection.execute("SET ROLE kalends_app")
        connection.execute("SELECT set_config('kalends.site_id', '1', false), setseed(%s)", [number / 100])
        for _ in range(40):
            connection.execute(_choose_statement(rng))
    assert_counters_match(seeded_url)


def _choose_statement(rng: Random) -> sql.Composed:
    table = rng.choice(LINKS)
    template = rng.choice(rng.choice((STATEMENTS, LINK_STATEMENTS)))
    names = {"table": table, "column": COLUMNS[table], "records": table.removeprefix("event_")}
    return sql.SQL(template).format(**{key: sql.Identifier(name) for key, name in names.items()})
