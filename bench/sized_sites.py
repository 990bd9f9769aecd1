"""Two sites of different size in separate databases, with the same number of marked events.

In one database both sites would share the statistics, index depth and plans of the large one. In separate databases
those of the small site are those of a small installation.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.cpu_time import APPLICATION_NAME
from kalends.demo.demo_records import AVERAGE_DATES
from kalends.store.migrations import migrate

MARKED_EVENTS = 200
# Far from all demo venues, so that a circle around this point contains marked events only.
LATITUDE, LONGITUDE = -54.4208, 3.3464
RARE_WORDS = ("zyxomma", "quaggaful")


@dataclass(frozen=True)
class SizedSite:
    name: str
    events: int
    url: str
    venue_id: int
    category_id: int
    event_ids: list[int]
    slugs: list[str]
    series_ids: list[int]


def make_site(postgres_url: str, events: int, upcoming: int, *, has_series: bool = False) -> SizedSite:
    """Return the site of this size; create it unless an earlier run of the same day has done so.

    `has_series`: half of the events are dates of series.
    """
    name = f"growth_{events}{'_series' if has_series else ''}"
    url = urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        if not connection.execute("SELECT true FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url)
    with psycopg.connect(url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        connection.execute("UPDATE sites SET timezone = 'Europe/Berlin'")
        if not connection.execute("SELECT true FROM events LIMIT 1").fetchone():
            _seed(url, events, upcoming, events // 2 // AVERAGE_DATES if has_series else 0)
        venue_id, category_id = _mark(connection)
        rows = connection.execute(
            """SELECT id, slug FROM events WHERE listed AND start_utc >= now() + interval '1 day'
                ORDER BY md5(id::text) LIMIT 600"""
        ).fetchall()
        series = connection.execute(
            "SELECT id FROM series WHERE status = 'publish' ORDER BY md5(id::text) LIMIT 100"
        ).fetchall()
    ids, slugs = [row[0] for row in rows], [row[1] for row in rows]
    return SizedSite(name, events, url, venue_id, category_id, ids, slugs, [row[0] for row in series])


def _seed(url: str, events: int, upcoming: int, series: int) -> None:
    single = str(events - series * AVERAGE_DATES)
    command = [sys.executable, "-m", "kalends", "seed", "--events", single, "--upcoming", str(upcoming)]
    command += ["--series", str(series)] if series else []
    environment = {**os.environ, "KALENDS_DATABASE_URL": url}
    subprocess.run(command, env=environment, check=True)  # noqa: S603  Our own command.


def _mark(connection: psycopg.Connection[tuple[int, ...]]) -> tuple[int, int]:
    """Mark events: one category, one venue and two words, each with 200 upcoming and 200 past events."""
    marked = connection.execute(
        "SELECT v.id, c.id FROM venues v, categories c WHERE v.slug = 'growth-marker' AND c.slug = 'growth-marker'"
    ).fetchone()
    if marked:
        return marked[0], marked[1]
    with connection.transaction():
        connection.execute(_CHOOSE, [MARKED_EVENTS, MARKED_EVENTS])
        connection.execute(_MARK_TEXTS, [" ".join(RARE_WORDS)] * 2)
        connection.execute(_ADD_VENUE, [LATITUDE, LONGITUDE])
        connection.execute(_ADD_CATEGORY)
        connection.execute(_LINK_VENUE)
        connection.execute(_LINK_CATEGORY)
        row = connection.execute("SELECT last_post_id, last_term_id FROM sites").fetchone()
    # Also empties the pending list of the search index, which every search would scan.
    for table in ("events", "event_venues", "event_categories", "venues", "categories", "event_days", "sites"):
        connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
    if row is None:
        raise AssertionError("a database without a site")
    return row[0], row[1]


# Evenly spread over the upcoming events, anywhere in the past.
_CHOOSE = """
    CREATE TEMP TABLE marked ON COMMIT DROP AS
    (SELECT DISTINCT ON (part) id, start_utc FROM (
        SELECT id, start_utc, ntile(%s) OVER (ORDER BY start_utc, id) AS part FROM events
        WHERE listed AND start_utc >= now() + interval '2 days' AND end_utc < now() + interval '700 days') e
     ORDER BY part, id)
    UNION ALL
    (SELECT id, start_utc FROM events WHERE listed AND end_utc < now() - interval '2 days'
     ORDER BY md5(id::text) LIMIT %s)
"""
_MARK_TEXTS = """
    UPDATE events e SET description = e.description || ' ' || %s, search_text = e.search_text || ' ' || %s
    FROM marked m WHERE e.id = m.id
"""
_ADD_VENUE = """
    WITH raised AS (
        UPDATE sites SET last_post_id = last_post_id + 1, revision = revision + 1
        RETURNING id, last_post_id, revision)
    INSERT INTO venues (site_id, id, revision, author_id, status, slug, published_at, modified_utc, title,
        search_text, geo_lat, geo_lng)
    SELECT r.id, r.last_post_id, r.revision, (SELECT min(u.id) FROM users u), 'publish', 'growth-marker', now(),
        now(), 'Growth marker', 'growth marker', %s, %s
    FROM raised r
"""
_ADD_CATEGORY = """
    WITH raised AS (
        UPDATE sites SET last_term_id = last_term_id + 1, revision = revision + 1
        RETURNING id, last_term_id, revision)
    INSERT INTO categories (site_id, id, revision, name, name_folded, slug)
    SELECT r.id, r.last_term_id, r.revision, 'Growth marker', 'growth marker', 'growth-marker' FROM raised r
"""
_LINK_VENUE = """
    INSERT INTO event_venues (site_id, event_id, venue_id, position, start_utc, listed, published)
    SELECT s.id, m.id, s.last_post_id, 9, m.start_utc, true, true FROM sites s, marked m
"""
_LINK_CATEGORY = """
    INSERT INTO event_categories (site_id, event_id, category_id, position, start_utc, listed, published)
    SELECT s.id, m.id, s.last_term_id, 9, m.start_utc, true, true FROM sites s, marked m
"""
