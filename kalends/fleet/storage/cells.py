"""Sites in several databases, called cells; each transaction begins in the cell that serves its site.

A site can move at any time. Entering a transaction in the wrong cell fails before any work is done; the transaction
then begins again in the right cell, without the caller noticing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Record

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.fleet.storage.cell_router import CellRouter
from kalends.fleet.storage.directory import DirectorySite
from kalends.store.database import Database, Transaction
from kalends.store.problems import DatabaseUnavailable, Problem, connect_owner
from kalends.store.site_revisions import SiteRevision, SiteRevisions
from kalends.store.sites import fetch_sites
from kalends.store.sql import Sql


class Cells:
    def __init__(self, databases: Mapping[str, Database], router: CellRouter) -> None:
        self.by_cell = databases
        self.router = router

    @asynccontextmanager
    async def transaction(
        self, site: str | int, now: datetime, *, writing: bool, anonymous: bool = False, client_ip: str = ""
    ) -> AsyncIterator[Transaction]:
        """Run a transaction like `Database.transaction`, in the cell that serves the site."""
        search, tx = self.router.search(site), None
        async with AsyncExitStack() as stack:
            while tx is None:
                found = await search.next()
                if found is None:
                    raise errors.unknown_site()
                cell, site_id = found
                transaction = self.get_cell(cell).transaction(
                    site, now, writing=writing, anonymous=anonymous, client_ip=client_ip
                )
                with search.attempt():
                    tx = await _enter(stack, transaction, site_id)
            yield tx

    async def fetch_for_site(self, site_id: int, sql: Sql) -> list[Record]:
        """Run a statement in a site's cell. The statement must return at least one row if the cell has the site."""
        search = self.router.search(site_id)
        while (found := await search.next()) is not None:
            if rows := await self.get_cell(found[0]).fetch_for_site(site_id, sql):
                return rows
        return []

    def get_cell(self, name: str) -> Database:
        database = self.by_cell.get(name)
        if database is None:
            detail = f"The directory names the cell {name}, which is not in `KALENDS_CELLS`."
            raise DatabaseUnavailable(Problem(detail, Message("The database is unreachable.")))
        return database

    def make_revisions(self) -> "CellRevisions":
        return CellRevisions(self)

    async def check_schema(self, wanted: str) -> list[str]:
        """Return each cell's state; raise 503 only if none is usable."""
        results = await asyncio.gather(
            *[database.check_schema(wanted) for database in self.by_cell.values()], return_exceptions=True
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        if len(failures) == len(results) or not all(isinstance(failure, ApiError) for failure in failures):
            raise failures[0]
        return [
            f"cell {name}: {result.text if isinstance(result, ApiError) else 'ready'}"
            for name, result in zip(self.by_cell, results, strict=True)
        ]

    async def sample_hosts(self) -> list[str]:
        return await self.router.sample_hosts()

    def read_counts(self) -> Mapping[str, int]:
        return self.router.read_counts()

    async def close(self) -> None:
        await self.router.close()
        await asyncio.gather(*[database.close() for database in self.by_cell.values()])


class CellRevisions:
    """Site revisions in several cells. Lookups are batched per cell, so no cell waits for another."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._by_cell = {name: SiteRevisions(database) for name, database in cells.by_cell.items()}

    async def current(self, host: str) -> SiteRevision | None:
        search = self._cells.router.search(host)
        while (found := await search.next()) is not None:
            cell, site_id = found
            self._cells.get_cell(cell)
            with search.attempt():
                revision = await self._by_cell[cell].current(host)
            if revision is not None and revision.site_id == site_id:
                return revision
        return None

    async def find_site_id(self, host: str) -> int | None:
        location = await self._cells.router.find(host)
        return location.site_id if location else None

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None:
        known = [last for revisions in self._by_cell.values() if (last := revisions.last_known(host, max_age))]
        return min(known, key=lambda last: last[1], default=None)


async def _enter(
    stack: AsyncExitStack, transaction: AbstractAsyncContextManager[Transaction], site_id: int
) -> Transaction | None:
    """Enter a transaction; return None if its cell has no site, or a different site, for this host."""
    async with AsyncExitStack() as attempt:
        try:
            tx = await attempt.enter_async_context(transaction)
        except ApiError as error:
            if error.code != errors.UNKNOWN_SITE:
                raise
            return None
        if tx.site.id != site_id:
            return None
        await stack.enter_async_context(attempt.pop_all())
        return tx


@dataclass(frozen=True, slots=True)
class CellContents:
    """A database's cell name, the sites it serves with their hosts, and the sites in it that it does not serve."""

    name: str | None
    hosts: Mapping[int, tuple[str, ...]]
    unserved: Mapping[int, str]  # state by site ID


async def read_contents(owner_url: str) -> CellContents:
    async with (
        connect_owner(owner_url) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        name: str | None = await connection.fetchval("SELECT name FROM cell")
        served = await fetch_sites(connection)
        unserved = await connection.fetch("SELECT site_id, state FROM unserved_sites")
    return CellContents(
        name, {site.id: site.hosts for site in served}, {row["site_id"]: row["state"] for row in unserved}
    )


def compare(
    sites: Iterable[DirectorySite], cells: Mapping[str, CellContents], moving: set[int], missing: Iterable[str] = ()
) -> Iterator[str]:
    """Yield where the cells that could be read differ from the directory; `missing` names all other cells."""
    expected = {site.location.site_id: site for site in sites}
    for name, contents in cells.items():
        if contents.name != name:
            yield f"The database of the cell {name} has the name {contents.name}: run `kalends cell add {name}`."
        for site_id, state in contents.unserved.items():
            if site_id not in moving:
                yield (
                    f"Site {site_id}: rows are left in the cell {name} ({state}), but no move is under way. "
                    f"{_describe_removal(site_id, [name])}"
                )
        for site_id in contents.hosts.keys() - expected.keys():
            yield (
                f"Site {site_id} is in the cell {name}, but not in the directory. `kalends cell add {name}` adds it. "
                f"{_describe_removal(site_id, [name])}"
            )
    unread = set(missing)
    for site_id, site in expected.items():
        serving = [name for name, contents in cells.items() if site_id in contents.hosts]
        yield from _judge_site(site_id, site, serving, cells, unread, is_moving=site_id in moving)


def _judge_site(
    site_id: int,
    site: DirectorySite,
    serving: list[str],
    cells: Mapping[str, CellContents],
    unread: set[str],
    *,
    is_moving: bool,
) -> Iterator[str]:
    if len(serving) > 1:
        others = [name for name in sorted(serving) if name not in site.location.cells]
        yield (
            f"Site {site_id} is in several cells: {', '.join(sorted(serving))}; the directory names the cell "
            f"{site.location.cell}. {_describe_removal(site_id, others)}"
        )
    elif not serving:
        if unread.isdisjoint(site.location.cells) and not is_moving:
            yield f"Site {site_id} is in no cell; the directory names the cell {site.location.cell}."
    elif serving[0] not in site.location.cells:
        yield f"Site {site_id} is in the cell {serving[0]}; the directory names the cell {site.location.cell}."
    elif (found := cells[serving[0]].hosts[site_id]) != site.hosts:
        in_cell, in_directory = ", ".join(found) or "none", ", ".join(site.hosts) or "none"
        yield f"Site {site_id}: the cell {serving[0]} has the hosts {in_cell}, the directory has {in_directory}."


def _describe_removal(site_id: int, cells: Iterable[str]) -> str:
    commands = ", ".join(f"`kalends site remove {site_id} --cell {cell}`" for cell in cells)
    return f"To remove that copy: {commands}."
