"""Follows the change logs of all sites: finds consumers with work, leases them, and calls their handlers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.push.storage import log_consumers
from kalends.push.storage.log_consumers import Lease, LeaseLost
from kalends.store.database import Database
from kalends.store.job_queue import skipping_unknown_sites

log = logging.getLogger(__name__)

# Returns whether it has released the lease with its last statement.
type Handler = Callable[[Lease], Awaitable[bool]]

POLL_SECONDS: Final = 1.0
# After work was found. Writes come in series.
BUSY_POLL_SECONDS: Final = 0.5
RENEWAL_SECONDS: Final = 10.0
MAX_CONSUMERS: Final = 64  # handled at a time by one process
# How long a consumer rests after an error in its handler.
ERROR_DELAY: Final = timedelta(seconds=30)


class Follower:
    """Runs the handlers of consumers, one task per consumer. `handlers` are by the kind of consumer."""

    def __init__(self, database: Database, handlers: Mapping[str, Handler]) -> None:
        self._database = database
        self._handlers = handlers
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_reachable = True

    async def run(self) -> None:
        """Look for work until cancelled: once per second while there is none. At the end, release all leases."""
        try:
            while True:
                has_work = len(self._tasks) < MAX_CONSUMERS and await self._start_tasks()
                await asyncio.sleep(BUSY_POLL_SECONDS if has_work else POLL_SECONDS)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _start_tasks(self) -> bool:
        """Start a task for each consumer with work; return whether there are any."""
        try:
            leases = await log_consumers.take_consumers(self._database, MAX_CONSUMERS - len(self._tasks))
        except Exception as error:  # Deliveries must go on once the database does.
            if self._is_reachable:
                log.warning("cannot look for changes: %r", error)
            self._is_reachable = False
            return False
        self._is_reachable = True
        for lease in leases:
            task = asyncio.create_task(self._handle(lease))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return bool(leases)

    async def _handle(self, lease: Lease) -> None:
        delay: timedelta | None = None
        is_released = False
        renewal = asyncio.create_task(self._renew(lease))
        try:
            with skipping_unknown_sites():
                is_released = await self._handlers[lease.kind](lease)
        except LeaseLost:
            delay = ERROR_DELAY  # if its endpoint no longer exists
        except ApiError as error:
            log.warning("consumer %s of site %s: %s", lease.consumer, lease.site_id, error.message)
            delay = timedelta(seconds=POLL_SECONDS)
        except Exception:
            log.exception("consumer %s of site %s", lease.consumer, lease.site_id)
            delay = ERROR_DELAY
        finally:
            renewal.cancel()
            if not is_released:
                with suppress(ApiError):  # Without a database, the lease expires.
                    await asyncio.shield(self._release(lease, delay))

    async def _release(self, lease: Lease, delay: timedelta | None) -> None:
        now = utc_now()
        async with self._database.transaction(lease.site_id, now, writing=True) as tx:
            await log_consumers.release_lease(tx, lease, now + delay if delay else None)

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with suppress(ApiError, LeaseLost):
                async with self._database.transaction(lease.site_id, utc_now(), writing=True) as tx:
                    await log_consumers.renew(tx, lease)
