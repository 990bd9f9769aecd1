"""Lookups that are batched: one query at a time, each for all keys that were requested since the last one began.

A query starts after all requests it serves, so it sees everything that was committed before them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Batch[K: Hashable, V]:
    keys: set[K] = field(default_factory=set[K])
    result: "asyncio.Future[Mapping[K, V]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class BatchedLookup[K: Hashable, V]:
    def __init__(self, fetch: Callable[[set[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._fetch = fetch
        self._next_batch: _Batch[K, V] | None = None
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: K) -> V | None:
        """Return the value of a key, or None if the next query does not find it."""
        batch = self._next_batch
        if batch is None:
            batch = self._next_batch = _Batch[K, V]()
            if self._task is None:
                self._task = asyncio.create_task(self._run_batches())
        batch.keys.add(key)
        return (await asyncio.shield(batch.result)).get(key)

    async def _run_batches(self) -> None:
        """Run one batch at a time until no request is waiting."""
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
