"""Current site revisions, for caches.

Lookups are batched, but a revision still includes every write acknowledged before the request. While the database is
unavailable, caches use each host's last known revision.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from asyncpg import Record

from kalends.core.errors import ApiError


@dataclass(slots=True)
class _Batch[K: Hashable, V]:
    keys: set[K] = field(default_factory=set[K])
    result: "asyncio.Future[Mapping[K, V]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class BatchedLookup[K: Hashable, V]:
    """Runs one query at a time, each for all keys requested since the previous query started.

    A query starts only after all the requests that it serves, so its result includes everything committed before
    these requests.
    """

    def __init__(self, fetch: Callable[[set[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._fetch = fetch
        self._next_batch: _Batch[K, V] | None = None
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: K) -> V | None:
        """Return a key's value from the next query; None if it has no value."""
        batch = self._next_batch
        if batch is None:
            batch = self._next_batch = _Batch[K, V]()
            if self._task is None:
                self._task = asyncio.create_task(self._run_batches())
        batch.keys.add(key)
        return (await asyncio.shield(batch.result)).get(key)

    async def _run_batches(self) -> None:
        while (batch := self._next_batch) is not None:
            self._next_batch = None
            try:
                found = await self._fetch(batch.keys)
            except Exception as error:  # The waiting requests get the error; the next batch runs regardless.
                batch.result.set_exception(error)
                batch.result.exception()
                continue
            batch.result.set_result(found)
        self._task = None


# Limited because a single site answers to any host name. Remembering a host takes about 300 bytes.
MAX_REMEMBERED_HOSTS = 10_000
# How long image requests can reuse a host's remembered site.
MAX_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteRevision:
    site_id: int
    revision: int


class RevisionSource(Protocol):
    """A source of revisions: the primary, or a replica whose data is recent enough."""

    async def fetch_revisions(self, hosts: list[str]) -> list[Record]: ...


class Revisions(Protocol):
    """Current site revisions by host, from one database or several (`cells.py`)."""

    async def current(self, host: str) -> SiteRevision | None: ...

    async def find_site_id(self, host: str) -> int | None: ...

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None: ...


class SiteRevisions:
    def __init__(self, source: RevisionSource) -> None:
        self._source = source
        self._lookup = BatchedLookup(self._fetch)
        self._known: OrderedDict[str, tuple[SiteRevision, float]] = OrderedDict()

    async def current(self, host: str) -> SiteRevision | None:
        """Return the current revision of a host's site; None if the host has no site."""
        return await self._lookup.find(host)

    async def find_site_id(self, host: str) -> int | None:
        """Return a host's site ID, which may be up to a minute old, or older while the database is unavailable."""
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
        """Return a host's last known revision and its age in seconds; None if unknown or older than `max_age`."""
        known = self._known.get(host)
        age = time.monotonic() - known[1] if known else 0.0
        return (known[0], age) if known and age <= max_age else None

    def _remember(self, hosts: set[str], revisions: dict[str, SiteRevision]) -> None:
        """Remember these hosts' revisions; forget hosts that no longer have a site."""
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
