"""Hashes of event passwords, slow to compute, so that a copy of the database does not reveal the passwords.

The salt is the secret of the site instead of one per row, because a list compares the given password with those of
all events in one statement (docs/decisions/0012-event-passwords.md).
"""

import asyncio
import hashlib
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kalends.core import credentials, errors, params
from kalends.core.params import param

# The query parameter that unlocks a protected event.
PASSWORD: Final = param("password", params.PASSWORD, "The event password")

# 32 MB of memory and 50 to 150 ms of CPU for one hash.
SCRYPT_OPTIONS: Final = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
SLOW_PREFIX: Final = b"\x01"  # marks a slow hash; hashes of earlier versions have 32 bytes and no prefix
MAX_WAITING: Final = 16
MAX_CACHED: Final = 1000


def hash_fast(secret: bytes, password: str) -> bytes:
    """Return the hash of earlier versions, which still unlocks their events."""
    return credentials.keyed_hash(secret, "event-password", password)


def hash_slowly(secret: bytes, password: str) -> bytes:
    return SLOW_PREFIX + hashlib.scrypt(password.encode(), salt=secret, **SCRYPT_OPTIONS)


class PasswordHashes:
    """Computes slow hashes one at a time in a separate thread, and caches those of passwords in use.

    A hash is cached only after its password unlocked an event or was set, so that guesses neither benefit from the
    cache nor evict entries. The fast hash is the key, so that no password stays in memory.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "event-passwords")
        self._waiting = 0
        self._cached: OrderedDict[bytes, bytes] = OrderedDict()

    async def compute(self, secret: bytes, password: str) -> bytes:
        """Return the slow hash; raise 503 while too many computations are waiting."""
        fast = hash_fast(secret, password)
        if fast in self._cached:
            self._cached.move_to_end(fast)
            return self._cached[fast]
        if self._waiting >= MAX_WAITING:
            raise errors.overloaded()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, hash_slowly, secret, password)
        finally:
            self._waiting -= 1

    async def compute_and_add(self, secret: bytes, password: str) -> bytes:
        """Return the slow hash of a new password and cache it."""
        slow = await self.compute(secret, password)
        self.add(hash_fast(secret, password), slow)
        return slow

    def add(self, fast: bytes, slow: bytes) -> None:
        self._cached[fast] = slow
        while len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)


HASHES: Final = PasswordHashes()
