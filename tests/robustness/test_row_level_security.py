"""Row-level security isolates sites even where every `site_id = ?` is missing."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from kalends.store.sql import Sql
from tests.console.console_rows import TABLES as CONSOLE_TABLES
from tests.robustness.test_isolation import assert_no_leaks
from tests.robustness.two_sites import API_PATH, SitePair, site_tables

# Names of hosts, which nobody but `enter_site` reads: the server has no right to this table at all.
FORBIDDEN_TABLES = ("site_hosts", "unserved_sites")


@pytest.fixture(params=["superuser", "owner", "member"])
def connected(pair: SitePair, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the kinds that operators may give to the server."""
    if request.param == "superuser":
        with psycopg.connect(pair.database_url) as connection:
            yield connection
        return
    role = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(pair.database_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {0} LOGIN; GRANT kalends_app TO {0}").format(sql.Identifier(role)))
        if request.param == "owner":
            for table in site_tables(admin):
                admin.execute(
                    sql.SQL("ALTER TABLE {} OWNER TO {}").format(sql.Identifier(table), sql.Identifier(role))
                )
        try:
            netloc = urlsplit(pair.database_url).netloc.replace("postgres@", f"{role}@")
            with psycopg.connect(urlsplit(pair.database_url)._replace(netloc=netloc).geturl()) as connection:
                yield connection
        finally:
            admin.execute(sql.SQL("REASSIGN OWNED BY {0} TO postgres; DROP ROLE {0}").format(sql.Identifier(role)))


def enter_site(connection: psycopg.Connection[Any], host: str | None) -> None:
    """As the server begins every transaction; None: it forgets to enter a site."""
    connection.rollback()
    connection.execute("SET LOCAL ROLE kalends_app")
    if host is not None:
        connection.execute("SELECT enter_site(%s)", [host])


def test_unfiltered_select_returns_only_own_rows(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    everything = _count_rows(pair.database_url)
    for site in (pair.a, pair.b):
        enter_site(connected, site.host)
        for table, column in _site_tables(connected):
            seen = connected.execute(
                _format_statement("SELECT {column}, count(*) FROM {table} GROUP BY 1", table, column)
            )
            own = everything[table].get(site.id)
            assert dict(seen.fetchall()) == ({site.id: own} if own else {}), table
    # The test would show nothing if the other site had nothing there.
    filled = {table for table, counts in everything.items() if len(counts) == 2}
    assert {"events", "venues", "event_tags", "changes", "idempotency", "users", *CONSOLE_TABLES} <= filled


def test_unfiltered_write_changes_only_own_rows(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    before = pair.digest_site_a()
    enter_site(connected, pair.b.host)
    for table, column in _site_tables(connected):
        written = "name" if table == "sites" else column  # Servers may not write the ID of a site.
        connected.execute(_format_statement("UPDATE {table} SET {column} = {column}", table, written))
    full = [(table, column) for table, column in _site_tables(connected) if table != "sites"]
    while full:  # Referenced rows can be deleted only after the rows that refer to them.
        table, column = full.pop(0)
        try:
            with connected.transaction():
                connected.execute(_format_statement("DELETE FROM {table}", table, column))
        except errors.ForeignKeyViolation:
            full.append((table, column))
    connected.commit()
    assert pair.digest_site_a() == before
    left = {table for table, counts in _count_rows(pair.database_url).items() if pair.b.id in counts}
    assert left <= {"sites", "event_days", "link_days"}, "its own rows are gone; days are counted down as events go"


def test_rows_cannot_be_moved_or_added_to_another_site(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    everything = _count_rows(pair.database_url)
    for table, column in _site_tables(connected):
        if pair.b.id not in everything[table]:
            continue  # No row that could be moved.
        copied = _writable_columns(connected, table)
        names = sql.SQL(", ").join(sql.Identifier(name) for name in copied)
        values = sql.SQL(", ").join(sql.SQL("1") if name == column else sql.Identifier(name) for name in copied)
        added = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}").format(
            sql.Identifier(table), names, values, sql.Identifier(table)
        )
        for statement in (_format_statement("UPDATE {table} SET {column} = 1", table, column), added):
            enter_site(connected, pair.b.host)
            with pytest.raises(errors.InsufficientPrivilege):
                connected.execute(statement)


def test_nothing_is_accessible_outside_a_site(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    """Also on a connection whose last transaction was in a site."""
    for last in (None, pair.a.host):
        if last:
            enter_site(connected, last)
            connected.commit()
        for table, column in _site_tables(connected):
            for statement in ("SELECT FROM {table}", "UPDATE {table} SET {column} = 1"):
                enter_site(connected, None)
                with pytest.raises((errors.UndefinedObject, errors.InvalidTextRepresentation)):
                    connected.execute(_format_statement(statement, table, column))


def test_unknown_host_enters_no_site(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    enter_site(connected, "c.example")
    for table, column in _site_tables(connected):
        assert connected.execute(_format_statement("SELECT FROM {table}", table, column)).rowcount == 0


def test_server_cannot_read_host_names(connected: psycopg.Connection[Any], pair: SitePair) -> None:
    for table in FORBIDDEN_TABLES:
        enter_site(connected, pair.b.host)
        with pytest.raises(errors.InsufficientPrivilege):
            connected.execute(_format_statement("SELECT FROM {table}", table, "site_id"))


@pytest.mark.parametrize("login", [None, "ed"])
async def test_row_level_security_isolates_sites_without_site_conditions(
    pair: SitePair, login: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_site_conditions(monkeypatch) as forgotten:
        await assert_no_leaks(pair, login)
    assert len(forgotten) > 30, "few statements were changed, so little was shown"


async def test_sites_would_leak_without_row_level_security(pair: SitePair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above: it can see a leak."""
    with psycopg.connect(pair.database_url) as connection:
        for table, column in _site_tables(connection):
            connection.execute(_format_statement("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY", table, column))
    with without_site_conditions(monkeypatch):
        response = await pair.b.request("GET", f"{API_PATH}/events")
        assert pair.a.word in response.text
        with pytest.raises(AssertionError, match="shows the other site"):
            await assert_no_leaks(pair, None)


@contextmanager
def without_site_conditions(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Every `site_id = ?` in every statement becomes true. Yields the statements that had one."""
    changed_statements: set[str] = set()
    numbered = Sql.render

    def without_sites(statement: Sql) -> str:
        text = re.sub(r"\b(\w+\.)?site_id = \?", "?::bigint IS NOT NULL", statement.text)
        if text != statement.text:
            changed_statements.add(statement.text)
        return numbered(Sql(text, *statement.values))

    with monkeypatch.context() as patched:
        patched.setattr(Sql, "render", without_sites)
        yield changed_statements


def _site_tables(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Every table of sites that the server may reach, with the column that holds the site."""
    names = [table for table in site_tables(connection) if table not in FORBIDDEN_TABLES]
    return [(table, "id" if table == "sites" else "site_id") for table in names]


def _writable_columns(connection: psycopg.Connection[Any], table: str) -> list[str]:
    """The columns that can be written."""
    connection.rollback()
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
        "AND NOT attisdropped AND attgenerated = ''",
        [table],
    )
    return [name for (name,) in rows]


def _format_statement(statement: LiteralString, table: str, column: str) -> sql.Composed:
    return sql.SQL(statement).format(table=sql.Identifier(table), column=sql.Identifier(column))


def _count_rows(database_url: str) -> dict[str, dict[int, int]]:
    with psycopg.connect(database_url) as owner:
        query: LiteralString = "SELECT {column}, count(*) FROM {table} GROUP BY 1"
        return {
            table: dict(owner.execute(_format_statement(query, table, column)).fetchall())
            for table, column in _site_tables(owner)
        }
