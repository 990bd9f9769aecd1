"""The interface of the database of all sites, which is one database or several cells."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from asyncpg import Record

from kalends.store.database import Database, Transaction
from kalends.store.site_revisions import Revisions
from kalends.store.sql import Sql


class SiteDatabase(Protocol):
    """One database (`Database`), or several cells (`Cells`)."""

    @property
    def by_cell(self) -> Mapping[str, Database]:
        """Return the databases by the names of their cells; the only one has an empty name."""
        ...

    def transaction(
        self, site: str | int, now: datetime, *, writing: bool, anonymous: bool = False, client_ip: str = ""
    ) -> AbstractAsyncContextManager[Transaction]: ...

    async def fetch_for_site(self, site_id: int, sql: Sql) -> list[Record]:
        """Run a statement that returns at least one row where the site is."""
        ...

    def make_revisions(self) -> Revisions: ...

    async def check_schema(self, wanted: str) -> list[str]:
        """Raise 503 if no database can be used; return a line about each cell."""
        ...

    async def sample_hosts(self) -> list[str]:
        """Return a host of each cell, or of the first site."""
        ...

    def read_counts(self) -> Mapping[str, int]:
        """Return how often each event of routing has happened."""
        ...

    async def close(self) -> None: ...
