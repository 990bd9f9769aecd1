"""A hash of everything that a database contains."""

import psycopg
from psycopg import sql

# The table of an extension, which is the same everywhere.
EXTENSION_TABLE = "spatial_ref_sys"


def hash_records(url: str) -> dict[str, str]:
    """Return a hash of the rows of each table, as of one moment."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' "
            "AND relname <> %s ORDER BY 1",
            [EXTENSION_TABLE],
        ).fetchall()
        query = sql.SQL("SELECT coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text)), '') FROM {} t")
        found = {}
        for (table,) in tables:
            row = connection.execute(query.format(sql.Identifier(table))).fetchone()
            assert row is not None
            found[table] = row[0]
        return found
