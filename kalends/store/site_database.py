"""The common interface to the data of all sites, in one database or several cells."""

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
        """Return the databases by cell name; a single database has an empty name."""
        ...

    def transaction(
        self, site: str | int, now: datetime, *, writing: bool, anonymous: bool = False, client_ip: str = ""
    ) -> AbstractAsyncContextManager[Transaction]: ...

    async def fetch_for_site(self, site_id: int, sql: Sql) -> list[Record]:
        """Run a statement in the site's database, where it must return at least one row."""
        ...

    def make_revisions(self) -> Revisions: ...

    async def check_schema(self, wanted: str) -> list[str]:
        """Return each cell's state; raise 503 if no database is usable."""
        ...

    async def sample_hosts(self) -> list[str]:
        """Return one host per cell or, for a single database, one of the first site's hosts."""
        ...

    def read_counts(self) -> Mapping[str, int]: ...

    async def close(self) -> None: ...
