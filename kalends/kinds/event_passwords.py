"""Event passwords as the database holds them: hashed slowly, so that a copy of it does not give them away.

The salt is the secret of the site and not one of each row, because a list compares the password that was sent with
those of all events in one statement (docs/decisions/0012-event-passwords.md).
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
COST: Final = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
SLOW: Final = b"\x01"  # in front of a slow hash; hashes of earlier versions have 32 bytes and nothing in front
MAX_WAITING: Final = 16
MAX_KEPT: Final = 1000


def hash_fast(secret: bytes, password: str) -> bytes:
    """Return the form in which earlier versions stored a password; it still opens their events."""
    return credentials.keyed_hash(secret, "event-password", password)


def hash_slowly(secret: bytes, password: str) -> bytes:
    return SLOW + hashlib.scrypt(password.encode(), salt=secret, **COST)


class PasswordHashes:
    """Computes slow hashes in a thread of its own, one at a time, and keeps those of passwords that are in use.

    A hash is kept only when its password has opened an event or was set: guesses neither save time nor push out
    what readers use. Kept ones are found by the fast hash, so that no password stays in memory.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "event-passwords")
        self._waiting = 0
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()

    async def compute(self, secret: bytes, password: str) -> bytes:
        """Return the slow hash; raise 503 while too many others wait for theirs."""
        name = hash_fast(secret, password)
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        if self._waiting >= MAX_WAITING:
            raise errors.unavailable()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, hash_slowly, secret, password)
        finally:
            self._waiting -= 1

    async def set(self, secret: bytes, password: str) -> bytes:
        """Return the hash of a new password, and keep it."""
        found = await self.compute(secret, password)
        self.keep(hash_fast(secret, password), found)
        return found

    def keep(self, fast: bytes, slow: bytes) -> None:
        self._kept[fast] = slow
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


HASHES: Final = PasswordHashes()
