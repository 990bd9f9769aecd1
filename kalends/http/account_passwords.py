"""Hashing and verifying account passwords in threads, with a limit on their number.

A hash takes 64 MB of memory and a tenth of a second on purpose. Without a limit, a hundred simultaneous attempts
would use 6.4 GB and all threads of the process.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from kalends.core import credentials
from kalends.core.limiter import ConcurrencyLimits, PerOwnerLimiter
from kalends.core.throttle import rate_limit_key

# One client can neither keep both threads busy nor fill the queue.
LIMITS: Final = ConcurrencyLimits(per_owner=1, total=2, waiting_per_owner=4, waiting=16)
# Seconds that an attempt waits before it is rejected with 503.
MAX_WAIT: Final = 5.0


class AccountPasswords:
    """Hashes and verifies the passwords of accounts. Raises 503 if too many attempts are waiting."""

    def __init__(self) -> None:
        self._limiter = PerOwnerLimiter(LIMITS)
        self._threads = ThreadPoolExecutor(LIMITS.total, thread_name_prefix="account-password")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def verify(self, stored: str, password: str, client_ip: str) -> bool:
        """Return whether a password matches its hash; an empty hash takes as long and matches none."""
        return await self._run(lambda: credentials.verify_account_password(stored, password), client_ip)

    async def hash(self, password: str, client_ip: str) -> str:
        return await self._run(lambda: credentials.hash_account_password(password), client_ip)

    async def _run[T](self, work: Callable[[], T], client_ip: str) -> T:
        """Run work in a thread. If the client disconnects, it still counts until the thread has finished."""
        task = asyncio.create_task(self._run_in_slot(work, client_ip))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Nobody awaits the task of a client that has disconnected.

    async def _run_in_slot[T](self, work: Callable[[], T], client_ip: str) -> T:
        async with self._limiter.slot(rate_limit_key(client_ip), MAX_WAIT):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
