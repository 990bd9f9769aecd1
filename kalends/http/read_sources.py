"""Which database answers a read: a replica, as long as its data is recent enough for the request, or the primary."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from kalends.adapters import metrics
from kalends.core.errors import ApiError
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.replica import Replica
from kalends.store.site_database import SiteDatabase
from kalends.store.site_revisions import Revisions, SiteRevision, SiteRevisions
from kalends.store.sql import Sql


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a request requires of the database that answers it."""

    host: str
    now: datetime
    client_ip: str
    anonymous: bool = True  # without credentials, so that its statements have a shorter timeout
    prefers_replica: bool = True  # whether a replica answers while the primary is available
    accepts_replica: bool = True  # whether a replica answers while the primary is away
    min_revision: int = 0  # the site revision that the response has to include


class ReadSources:
    """The primary, or all cells, and a replica of the primary if there is one."""

    def __init__(self, primary: SiteDatabase, replica: Replica | None = None) -> None:
        self.primary = primary
        self.replica = replica
        self._revisions: list[Revisions] = [primary.make_revisions()]
        if replica is not None:
            self._revisions.insert(0, SiteRevisions(replica))

    @property
    def is_primary_away(self) -> bool:
        return self.replica is not None and self.replica.is_primary_away

    @property
    def outage_age(self) -> float:
        """Return for how many seconds a replica has been answering without its primary."""
        return self.replica.outage_age if self.replica is not None else 0.0

    @property
    def answers_without_primary(self) -> bool:
        return self.is_primary_away and self.replica is not None and self.replica.is_available

    @asynccontextmanager
    async def transaction(self, request: ReadRequest) -> AsyncIterator[Transaction]:
        """Open a read-only transaction on the replica if it suits the request, else on the primary."""
        async with AsyncExitStack() as stack:
            tx = await self._enter_replica(stack, request)
            if tx is None:
                tx = await stack.enter_async_context(_open(self.primary, request))
            yield tx

    async def current_revision(self, host: str, request: ReadRequest | None = None) -> SiteRevision | None:
        """Return the revision that a response has to have; None if the host has no site.

        Without a replica nothing depends on the request.
        """
        if request is not None and self._may_use_replica(request):
            try:
                found = await self._revisions[0].current(host)
            except ApiError:
                _count("failed")
            else:
                if found is not None and found.revision >= request.min_revision:
                    return found
        return await self._revisions[-1].current(host)

    async def fetch_changes(self, site_id: int, sql: Sql) -> Sequence[Row]:
        """Read the changes of a site from the primary, or from the replica while the primary is away."""
        if self.replica is None:
            return await self.primary.fetch_for_site(site_id, sql)
        if not self.answers_without_primary:
            with suppress(ApiError):
                return await self.primary.fetch_for_site(site_id, sql)
        return await self.replica.database.fetch_for_site(site_id, sql)

    async def find_site_id(self, host: str) -> int | None:
        """Return the ID of the site of a host, at most a minute old unless all databases are unavailable."""
        if self.replica is not None and self.replica.is_available:
            with suppress(ApiError):
                if (site_id := await self._revisions[0].find_site_id(host)) is not None:
                    return site_id
        return await self._revisions[-1].find_site_id(host)

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None:
        """Return the revision of a host that was confirmed last and its age, unless it is older than `max_age`."""
        known = [last for revisions in self._revisions if (last := revisions.last_known(host, max_age))]
        return min(known, key=lambda last: last[1], default=None)

    def _may_use_replica(self, request: ReadRequest) -> bool:
        if self.replica is None:
            return False
        if not (request.prefers_replica or (request.accepts_replica and self.replica.is_primary_away)):
            return False
        if not self.replica.is_available:
            _count("unavailable")
            return False
        return True

    async def _enter_replica(self, stack: AsyncExitStack, request: ReadRequest) -> Transaction | None:
        """Open a transaction on the replica; return None if it is unavailable or its data is too old."""
        if self.replica is None or not self._may_use_replica(request):
            return None
        async with AsyncExitStack() as attempt:
            try:
                tx = await attempt.enter_async_context(_open(self.replica.database, request))
            except ApiError as error:
                # Another status than 503: the site is not known there yet.
                if error.status >= 500:
                    self.replica.set_unavailable()
                _count("failed")
                return None
            outcome = self._judge(self.replica, tx, request)
            _count(outcome)
            if outcome == "replica":
                await stack.enter_async_context(attempt.pop_all())
                return tx
        return None

    @staticmethod
    def _judge(replica: Replica, tx: Transaction, request: ReadRequest) -> str:
        if not replica.is_recent(tx.log_position or 0):
            return "behind"
        return "replica" if tx.site.revision >= request.min_revision else "revision"


def _open(database: SiteDatabase, request: ReadRequest) -> AbstractAsyncContextManager[Transaction]:
    return database.transaction(
        request.host, request.now, writing=False, anonymous=request.anonymous, client_ip=request.client_ip
    )


def _count(outcome: str) -> None:
    metrics.find_series(metrics.REPLICA_READS, outcome).inc()
