"""The tables of an archive: none of a site is forgotten, and no secret leaves the database."""

import asyncio
import re

import psycopg

from kalends.fleet.operations.archive_rows import TYPES
from kalends.fleet.storage.move_tables import LEFT_OUT_TABLES, SITES, USERS, list_tables, read_columns
from kalends.store.problems import connect
from tests.robustness.two_sites import site_tables

# Columns whose names look like secrets and that an archive contains nevertheless.
HARMLESS = {
    "events.password_hash",  # replaced by a marker
    "sites.custom_css_hash",
    "media.source_hash",
    "media.upload_sha256",
    "import_sources.input_hash",
    "import_runs.input_hash",
}


def read_all_columns(url: str) -> dict[str, dict[str, str]]:
    async def read() -> dict[str, dict[str, str]]:
        async with connect(url) as connection:
            return {
                table.name: {column.name: column.type for column in await read_columns(connection, table)}
                for table in list_tables(accounts=True)
            }

    return asyncio.run(read())


def test_every_table_of_sites_is_exported_or_left_out_for_a_reason(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        existing = set(site_tables(connection))
    exported = {table.name for table in list_tables(accounts=True)}
    assert exported | set(LEFT_OUT_TABLES) == existing
    assert not exported & set(LEFT_OUT_TABLES)


def test_columns_that_are_left_out_exist(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        for table in (*list_tables(accounts=True), *list_tables(accounts=False)):
            rows = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
                [table.name],
            ).fetchall()
            named = {*table.left_out, *table.written, *table.stored, *table.only, *filter(None, [table.parent])}
            assert named <= {name for (name,) in rows}, table.name


def test_every_column_has_a_type_that_is_checked(database_url: str) -> None:
    types = {name for columns in read_all_columns(database_url).values() for name in columns.values()}
    assert {name.removesuffix("[]") for name in types} <= set(TYPES)


def test_no_column_looks_like_a_secret(database_url: str) -> None:
    found = {
        f"{table}.{column}"
        for table, columns in read_all_columns(database_url).items()
        for column in columns
        if re.search("secret|hash|token|password|sha256", column)
    }
    assert found == HARMLESS
    assert "secret" in SITES.left_out
    assert "password_hash" in USERS.left_out
