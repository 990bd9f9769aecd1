"""Fair concurrency limits, per owner and in total.

If no slot is free, work waits; owners with the least work in progress go first. If the queue is full or the wait is
too long, the work is rejected.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass

from kalends.core import errors


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """Maximum numbers of running and waiting tasks, per owner and in total."""

    per_owner: int
    total: int
    waiting_per_owner: int = 20
    waiting: int = 200


class PerOwnerLimiter:
    """Assigns slots to owners of work, such as clients or users."""

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._running: Counter[Hashable] = Counter()
        self._in_progress = 0
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Return the number of tasks that wait for a slot."""
        return self._waiting

    def slot(self, owner: Hashable, max_wait: float | None = None) -> "Slot":
        """Hold a slot for an owner; wait up to `max_wait` seconds for it, or without limit if None."""
        return Slot(self, owner, max_wait)

    async def acquire(self, owner: Hashable, max_wait: float | None) -> None:
        if self._in_progress < self._limits.total and self._running[owner] < self._limits.per_owner:
            self._begin(owner)
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._limits.waiting_per_owner or self._waiting >= self._limits.waiting:
            self._discard_idle(owner)
            raise errors.overloaded()
        waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        self._waiting += 1
        try:
            async with asyncio.timeout(max_wait):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self.release(owner)  # The slot was assigned at the moment of the timeout.
            elif waiter in queue:
                queue.remove(waiter)
                self._waiting -= 1
                self._discard_idle(owner)
            raise (errors.overloaded() if isinstance(error, TimeoutError) else error) from error

    def _begin(self, owner: Hashable) -> None:
        self._running[owner] += 1
        self._in_progress += 1

    def release(self, owner: Hashable) -> None:
        self._running[owner] -= 1
        self._in_progress -= 1
        self._discard_idle(owner)
        while self._in_progress < self._limits.total and (next_owner := self._next_owner()) is not None:
            queue = self._queues.pop(next_owner)
            waiter = queue.popleft()
            self._waiting -= 1
            self._queues[next_owner] = queue  # Move the owner behind the others.
            if not waiter.cancelled():
                self._begin(next_owner)
                waiter.set_result(None)
            self._discard_idle(next_owner)

    def _next_owner(self) -> Hashable | None:
        """Return the waiting owner with the least work in progress; among equals, the one that has waited longest."""
        eligible = [owner for owner in self._queues if self._running[owner] < self._limits.per_owner]
        return min(eligible, key=lambda owner: self._running[owner], default=None)

    def _discard_idle(self, owner: Hashable) -> None:
        """Forget an owner without work."""
        if not self._running[owner]:
            del self._running[owner]
        if owner in self._queues and not self._queues[owner]:
            del self._queues[owner]


@dataclass(frozen=True, slots=True)
class Slot:
    """A context in which an owner holds a slot. Every request needs one, so it is cheaper than a generator."""

    limiter: PerOwnerLimiter
    owner: Hashable
    max_wait: float | None

    async def __aenter__(self) -> None:
        await self.limiter.acquire(self.owner, self.max_wait)

    async def __aexit__(self, *_: object) -> None:
        self.limiter.release(self.owner)
