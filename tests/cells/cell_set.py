"""Three cells and a directory as databases of one server, and the end of a move of a site as SQL."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg import sql
from typer.testing import Result

from kalends.bootstrap import open_database
from kalends.fleet.storage import directory
from kalends.fleet.storage.cells import Cells
from kalends.settings import Settings
from tests.lifecycle.processes import run_command
from tests.robustness.site_fixtures import Login, add_users, run_application
from tests.robustness.two_sites import site_tables

NAMES = ("a", "b", "c")
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', %s))"


@dataclass(frozen=True)
class CellSite:
    """A site whose name nobody else has."""

    id: int
    host: str
    name: str
    cell: str
    login: Login


@dataclass(frozen=True)
class CellSet:
    directory_url: str
    urls: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        cells = ",".join(f"{name}={url}" for name, url in self.urls.items())
        return {"KALENDS_DIRECTORY_URL": self.directory_url, "KALENDS_CELLS": cells}

    def sql(self, cell: str, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement in a cell, or in the directory if its name is empty."""
        with psycopg.connect(self.urls[cell] if cell else self.directory_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def run(self, *arguments: str, **options: Any) -> Result:
        """Run `kalends …` with the settings of all cells."""
        return run_command("postgresql:///unused", *arguments, settings=self.environment, **options)

    def add_site(self, host: str, cell: str) -> CellSite:
        """Add a site with an editor."""
        name = f"Calendar of {host}"
        added = asyncio.run(directory.add_site(self.directory_url, self.urls, host, name, cell))
        users = add_users(self.urls[added.cell], {"ed": "editor"}, site_id=added.site_id)
        return CellSite(added.site_id, host, name, added.cell, users["ed"])

    def begin_move(self, site_id: int, target: str) -> None:
        self.sql("", "UPDATE kalends_directory.sites SET target = %s WHERE id = %s", [target, site_id])
        self.sql(
            target,
            "INSERT INTO unserved_sites (site_id, state, move_id) VALUES (%s, 'arriving', %s)",
            [site_id, uuid4()],
        )

    def leave(self, site_id: int, source: str, target: str) -> list[str]:
        """Copy the rows and commit the switch at the source; return the hosts."""
        with psycopg.connect(self.urls[source]) as leaving, psycopg.connect(self.urls[target]) as arriving:
            leaving.execute(LOCK, [site_id])
            hosts = [row[0] for row in leaving.execute("SELECT host FROM site_hosts WHERE site_id = %s", [site_id])]
            copy_rows(leaving, arriving, site_id)
            arriving.commit()
            leaving.execute("DELETE FROM site_hosts WHERE site_id = %s", [site_id])
            leaving.execute(
                "INSERT INTO unserved_sites (site_id, state, move_id) VALUES (%s, 'departed', %s)", [site_id, uuid4()]
            )
        return hosts

    def arrive(self, site_id: int, target: str, hosts: Sequence[str]) -> None:
        with psycopg.connect(self.urls[target]) as connection:
            connection.execute("DELETE FROM unserved_sites WHERE site_id = %s", [site_id])
            for host in hosts:
                connection.execute("INSERT INTO site_hosts VALUES (%s, %s)", [host, site_id])

    def end_move(self, site_id: int, target: str) -> None:
        self.sql("", "UPDATE kalends_directory.sites SET cell = %s, target = NULL WHERE id = %s", [target, site_id])

    def clean_up(self, site_id: int, source: str) -> None:
        """Delete what is left at the source."""
        with psycopg.connect(self.urls[source]) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            for table in site_tables(connection):
                column = "id" if table == "sites" else "site_id"
                connection.execute(
                    sql.SQL("DELETE FROM {} WHERE {} = %s").format(sql.Identifier(table), sql.Identifier(column)),
                    [site_id],
                )

    def move(self, site_id: int, source: str, target: str, *, cleans_up: bool = True) -> None:
        """Move a site as a whole."""
        self.begin_move(site_id, target)
        hosts = self.leave(site_id, source, target)
        self.arrive(site_id, target, hosts)
        self.end_move(site_id, target)
        if cleans_up:
            self.clean_up(site_id, source)

    @asynccontextmanager
    async def open_cells(self, **settings: Any) -> AsyncIterator[Cells]:
        """Open all cells as a server does."""
        values = {"directory_url": self.directory_url, "cells": dict(self.urls), "pool_timeout": 5, **settings}
        cells = await open_database(Settings.model_validate(values))
        assert isinstance(cells, Cells)
        try:
            yield cells
        finally:
            await cells.close()

    @asynccontextmanager
    async def open_transport(self, **settings: Any) -> AsyncIterator[httpx.ASGITransport]:
        """Open an application on all cells."""
        values = {name.removeprefix("KALENDS_").lower(): value for name, value in self.environment.items()}
        async with run_application("postgresql:///unused", **{"pool_timeout": 5, **values, **settings}) as transport:
            yield transport

    @asynccontextmanager
    async def open_client(self, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
        """Open an application on all cells, and a client."""
        async with (
            self.open_transport(**settings) as transport,
            httpx.AsyncClient(transport=transport, base_url="http://server", trust_env=False) as client,
        ):
            yield client


def copy_rows(source: psycopg.Connection[Any], target: psycopg.Connection[Any], site_id: int) -> None:
    """Copy the rows of a site in all tables but its hosts."""
    target.execute("SET LOCAL session_replication_role = replica")
    for table in site_tables(source):
        if table in ("site_hosts", "unserved_sites"):
            continue
        columns = [
            name
            for (name,) in source.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' "
                "AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
                [table],
            )
        ]
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        column = sql.Identifier("id" if table == "sites" else "site_id")
        read = sql.SQL("COPY (SELECT {} FROM {} WHERE {} = {}) TO STDOUT (FORMAT binary)").format(
            names, sql.Identifier(table), column, sql.Literal(site_id)
        )
        write = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), names)
        with source.cursor().copy(read) as rows, target.cursor().copy(write) as copied:
            for block in rows:
                copied.write(block)
