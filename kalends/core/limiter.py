"""Fair concurrency limits, per owner and in total.

If no slot is free, work waits; owners with the least work in progress go first. If the queue is full or the wait is
too long, the work is rejected.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, Self

from kalends.core import errors

# Writes of one user to one site that may wait at the same time, in one process.
MAX_WAITING_WRITES: Final = 2


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """Maximum numbers of running and waiting tasks, per owner and in total."""

    per_owner: int
    total: int
    waiting_per_owner: int = 20
    waiting: int = 200


ONE_WRITE: Final = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=MAX_WAITING_WRITES, waiting=1000)


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

    @property
    def is_idle(self) -> bool:
        return not self._in_progress and not self._waiting

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
        if owner in self._queues:
            self._queues[owner] = self._queues.pop(owner)  # Others go first now, even if they began to wait later.
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


class WriteTurns:
    """Lets the users of a site write in turn: one with many writes delays another user by a single write.

    The turns are those of one process. Between processes, the lock of the site decides.
    """

    def __init__(self) -> None:
        self._by_site: dict[int, PerOwnerLimiter] = {}
        self._waiting: Counter[tuple[int, int]] = Counter()

    async def take(self, site_id: int, user_id: int) -> None:
        """Wait for the turn of a user."""
        limiter = self._by_site.setdefault(site_id, PerOwnerLimiter(ONE_WRITE))
        try:
            await limiter.acquire(user_id, None)
        finally:
            self._discard_idle(site_id)

    def end(self, site_id: int, user_id: int) -> None:
        self._by_site[site_id].release(user_id)
        self._discard_idle(site_id)

    def _discard_idle(self, site_id: int) -> None:
        # A cancelled write may notice its end after the limiter has been discarded.
        limiter = self._by_site.get(site_id)
        if limiter is not None and limiter.is_idle:
            del self._by_site[site_id]

    @contextmanager
    def waiting(self, site_id: int, user_id: int) -> Iterator[None]:
        """Count a write as waiting; raise 429 if too many writes of its user do."""
        key = (site_id, user_id)
        if self._waiting[key] >= MAX_WAITING_WRITES:
            raise errors.too_many_writes()
        self._waiting[key] += 1
        try:
            yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]


@dataclass(slots=True)
class WriteTurn:
    """The turn of one transaction, which ends with this context."""

    turns: WriteTurns
    key: tuple[int, int] | None = None  # site and user, while it is their turn

    @asynccontextmanager
    async def waiting(self, site_id: int, user_id: int) -> AsyncIterator[None]:
        """Wait for the turn. Until the end of this block, the write counts as waiting for the lock."""
        if self.key is not None:  # An operation may lock the site that its caller has locked.
            yield
            return
        with self.turns.waiting(site_id, user_id):
            await self.turns.take(site_id, user_id)
            self.key = (site_id, user_id)
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.key is not None:
            self.turns.end(*self.key)
