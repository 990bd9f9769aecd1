"""Which cell to ask for a site.

What a process remembers may be outdated, and that is safe: a cell answers only for sites that it serves. If it does
not know the site, the directory is queried again, and the next cell is tried.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.store.directory import Directory, Location, SiteKey
from kalends.store.known_sites import KnownSites

log = logging.getLogger(__name__)

# Seconds after which the location of a known site is looked up again, in the background.
MAX_AGE: Final = 60
# The same if its cell is unavailable.
MIN_AGE: Final = 1
# Seconds for which a host without a site is remembered, and the number of such hosts.
UNKNOWN_SECONDS: Final = 5.0
MAX_UNKNOWN: Final = 10_000
# Seconds for which a request waits for the end of a switch, and between its attempts, which become rarer.
MAX_WAIT: Final = 5.0
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.32
UNAVAILABLE: Final = 503


class CellRouter:
    """The locations of sites, from memory or from the directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._known = KnownSites()
        self._unknown: dict[SiteKey, float] = {}
        self._refreshing: set[asyncio.Task[None]] = set()
        # How often a site was not in memory, a cell did not know its site, and a request waited for a switch.
        self.counts: Counter[str] = Counter(miss=0, retry=0, wait=0)

    def search(self, key: SiteKey) -> "CellSearch":
        return CellSearch(self, key)

    async def find(self, key: SiteKey) -> Location | None:
        """Return where a site is or was at most a minute ago; None if there is no such site.

        An older location is returned as well, and refreshed afterwards, so that neither a slow directory nor one that
        is down delays a request.
        """
        known = self._known.get(key)
        if known is None:
            if self._unknown.get(key, -inf) > time.monotonic():
                return None
            self.counts["miss"] += 1
            return await self.look_up(key)
        location, second = known
        if _now() - second >= MAX_AGE:
            self._known.put(key, location, _now())
            self._refresh(key)
        return location

    async def look_up(self, key: SiteKey) -> Location | None:
        """Return where a site is according to the directory, and remember it."""
        location = await self._directory.find(key)
        if location is None:
            self._known.discard(key)
            if len(self._unknown) >= MAX_UNKNOWN:
                self._unknown.clear()
            self._unknown[key] = time.monotonic() + UNKNOWN_SECONDS
        else:
            self._known.put(key, location, _now())
        return location

    def distrust(self, key: SiteKey) -> None:
        """Look a location up again soon, because its cell is unavailable: the site may have left it before."""
        known = self._known.get(key)
        if known is not None and _now() - known[1] >= MIN_AGE:
            self._known.put(key, known[0], max(_now() - MAX_AGE, 0))

    async def close(self) -> None:
        for task in self._refreshing:
            task.cancel()
        await self._directory.close()

    async def sample_hosts(self) -> list[str]:
        return await self._directory.sample_hosts()

    def read_counts(self) -> dict[str, int]:
        """Return how often each event has happened, for metrics."""
        return {**self.counts, "lookup": self._directory.lookups}

    def _refresh(self, key: SiteKey) -> None:
        async def refresh() -> None:
            try:
                await self.look_up(key)
            except ApiError:
                log.debug("the directory is unavailable, so the location of %s stays in use", key)

        task = asyncio.create_task(refresh())
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)


class CellSearch:
    """The cells to ask for one site, until one of them knows it."""

    def __init__(self, router: CellRouter, key: SiteKey) -> None:
        self._router = router
        self._key = key
        self._location: Location | None = None
        self._waiting: list[tuple[str, int]] = []
        self._give_up_at = inf
        self._pause = FIRST_PAUSE

    async def next(self) -> tuple[str, int] | None:
        """Return the next cell to ask and the ID that the site has to have; None if there is no such site.

        Raise 503 if the directory is unavailable, or if a switch to another cell does not end in time.
        """
        if not self._waiting:
            location = await self._advance()
            if location is None:
                return None
            self._location = location
            self._waiting = [(cell, location.site_id) for cell in location.cells]
        return self._waiting.pop(0)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Ask a cell in this block; one that is unavailable may be a former one."""
        try:
            yield
        except ApiError as error:
            if error.status == UNAVAILABLE:
                self._router.distrust(self._key)
            raise

    async def _advance(self) -> Location | None:
        """Return the location to try next; None if there is none or it is the one that has just been tried."""
        tried = self._location
        if tried is None:
            return await self._router.find(self._key)
        self._router.counts["retry"] += 1
        self._give_up_at = min(self._give_up_at, time.monotonic() + MAX_WAIT)
        location = await self._router.look_up(self._key)
        if location is None or location != tried:
            return location
        if location.target is None:
            return None
        if time.monotonic() > self._give_up_at:
            raise errors.unavailable(cause="site_moving")
        self._router.counts["wait"] += 1
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        # The source does not get the site back after the switch, but the move may have ended.
        return await self._router.look_up(self._key)


def _now() -> int:
    return int(time.monotonic())
