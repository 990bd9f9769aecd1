"""All rows of a site in the database, to compare two sites. Counters without a count are left out."""

import psycopg
from psycopg import sql

from tests.robustness.two_sites import site_tables

# Tables of which an import takes nothing.
NOT_IMPORTED = (
    *("application_passwords", "application_password_uses", "passkeys", "sessions", "one_time_tokens"),
    *("login_failures", "idempotency", "daily_records", "orphan_files", "site_hosts"),
    *("log_consumers", "webhooks", "webhook_pending", "webhook_deliveries"),
)
# Columns that differ between the two sites.
DIFFERENT = {
    "sites": ["id", "secret", "base_url", "logo_url", "follow_by_email"],
    "users": ["password_hash"],
    "proposals": ["token_hashes"],
}
# Hashes of passwords, and texts that contain them, are replaced by a marker.
HASHES = {"events": ["password_hash"], "series": ["template", "content_changes"], "import_items": ["stored_values"]}
EMPTY_COUNTERS = {
    "event_days": "starts = 0 AND ends = 0",
    "link_days": "starts = 0",
    "series_days": "starts = 0 AND ends = 0",
}


def read_rows(url: str, site_id: int) -> dict[str, list[str]]:
    """Return the rows of each table as JSON, without the ID of the site and the hashes of passwords."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return {
            table: [
                row[0]
                for row in connection.execute(
                    sql.SQL(
                        "SELECT (to_jsonb(t) - 'site_id' - {left_out}::text[])::text FROM {table} t "
                        "WHERE {key} = %s AND NOT ({empty}) ORDER BY 1"
                    ).format(
                        left_out=sql.Literal([*DIFFERENT.get(table, []), *HASHES.get(table, [])]),
                        table=sql.Identifier(table),
                        key=sql.Identifier("id" if table == "sites" else "site_id"),
                        empty=sql.SQL(EMPTY_COUNTERS.get(table, "false")),
                    ),
                    [site_id],
                )
            ]
            for table in site_tables(connection)
            if table not in NOT_IMPORTED and table != "changes"
        }


def read_counters(url: str, site_id: int) -> dict[str, list[tuple[object, ...]]]:
    """Return what triggers keep, computed from the records alone."""
    with psycopg.connect(url) as connection:
        return {
            name: connection.execute(query.encode(), {"site": site_id}).fetchall() for name, query in COUNTERS.items()
        }


def read_stored_counters(url: str, site_id: int) -> dict[str, list[tuple[object, ...]]]:
    """Return what triggers keep, as it is stored."""
    with psycopg.connect(url) as connection:
        return {
            name: connection.execute(query.encode(), {"site": site_id}).fetchall()
            for name, query in STORED_COUNTERS.items()
        }


COUNTERS = {
    "event_days": """
        SELECT status, day, sum(starts), sum(ends) FROM events e CROSS JOIN LATERAL (VALUES
            ((start_utc AT TIME ZONE 'UTC')::date, 1, 0), ((end_utc AT TIME ZONE 'UTC')::date, 0, 1)
        ) v (day, starts, ends) WHERE site_id = %(site)s AND NOT hide_from_listings GROUP BY 1, 2 ORDER BY 1, 2""",
    "link_days": """
        SELECT l.kind, l.id, e.status, (e.start_utc AT TIME ZONE 'UTC')::date, count(*), count(e.password_hash)
        FROM events e JOIN (
            SELECT 'v' AS kind, event_id, venue_id AS id FROM event_venues WHERE site_id = %(site)s
            UNION ALL SELECT 'o', event_id, organizer_id FROM event_organizers WHERE site_id = %(site)s
            UNION ALL SELECT 'c', event_id, category_id FROM event_categories WHERE site_id = %(site)s
            UNION ALL SELECT 't', event_id, tag_id FROM event_tags WHERE site_id = %(site)s) l ON l.event_id = e.id
        WHERE e.site_id = %(site)s AND NOT e.hide_from_listings GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4""",
    "counts": """
        SELECT t.id, count(e.id) FROM (
            SELECT c.id, l.event_id FROM categories c LEFT JOIN event_categories l
                ON l.site_id = c.site_id AND l.category_id = c.id WHERE c.site_id = %(site)s
            UNION ALL SELECT c.id, l.event_id FROM tags c LEFT JOIN event_tags l
                ON l.site_id = c.site_id AND l.tag_id = c.id WHERE c.site_id = %(site)s) t
        LEFT JOIN events e ON e.site_id = %(site)s AND e.id = t.event_id AND e.status = 'publish'
        GROUP BY 1 ORDER BY 1""",
    "geoloc_known": """
        SELECT e.id FROM events e WHERE e.site_id = %(site)s AND EXISTS (
            SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.geo_lat IS NOT NULL)
        ORDER BY 1""",
}
STORED_COUNTERS = {
    "event_days": """SELECT status, day, starts, ends FROM event_days
        WHERE site_id = %(site)s AND (starts <> 0 OR ends <> 0) ORDER BY 1, 2""",
    "link_days": """SELECT kind::text, record_id, status, day, starts, protected FROM link_days
        WHERE site_id = %(site)s AND starts <> 0 ORDER BY 1, 2, 3, 4""",
    "counts": """SELECT id, count FROM (SELECT * FROM (SELECT site_id, id, count FROM categories) c
        UNION ALL SELECT site_id, id, count FROM tags) t WHERE site_id = %(site)s ORDER BY 1""",
    "geoloc_known": "SELECT id FROM events WHERE site_id = %(site)s AND geoloc_known ORDER BY 1",
}
