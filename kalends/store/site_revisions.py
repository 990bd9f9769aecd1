"""Current revisions of sites, for caches.

Lookups are batched, so a revision includes every write that was acknowledged before the request. The last known
revision of each host is remembered, so that caches can be used while the database is unavailable.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import Protocol

from asyncpg import Record

from kalends.core.errors import ApiError
from kalends.store.batched_lookup import BatchedLookup

# A single site serves every host name, so the number of remembered hosts has to be bounded. A host takes about 300
# bytes.
MAX_REMEMBERED_HOSTS = 10_000
# Image files are served with the remembered site of a host for this time.
MAX_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteRevision:
    site_id: int
    revision: int


class RevisionSource(Protocol):
    """The primary, or a replica whose data is recent enough."""

    async def fetch_revisions(self, hosts: list[str]) -> list[Record]: ...


class Revisions(Protocol):
    """The current revisions of sites by host: of one database, or of several (`cells.py`)."""

    async def current(self, host: str) -> SiteRevision | None: ...

    async def find_site_id(self, host: str) -> int | None: ...

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None: ...


class SiteRevisions:
    def __init__(self, source: RevisionSource) -> None:
        self._source = source
        self._lookup = BatchedLookup(self._fetch)
        self._known: OrderedDict[str, tuple[SiteRevision, float]] = OrderedDict()

    async def current(self, host: str) -> SiteRevision | None:
        """Return the revision of the site of a host, or None if the host has no site."""
        return await self._lookup.find(host)

    async def find_site_id(self, host: str) -> int | None:
        """Return the ID of the site of a host, at most a minute old unless the database is unavailable."""
        known = self.last_known(host, MAX_REMEMBERED_SECONDS)
        if known is None:
            try:
                revision = await self.current(host)
            except ApiError:
                known = self.last_known(host, inf)
                if known is None:
                    raise
            else:
                return revision.site_id if revision else None
        return known[0].site_id

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None:
        """Return the last known revision of a host and its age in seconds, unless it is older than `max_age`."""
        known = self._known.get(host)
        age = time.monotonic() - known[1] if known else 0.0
        return (known[0], age) if known and age <= max_age else None

    def _remember(self, hosts: set[str], revisions: dict[str, SiteRevision]) -> None:
        """Replace the remembered revisions of the hosts in a batch, some of which may no longer have a site."""
        now = time.monotonic()
        for host in hosts - revisions.keys():
            self._known.pop(host, None)
        for host, revision in revisions.items():
            self._known[host] = (revision, now)
            self._known.move_to_end(host)
        while len(self._known) > MAX_REMEMBERED_HOSTS:
            self._known.popitem(last=False)

    async def _fetch(self, hosts: set[str]) -> dict[str, SiteRevision]:
        rows = await self._source.fetch_revisions(list(hosts))
        revisions = {row["host"]: SiteRevision(row["site_id"], row["revision"]) for row in rows}
        self._remember(hosts, revisions)
        return revisions
