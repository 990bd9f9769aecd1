"""The revision of a site as of now, for caches. Requests that wait at the same time share one question.

A question is sent only after every request that it answers has arrived: what it finds includes
every write that was acknowledged before any of them.
"""

import asyncio
from dataclasses import dataclass, field

from kalends.store.database import Database
from kalends.store.sql import Sql


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

    async def current(self, host: str) -> SiteClock | None:
        """None: no site answers to this host."""
        question = self._next
        if question is None:
            question = self._next = _Question()
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
        question.hosts.add(host)
        return (await asyncio.shield(question.answer)).get(host)

    async def _ask(self) -> None:
        """Asks until nobody waits any more; one question is under way at a time."""
        while (question := self._next) is not None:
            self._next = None
            try:
                rows = await self._database.ask(
                    Sql("SELECT host, site_id, revision FROM site_clocks(?)", list(question.hosts))
                )
            except Exception as error:  # Whoever waits is told; the next question is asked all the same.
                question.answer.set_exception(error)
                question.answer.exception()
                continue
            question.answer.set_result({row["host"]: SiteClock(row["site_id"], row["revision"]) for row in rows})
        self._asking = None
