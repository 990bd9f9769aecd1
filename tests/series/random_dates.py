"""Events written by SQL: dates of a few series in random order, close together, and events without a series."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.api.running_app import RunningApp

BEGIN = datetime(2027, 3, 1, tzinfo=UTC)
SERIES = range(9001, 9007)
LENGTHS = (0, 1, 2, 2, 5, 30, 200)
STATUSES = ("publish",) * 8 + ("draft", "private")

_INSERT = """
    INSERT INTO events (site_id, id, uid, revision, author_id, status, published_at, modified_utc, title, timezone,
        start_local, end_local, start_utc, end_utc, series_id, slot, hide_from_listings, featured, password_hash,
        search_text)
    SELECT s.id, n, gen_random_uuid(), 100000 + n, (SELECT min(id) FROM users), status, published, published, title,
        'UTC', start AT TIME ZONE 'UTC', finish AT TIME ZONE 'UTC', start, finish, series,
        CASE WHEN series IS NOT NULL THEN timestamp '2000-01-01' + make_interval(hours => n) END, hidden, featured,
        CASE WHEN locked THEN '\\x00'::bytea END, lower(title)
    FROM sites s, unnest($1::int[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::timestamptz[],
        $7::bigint[], $8::bool[], $9::bool[], $10::bool[])
        AS t (n, status, published, title, start, finish, series, hidden, featured, locked)
"""


PART = """{"uid": "00000000-0000-4000-8000-000000000000", "rule": "", "timezone": "UTC", "all_day": false,
    "start": "2000-01-01T00:00:00", "end": "2000-01-01T01:00:00"}"""


def add_series(app: RunningApp) -> None:
    app.sql(
        """INSERT INTO series (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc, parts,
                template, title)
            SELECT s.id, n, gen_random_uuid(), n, (SELECT min(id) FROM users), 'publish', 'series-' || n,
                now(), now(), jsonb_build_array($3::jsonb), '{}', 'Series'
            FROM sites s, generate_series($1::int, $2::int) n""",
        SERIES[0],
        SERIES[-1],
        PART,
    )


def add_events(app: RunningApp, random: Random, first_id: int, count: int) -> None:
    rows = [_make_row(random, first_id + n) for n in range(count)]
    app.sql(_INSERT, *[list(column) for column in zip(*rows, strict=True)])


def _make_row(random: Random, event_id: int) -> tuple[Any, ...]:
    start = BEGIN + timedelta(hours=random.randrange(0, 1500))
    series = random.choice((None, *SERIES, *SERIES, *SERIES))
    return (
        event_id,
        random.choice(STATUSES),
        BEGIN - timedelta(days=random.randrange(3)),
        f"Event {random.choice('abc')} {random.randrange(50)}",
        start,
        start + timedelta(hours=random.choice(LENGTHS)),
        series,
        random.random() < 0.05,
        random.random() < 0.3,
        random.random() < 0.1,
    )
