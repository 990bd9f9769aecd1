"""Current revisions of sites, for caches.

Lookups are batched: a query starts after all requests it serves, so it sees every write acknowledged before them.
The last known revision of each host is remembered, so that caches can be used while the database is unavailable.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from asyncpg import Record

from kalends.core.errors import ApiError

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


@dataclass(slots=True)
class _Batch:
    hosts: set[str] = field(default_factory=set[str])
    result: "asyncio.Future[dict[str, SiteRevision]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class SiteRevisions:
    def __init__(self, source: RevisionSource) -> None:
        self._source = source
        self._next_batch: _Batch | None = None
        self._task: asyncio.Task[None] | None = None
        self._known: OrderedDict[str, tuple[SiteRevision, float]] = OrderedDict()

    async def current(self, host: str) -> SiteRevision | None:
        """Return the revision of the site of a host, or None if the host has no site."""
        batch = self._next_batch
        if batch is None:
            batch = self._next_batch = _Batch()
            if self._task is None:
                self._task = asyncio.create_task(self._run_batches())
        batch.hosts.add(host)
        return (await asyncio.shield(batch.result)).get(host)

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

    async def _run_batches(self) -> None:
        """Run one batch at a time until no request is waiting."""
        while (batch := self._next_batch) is not None:
            self._next_batch = None
            try:
                rows = await self._source.fetch_revisions(list(batch.hosts))
            except Exception as error:  # The waiting requests get the error; the next batch runs regardless.
                batch.result.set_exception(error)
                batch.result.exception()
                continue
            revisions = {row["host"]: SiteRevision(row["site_id"], row["revision"]) for row in rows}
            self._remember(batch.hosts, revisions)
            batch.result.set_result(revisions)
        self._task = None
