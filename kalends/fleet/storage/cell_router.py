"""Find the cell that serves a site.

A remembered location may be outdated. That is safe, because a cell answers only for sites that it serves. If a cell
does not have the site, the router asks the directory again and tries the next cell.
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
from kalends.fleet.storage.directory import Directory, Location, SiteKey

# Only the cells of recently used sites are kept in memory, at about 170 bytes per host.

# Maximum entries in each of two generations. When the new generation is full, it replaces the old one.
GENERATION_SIZE: Final = 50_000
# An entry's bits, lowest first: seconds, cell number, site ID.
SECONDS_BITS: Final = 32
CELL_BITS: Final = 12


class KnownSites:
    """Site locations read from the directory, with the time of each lookup.

    An entry is one integer, because an object with three attributes would take twice the memory. An entry does not
    say whether the site is moving; only the directory records that.
    """

    def __init__(self) -> None:
        self._new: dict[SiteKey, int] = {}
        self._old: dict[SiteKey, int] = {}
        self._cells: list[str] = []

    def get(self, key: SiteKey) -> tuple[Location, int] | None:
        """Return a site's location and the time at which it was looked up, in seconds."""
        entry = self._new.get(key)
        if entry is None:
            entry = self._old.pop(key, None)
            if entry is None:
                return None
            self._store(key, entry)
        rest, second = entry >> SECONDS_BITS, entry & ((1 << SECONDS_BITS) - 1)
        cell = self._cells[rest & ((1 << CELL_BITS) - 1)]
        return Location(rest >> CELL_BITS, cell), second

    def put(self, key: SiteKey, location: Location, second: int) -> None:
        if location.cell not in self._cells:
            self._cells.append(location.cell)
        number = self._cells.index(location.cell)
        self._store(key, ((location.site_id << CELL_BITS | number) << SECONDS_BITS) | second)

    def discard(self, key: SiteKey) -> None:
        self._new.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def _store(self, key: SiteKey, entry: int) -> None:
        if len(self._new) >= GENERATION_SIZE:
            self._old, self._new = self._new, {}
        self._new[key] = entry


log = logging.getLogger(__name__)

# Seconds after which a known site's location is looked up again in the background.
MAX_AGE: Final = 60
# The same interval while the site's cell is unavailable.
MIN_AGE: Final = 1
# How many seconds to remember that a host has no site, and the maximum number of such hosts.
UNKNOWN_SECONDS: Final = 5.0
MAX_UNKNOWN: Final = 10_000
# Seconds: a request's maximum wait for a switch, and its first and longest pause between lookups.
MAX_WAIT: Final = 5.0
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.32
UNAVAILABLE: Final = 503


class CellRouter:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._known = KnownSites()
        self._unknown: dict[SiteKey, float] = {}
        self._refreshing: set[asyncio.Task[None]] = set()
        # Lookups for sites not in memory, lookups after a cell did not have the site, and waits for a switch.
        self.counts: Counter[str] = Counter(miss=0, retry=0, wait=0)

    def search(self, key: SiteKey) -> "CellSearch":
        return CellSearch(self, key)

    async def find(self, key: SiteKey) -> Location | None:
        """Return a site's location; None if there is no such site.

        A location older than a minute is still returned, and is then refreshed in the background. This keeps a slow
        or unavailable directory from delaying requests.
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
        """Look up a site's location in the directory, and remember it."""
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
        """Look up a location again soon, because its cell is unavailable and the site may have moved earlier."""
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
    """Tries cells for one site until one of them has it."""

    def __init__(self, router: CellRouter, key: SiteKey) -> None:
        self._router = router
        self._key = key
        self._location: Location | None = None
        self._waiting: list[tuple[str, int]] = []
        self._give_up_at = inf
        self._pause = FIRST_PAUSE

    async def next(self) -> tuple[str, int] | None:
        """Return the next cell to try, with the site ID expected there; None if no cell is left to try.

        Raise 503 if the directory is unavailable, or if moving the site to another cell takes too long.
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
        """Access a cell in this context.

        If the cell is unavailable, look up the site again soon, because it may have moved.
        """
        try:
            yield
        except ApiError as error:
            if error.status == UNAVAILABLE:
                self._router.distrust(self._key)
            raise

    async def _advance(self) -> Location | None:
        """Return the next location to try, or None if there is none or the location has just been tried."""
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
        # The move may have ended during the pause, so look up the location again.
        return await self._router.look_up(self._key)


def _now() -> int:
    return int(time.monotonic())
