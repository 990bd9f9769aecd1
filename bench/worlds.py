"""Two sites of different size, each in a database of its own, with marked events that are as many in both.

Two databases and not two sites in one: statistics, index depth and plans of the small one are then those
of a small installation. In one set of tables both would have the large one's.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.cpu import APPLICATION_NAME
from kalends.store.migrations import migrate

MARKED_EVENTS = 200
# Nothing that is made up is near: a circle around it has only what is marked.
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


def make_site(postgres_url: str, events: int, upcoming: int) -> SizedSite:
    """The world of this size, made unless it is there from an earlier run of the same day."""
    name = f"growth_{events}"
    url = urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        if not connection.execute("SELECT true FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url)
    with psycopg.connect(url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        connection.execute("UPDATE sites SET timezone = 'Europe/Berlin'")
        if not connection.execute("SELECT true FROM events LIMIT 1").fetchone():
            _seed(url, events, upcoming)
        venue_id, category_id = _mark(connection)
        rows = connection.execute(
            """SELECT id, slug FROM events WHERE listed AND start_utc >= now() + interval '1 day'
                ORDER BY md5(id::text) LIMIT 600"""
        ).fetchall()
    return SizedSite(name, events, url, venue_id, category_id, [row[0] for row in rows], [row[1] for row in rows])


def _seed(url: str, events: int, upcoming: int) -> None:
    command = [sys.executable, "-m", "kalends", "seed", "--events", str(events), "--upcoming", str(upcoming)]
    environment = {**os.environ, "KALENDS_DATABASE_URL": url}
    subprocess.run(command, env=environment, check=True)  # noqa: S603  Our own command.


def _mark(connection: psycopg.Connection[tuple[int, ...]]) -> tuple[int, int]:
    """One category, one venue and two words, each with 200 events to come and 200 in the past."""
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
    # Also empties the list of pending entries of the search index, which every search would read.
    for table in ("events", "event_venues", "event_categories", "venues", "categories", "event_days", "sites"):
        connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
    if row is None:
        raise AssertionError("a database without a site")
    return row[0], row[1]


# Evenly over all that is to come; anywhere in the past.
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
