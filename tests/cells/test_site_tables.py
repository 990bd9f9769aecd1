"""Every table says whether its rows move with a site, so that a new one cannot be forgotten."""

import psycopg

from kalends.fleet.storage.move_tables import FIND_TABLES, LOCAL_TABLES

# Tables without the ID of a site: they belong to the database. The jobs of a site move at the switch.
DATABASE_TABLES = {
    "alembic_version",
    "cell",
    "mail_hours",
    "procrastinate_events",
    "procrastinate_jobs",
    "procrastinate_periodic_defers",
    "procrastinate_workers",
    "schema_compatibility",
    "spatial_ref_sys",
}


def test_each_table_belongs_to_sites_or_to_the_database(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
        moved = read_moved_tables(connection)
    assert {name for (name,) in found} == moved | DATABASE_TABLES | set(LOCAL_TABLES)


def test_rows_can_be_published_by_site(database_url: str) -> None:
    """A filter of updates and deletions needs its column in the replica identity; unlogged tables are not decoded."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(FIND_TABLES.replace("$1", "%s"), [list(LOCAL_TABLES)]).fetchall()
        unfit = [name for name, _, is_logged, is_in_identity, _ in rows if not (is_logged and is_in_identity)]
        assert unfit == []
        connection.execute("CREATE TABLE notes (site_id bigint, id bigint PRIMARY KEY)")
        rows = connection.execute(FIND_TABLES.replace("$1", "%s"), [list(LOCAL_TABLES)]).fetchall()
    assert [name for name, _, _, is_in_identity, _ in rows if not is_in_identity] == ["notes"]


def test_no_id_of_a_moved_table_comes_from_a_sequence(database_url: str) -> None:
    """The values of a sequence are not replicated, so the target would give out IDs that exist."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND (is_identity = 'YES' OR column_default LIKE 'nextval%')"
        ).fetchall()
        assert {name for (name,) in rows} & read_moved_tables(connection) == set()


def read_moved_tables(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute(FIND_TABLES.replace("$1", "%s"), [list(LOCAL_TABLES)]).fetchall()
    return {row[0] for row in rows}
