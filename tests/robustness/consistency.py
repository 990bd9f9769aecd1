"""The books of a site, audited in the database itself: the log, the counters and the copies add up."""

from typing import Any, LiteralString

import psycopg
from psycopg import sql

from kalends.core.cost import FREE_COSTS

RECORDS: tuple[LiteralString, ...] = ("events", "venues", "organizers", "categories", "tags", "series")
LINKS: tuple[LiteralString, ...] = ("event_venues", "event_organizers", "event_categories", "event_tags")

# Each finds rows that must not be there. What a query is called says what is wrong when it finds some.
COUNTER_QUERIES: dict[str, LiteralString] = {
    "counts of terms differ from their published events": """
        SELECT 'category', t.id, t.count, count(e.id) FROM categories t
        LEFT JOIN event_categories l ON l.site_id = t.site_id AND l.category_id = t.id
        LEFT JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id AND e.status = 'publish'
        WHERE t.site_id = %(site)s GROUP BY t.id, t.count HAVING t.count <> count(e.id)
        UNION ALL
        SELECT 'tag', t.id, t.count, count(e.id) FROM tags t
        LEFT JOIN event_tags l ON l.site_id = t.site_id AND l.tag_id = t.id
        LEFT JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id AND e.status = 'publish'
        WHERE t.site_id = %(site)s GROUP BY t.id, t.count HAVING t.count <> count(e.id)""",
    "days differ from their events": """
        WITH counted AS (
            SELECT status, day, sum(starts) AS starts, sum(ends) AS ends FROM events e
            CROSS JOIN LATERAL (VALUES
                ((e.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
                ((e.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) v (day, starts, ends)
            WHERE e.site_id = %(site)s AND NOT e.hide_from_listings GROUP BY status, day),
        kept AS (
            SELECT status, day, starts, ends FROM event_days
            WHERE site_id = %(site)s AND (starts <> 0 OR ends <> 0))
        (TABLE counted EXCEPT TABLE kept) UNION ALL (TABLE kept EXCEPT TABLE counted)""",
    "days of links differ from their events": """
        WITH counted AS (
            SELECT l.kind::text, l.record_id, e.status, (e.start_utc AT TIME ZONE 'UTC')::date AS day,
                count(*) AS starts, count(e.password_hash) AS protected
            FROM (SELECT site_id, event_id, 'v' AS kind, venue_id AS record_id FROM event_venues
                UNION ALL SELECT site_id, event_id, 'o', organizer_id FROM event_organizers
                UNION ALL SELECT site_id, event_id, 'c', category_id FROM event_categories
                UNION ALL SELECT site_id, event_id, 't', tag_id FROM event_tags) l
            JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id
            WHERE e.site_id = %(site)s AND NOT e.hide_from_listings
            GROUP BY l.kind, l.record_id, e.status, day),
        kept AS (
            SELECT kind::text, record_id, status, day, starts::bigint, protected::bigint FROM link_days
            WHERE site_id = %(site)s AND (starts <> 0 OR protected <> 0))
        (TABLE counted EXCEPT TABLE kept) UNION ALL (TABLE kept EXCEPT TABLE counted)""",
    # As rebuild_series_steps() computes both tables, but for one site.
    "steps of series differ from their events": """
        WITH counted AS (
            SELECT id, series_id, start_utc, end_utc, published_at,
                coalesce(lag(start_utc) OVER (PARTITION BY series_id ORDER BY start_utc, id), '-infinity')
            FROM events
            WHERE site_id = %(site)s AND series_id IS NOT NULL AND listed AND password_hash IS NULL),
        kept AS (
            SELECT id, series_id, start_utc, end_utc, published_at, previous_start FROM series_steps
            WHERE site_id = %(site)s)
        (TABLE counted EXCEPT TABLE kept) UNION ALL (TABLE kept EXCEPT TABLE counted)""",
    "days of series differ from their events": """
        WITH counted AS (
            SELECT day, sum(starts) AS starts, sum(ends) AS ends FROM events e
            CROSS JOIN LATERAL (VALUES
                ((e.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
                ((e.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) v (day, starts, ends)
            WHERE e.site_id = %(site)s AND e.series_id IS NOT NULL AND e.listed AND e.password_hash IS NULL
            GROUP BY day),
        kept AS (
            SELECT day, starts, ends FROM series_days WHERE site_id = %(site)s AND (starts <> 0 OR ends <> 0))
        (TABLE counted EXCEPT TABLE kept) UNION ALL (TABLE kept EXCEPT TABLE counted)""",
    "events have a slot without a series, or the other way round": """
        SELECT id, series_id, slot, own_fields FROM events
        WHERE site_id = %(site)s AND ((series_id IS NULL) <> (slot IS NULL)
            OR (series_id IS NULL AND own_fields IS NOT NULL))""",
}
CONSISTENCY_QUERIES: dict[str, LiteralString] = {
    **COUNTER_QUERIES,
    "revisions are missing from the log or beyond the clock": """
        SELECT n FROM sites s CROSS JOIN generate_series(1, s.revision) n WHERE s.id = %(site)s
        EXCEPT SELECT revision FROM changes WHERE site_id = %(site)s
        UNION ALL
        SELECT c.revision FROM changes c JOIN sites s ON s.id = c.site_id
        WHERE c.site_id = %(site)s AND c.revision > s.revision""",
    "events are placed where their published venues are not, or the other way round": """
        SELECT e.id, e.geoloc_known FROM events e WHERE e.site_id = %(site)s AND e.geoloc_known <> EXISTS (
            SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL)
        AND NOT EXISTS (SELECT FROM venues v WHERE v.site_id = e.site_id AND v.geoloc_pending)""",
    "events are free although their cost is not, or the other way round": """
        SELECT id, cost, is_free FROM events WHERE site_id = %(site)s AND is_free <> (cost = ANY(%(free)s))""",
    "identifiers are held twice or lie beyond their counter": """
        WITH posts AS (
            SELECT id FROM events WHERE site_id = %(site)s UNION ALL
            SELECT id FROM venues WHERE site_id = %(site)s UNION ALL
            SELECT id FROM organizers WHERE site_id = %(site)s UNION ALL
            SELECT id FROM series WHERE site_id = %(site)s),
        terms AS (
            SELECT id FROM categories WHERE site_id = %(site)s UNION ALL
            SELECT id FROM tags WHERE site_id = %(site)s)
        SELECT 'post', p.id FROM posts p, sites s WHERE s.id = %(site)s
        GROUP BY p.id, s.last_post_id HAVING count(*) > 1 OR p.id > s.last_post_id
        UNION ALL
        SELECT 'term', t.id FROM terms t, sites s WHERE s.id = %(site)s
        GROUP BY t.id, s.last_term_id HAVING count(*) > 1 OR t.id > s.last_term_id""",
}


def assert_consistent(database_url: str, site_id: int = 1) -> None:
    """Fails with what does not add up."""
    with psycopg.connect(database_url) as connection:
        errors = _find_errors(connection, CONSISTENCY_QUERIES, site_id)
        for table in RECORDS:
            errors[f"{table}: a row's revision is not that of its last change"] = _unlogged_rows(
                connection, table, site_id
            )
    assert not any(errors.values()), errors


def assert_counters_match(database_url: str, site_id: int = 1) -> None:
    """Fails with counters and copies that differ from a full count."""
    with psycopg.connect(database_url) as connection:
        errors = _find_errors(connection, COUNTER_QUERIES, site_id)
    assert not any(errors.values()), errors


def _find_errors(
    connection: psycopg.Connection[Any], queries: dict[str, LiteralString], site_id: int
) -> dict[str, list[Any]]:
    errors = {name: _rows(connection, sql.SQL(text), site_id) for name, text in queries.items()}
    copies = {
        f"{table}: copies differ from their event": _stale_copies(connection, table, site_id) for table in LINKS
    }
    return {**errors, **copies}


def read_change_log(database_url: str, site_id: int = 1) -> list[tuple[int, str, int, str]]:
    """The change log: revision, kind, record, action."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT revision, kind, record_id, action FROM changes WHERE site_id = %s ORDER BY revision", [site_id]
        ).fetchall()


def read_revision(database_url: str, site_id: int = 1) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT revision FROM sites WHERE id = %s", [site_id]).fetchone()
    assert row is not None
    revision: int = row[0]
    return revision


def _rows(connection: psycopg.Connection[Any], query: sql.SQL | sql.Composed, site_id: int) -> list[Any]:
    return connection.execute(query, {"site": site_id, "free": sorted(FREE_COSTS)}).fetchall()


def _unlogged_rows(connection: psycopg.Connection[Any], table: LiteralString, site_id: int) -> list[Any]:
    """Rows without their last change, and changes that say "there" of rows that are gone."""
    query = sql.SQL(
        """
        WITH last AS (
            SELECT DISTINCT ON (record_id) record_id, revision, action FROM changes
            WHERE site_id = %(site)s AND kind = {kind} ORDER BY record_id, revision DESC)
        SELECT r.id, r.revision, l.revision, l.action
        FROM (SELECT * FROM {table} WHERE site_id = %(site)s) r FULL JOIN last l ON l.record_id = r.id
        WHERE (l.action IS DISTINCT FROM 'delete' AND r.revision IS DISTINCT FROM l.revision)
            OR (l.action = 'delete' AND r.id IS NOT NULL)"""
    )
    return _rows(connection, query.format(kind=sql.Literal(table), table=sql.Identifier(table)), site_id)


def _stale_copies(connection: psycopg.Connection[Any], table: LiteralString, site_id: int) -> list[Any]:
    query = sql.SQL(
        """
        SELECT l.* FROM {table} l JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id
        WHERE l.site_id = %(site)s
            AND (l.start_utc, l.listed, l.published) IS DISTINCT FROM (e.start_utc, e.listed, e.status = 'publish')"""
    )
    return _rows(connection, query.format(table=sql.Identifier(table)), site_id)
