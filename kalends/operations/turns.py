"""Turns: what one of many may have in hand at a time, so that nobody waits long behind somebody else's work."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from kalends.core import errors

AT_ONCE: Final = 3
WAITING: Final = 20
IN_ALL: Final = 200


class _Queue:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE)
        self.length = 0


class Turns:
    """Each owner has a few pieces of work in hand, and some that wait; more are asked to come again."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}
        self._length = 0

    @asynccontextmanager
    async def of(self, owner: Hashable) -> AsyncIterator[None]:
        queue = self._queues.setdefault(owner, _Queue())
        if queue.length >= AT_ONCE + WAITING or self._length >= IN_ALL:
            raise errors.unavailable()
        queue.length += 1
        self._length += 1
        try:
            async with queue.free:
                yield
        finally:
            queue.length -= 1
            self._length -= 1
            if not queue.length:
                del self._queues[owner]
