"""Rows in all tables of imports, for tests of the isolation of sites."""

from typing import Any

import psycopg

# A source and a run that both sites have, and those that only one has.
SHARED_IMPORT, FOREIGN_IMPORT = 1, 77


def add_import_rows(connection: psycopg.Connection[Any], site_id: int, import_id: int, word: str) -> None:
    """Add a source and a run with the same ID and one row in each of the other tables; texts contain `word`."""
    row = {"site": site_id, "id": import_id, "word": word, "host": f"https://{word}.example/"}
    for statement in (
        "INSERT INTO import_sources (site_id, id, kind, name, url, owner_id, created_at) "
        "VALUES (%(site)s, %(id)s, 'ical', %(word)s, %(host)s, 1, now())",
        "INSERT INTO import_items (site_id, source_id, kind, identity, record_id, fingerprint, source_values, "
        "first_seen_at, last_seen_at) VALUES (%(site)s, %(id)s, 'events', %(word)s, 1, '', '{}', now(), now())",
        "INSERT INTO import_runs (site_id, id, source_id, state, started_at, failure, first_revision) VALUES "
        "(%(site)s, %(id)s, %(id)s, 'planned', now(), "
        "jsonb_build_object('text', %(word)s::text, 'values', '{}'::jsonb), 1)",
        "INSERT INTO import_rows (site_id, run_id, number, action, kind, title) "
        "VALUES (%(site)s, %(id)s, 1, 'new', 'events', %(word)s)",
        "INSERT INTO import_files (site_id, source_id, name, content, uploaded_at) "
        "VALUES (%(site)s, %(id)s, %(word)s, 'x', now())",
    ):
        connection.execute(statement, row)
