"""The revision of a site as of now, for caches. Requests that wait at the same time share one question.

The last answer for each host is remembered, so that caches can still be used for a while when the database is away.

A question is sent only after every request that it answers has arrived: what it finds includes
every write that was acknowledged before any of them.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from math import inf

from kalends.core.errors import Refusal
from kalends.store.database import LOOKUP_SECONDS, Database
from kalends.store.sql import Sql

# A single site answers to every host, so the number of hosts that are remembered has to be bounded.
REMEMBERED_HOSTS = 1000
# Files of images are served without asking which site a host has, if that was asked within this time.
REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteClock:
    site_id: int
    revision: int


@dataclass(slots=True)
class _Question:
    hosts: set[str] = field(default_factory=set[str])
    answer: "asyncio.Future[dict[str, SiteClock]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Clocks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._next: _Question | None = None
        self._asking: asyncio.Task[None] | None = None
        self._last: OrderedDict[str, tuple[SiteClock, float]] = OrderedDict()

    async def current(self, host: str) -> SiteClock | None:
        """None: no site answers to this host."""
        question = self._next
        if question is None:
            question = self._next = _Question()
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
        question.hosts.add(host)
        return (await asyncio.shield(question.answer)).get(host)

    async def find_site(self, host: str) -> int | None:
        """Returns the ID of the site of a host, as of a minute ago at most unless the database is away."""
        known = self.last(host, REMEMBERED_SECONDS)
        if known is None:
            try:
                clock = await self.current(host)
            except Refusal:
                known = self.last(host, inf)
                if known is None:
                    raise
            else:
                return clock.site_id if clock else None
        return known[0].site_id

    def last(self, host: str, seconds: float) -> tuple[SiteClock, float] | None:
        """Returns the last known clock of a host and its age, if that is at most so many seconds."""
        known = self._last.get(host)
        age = time.monotonic() - known[1] if known else 0.0
        return (known[0], age) if known and age <= seconds else None

    def _remember(self, asked: set[str], found: dict[str, SiteClock]) -> None:
        """Replaces what was known of the hosts that were asked for; some have no site any more."""
        now = time.monotonic()
        for host in asked - found.keys():
            self._last.pop(host, None)
        for host, clock in found.items():
            self._last[host] = (clock, now)
            self._last.move_to_end(host)
        while len(self._last) > REMEMBERED_HOSTS:
            self._last.popitem(last=False)

    async def _ask(self) -> None:
        """Asks until nobody waits any more; one question is under way at a time."""
        while (question := self._next) is not None:
            self._next = None
            try:
                rows = await self._database.ask(
                    Sql("SELECT host, site_id, revision FROM site_clocks(?)", list(question.hosts)),
                    seconds=LOOKUP_SECONDS,
                )
            except Exception as error:  # Whoever waits is told; the next question is asked all the same.
                question.answer.set_exception(error)
                question.answer.exception()
                continue
            found = {row["host"]: SiteClock(row["site_id"], row["revision"]) for row in rows}
            self._remember(question.hosts, found)
            question.answer.set_result(found)
        self._asking = None
