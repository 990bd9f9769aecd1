"""Sites in several databases, the cells: each transaction begins in the cell that serves its site.

A site can move at any time. A cell that does not serve a site says so when a transaction enters it, before any work
is done, so the transaction begins again in the right cell and nobody else notices.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime

from asyncpg import Record

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.store.cell_router import CellRouter
from kalends.store.database import Database, Transaction
from kalends.store.problems import DatabaseUnavailable, Problem
from kalends.store.site_revisions import SiteRevision, SiteRevisions
from kalends.store.sql import Sql


class Cells:
    def __init__(self, databases: Mapping[str, Database], router: CellRouter) -> None:
        self.by_cell = databases
        self.router = router

    @asynccontextmanager
    async def transaction(
        self, site: str | int, now: datetime, *, writing: bool, anonymous: bool = False, client_ip: str = ""
    ) -> AsyncIterator[Transaction]:
        """Run one transaction in a site, in the cell that serves it; the same as `Database.transaction` otherwise."""
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
        """Run a statement in the cell of a site, where it returns at least one row."""
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
        """Return the state of each cell; raise 503 only if none can be used."""
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
    """The revisions of sites in several cells. Each cell has its own batches, so none waits for another one."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._by_cell = {name: SiteRevisions(database) for name, database in cells.by_cell.items()}

    async def current(self, host: str) -> SiteRevision | None:
        """Return the revision of the site of a host, or None if the host has no site."""
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
        """Return the ID of the site of a host as the directory knows it."""
        location = await self._cells.router.find(host)
        return location.site_id if location else None

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None:
        """Return the last known revision of a host and its age in seconds, unless it is older than `max_age`."""
        known = [last for revisions in self._by_cell.values() if (last := revisions.last_known(host, max_age))]
        return min(known, key=lambda last: last[1], default=None)


async def _enter(
    stack: AsyncExitStack, transaction: AbstractAsyncContextManager[Transaction], site_id: int
) -> Transaction | None:
    """Enter a transaction; return None if its cell does not know the site, or another one by the same host."""
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
