"""Fair shares: bounds the work in progress, for each owner and in total.

Whoever finds no room waits a moment for a turn; owners with the least work in progress go first. Beyond the
bounds of the queue, or after that moment, the work is refused instead of delayed.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kalends.core import errors


@dataclass(frozen=True, slots=True)
class Shares:
    """The bounds: in progress and waiting, for one owner and in total."""

    per_owner: int
    total: int
    waiting_per_owner: int = 20
    waiting: int = 200


class Turns:
    """Hands out turns to owners of work, such as clients or users."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._running: Counter[Hashable] = Counter()
        self._in_progress = 0
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._waiting = 0

    @asynccontextmanager
    async def of(self, owner: Hashable, patience: float | None = None) -> AsyncIterator[None]:
        """Holds a turn of this owner; `patience` is the number of seconds to wait for it, None: any."""
        await self._enter(owner, patience)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: Hashable, patience: float | None) -> None:
        if self._in_progress < self._shares.total and self._running[owner] < self._shares.per_owner:
            self._begin(owner)
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._shares.waiting_per_owner or self._waiting >= self._shares.waiting:
            self._forget(owner)
            raise errors.unavailable()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._leave(owner)  # The turn came at the moment of giving up.
            elif turn in queue:
                queue.remove(turn)
                self._waiting -= 1
                self._forget(owner)
            raise (errors.unavailable() if isinstance(error, TimeoutError) else error) from error

    def _begin(self, owner: Hashable) -> None:
        self._running[owner] += 1
        self._in_progress += 1

    def _leave(self, owner: Hashable) -> None:
        self._running[owner] -= 1
        self._in_progress -= 1
        self._forget(owner)
        while self._in_progress < self._shares.total and (following := self._next()) is not None:
            queue = self._queues.pop(following)
            turn = queue.popleft()
            self._waiting -= 1
            self._queues[following] = queue  # Behind the others: it has had its turn.
            if not turn.cancelled():
                self._begin(following)
                turn.set_result(None)
            self._forget(following)

    def _next(self) -> Hashable | None:
        """Returns the waiting owner with the least work in progress; among equals, the one that waits longest."""
        eligible = [owner for owner in self._queues if self._running[owner] < self._shares.per_owner]
        return min(eligible, key=lambda owner: self._running[owner], default=None)

    def _forget(self, owner: Hashable) -> None:
        """Keeps no trace of owners without work."""
        if not self._running[owner]:
            del self._running[owner]
        if owner in self._queues and not self._queues[owner]:
            del self._queues[owner]
