"""The directory: which cell serves which site, as the servers read it. `directory_changes.py` has the changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from kalends.store.batched_lookup import BatchedLookup
from kalends.store.database import LOOKUP_TIMEOUT, Database, Options
from kalends.store.sql import Sql

# A site, as a request names it: a host, or the ID.
type SiteKey = str | int

FIND_SITES: Final = """
    SELECT h.host AS key_host, s.id, s.cell, s.target
    FROM kalends_directory.hosts h JOIN kalends_directory.sites s ON s.id = h.site_id WHERE h.host = ANY(?::text[])
    UNION ALL
    SELECT NULL, s.id, s.cell, s.target FROM kalends_directory.sites s WHERE s.id = ANY(?::bigint[])
"""
SAMPLE_HOSTS: Final = """
    SELECT (SELECT h.host FROM kalends_directory.sites s JOIN kalends_directory.hosts h ON h.site_id = s.id
        WHERE s.cell = c.name LIMIT 1) AS host
    FROM kalends_directory.cells c ORDER BY c.name
"""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a site is. During a move it is in `cell` until it is in `target`."""

    site_id: int
    cell: str
    target: str | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,) if self.target is None else (self.cell, self.target)


class Directory:
    """The lookups of a server, which use one connection for all requests, and another one after a timeout."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lookup = BatchedLookup(self._fetch)
        self.lookups = 0

    @classmethod
    async def open(cls, options: Options) -> Self:
        # Only the connections for lookups are used.
        return cls(await Database.open(options))

    async def close(self) -> None:
        await self._database.close()

    async def find(self, key: SiteKey) -> Location | None:
        """Return where a site is at this moment; None if there is none, 503 if the directory is unavailable."""
        return await self._lookup.find(key)

    async def sample_hosts(self) -> list[str]:
        """Return one host of each cell that has any."""
        rows = await self._database.fetch_unscoped(Sql(SAMPLE_HOSTS), seconds=LOOKUP_TIMEOUT)
        return [row["host"] for row in rows if row["host"]]

    async def _fetch(self, keys: Iterable[SiteKey]) -> Mapping[SiteKey, Location]:
        self.lookups += 1
        hosts = [key for key in keys if isinstance(key, str)]
        site_ids = [key for key in keys if isinstance(key, int)]
        rows = await self._database.fetch_unscoped(Sql(FIND_SITES, hosts, site_ids), seconds=LOOKUP_TIMEOUT)
        found: dict[SiteKey, Location] = {}
        for row in rows:
            key = row["id"] if row["key_host"] is None else row["key_host"]
            found[key] = Location(row["id"], row["cell"], row["target"])
        return found
