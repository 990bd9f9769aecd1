"""The cache tags that recent changes of each site have touched, as far as this process knows them.

A cached response stays valid after a change that touches none of its tags. Each process reads the changes itself,
once per revision and only for sites whose responses are requested. `docs/decisions/0029-exact-invalidation.md`
explains why a response that passes the check is equal to a new one.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from kalends.operations.touched_tags import Touched, read_touched, select_changes
from kalends.store import Row
from kalends.store.sql import Sql

FetchChanges = Callable[[int, Sql], Awaitable[Sequence[Row]]]

# A tag takes about 150 bytes.
MAX_TAGS_PER_SITE: Final = 20_000
MAX_TAGS: Final = 100_000
MAX_SITES: Final = 10_000


@dataclass(slots=True)
class SiteTags:
    """The touched tags of the revisions in `(floor, known]` of one site."""

    known: int
    floor: int
    last_touched: dict[str, int] = field(default_factory=dict[str, int])  # the last revision that touched each tag
    size: int = 0
    is_cut: bool = False  # whether earlier changes than those after `floor` cannot be known
    _by_revision: deque[Touched] = field(default_factory=deque[Touched])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_untouched(self, tags: Iterable[str], since: int) -> bool:
        """Return whether no change after a revision has touched any of these tags, as far as changes are known."""
        last_touched = self.last_touched
        return since >= self.floor and all(last_touched.get(tag, 0) <= since for tag in tags)

    def list_after(self, revision: int) -> list[Touched]:
        """Return the changes after a revision, the latest first."""
        return list(takewhile(lambda entry: entry.revision > revision, reversed(self._by_revision)))

    def add(self, touched: Sequence[Touched], known: int) -> None:
        for entry in touched:
            self._by_revision.append(entry)
            self.size += len(entry.tags)
            self.last_touched.update(dict.fromkeys(entry.tags, entry.revision))
        self.known = known
        while self.size > MAX_TAGS_PER_SITE:
            self._forget_oldest()

    def reset(self, known: int) -> None:
        """Forget everything: all responses from before this revision are invalid."""
        self.known = self.floor = known
        self.last_touched.clear()
        self._by_revision.clear()
        self.size = 0

    def _forget_oldest(self) -> None:
        oldest = self._by_revision.popleft()
        self.floor, self.is_cut = oldest.revision, True
        self.size -= len(oldest.tags)
        for tag in oldest.tags:
            if self.last_touched[tag] == oldest.revision:
                del self.last_touched[tag]


class TouchedTags:
    """The touched tags of all sites, of which the least recently used ones are forgotten."""

    def __init__(self, fetch: FetchChanges) -> None:
        self._fetch = fetch
        self._sites: OrderedDict[int, SiteTags] = OrderedDict()
        self._size = 0

    def find(self, site_id: int) -> SiteTags | None:
        return self._sites.get(site_id)

    async def learn(self, site_id: int, since: int, revision: int) -> SiteTags:
        """Return the tags of a site up to a revision or a later one. `since` is where to begin with a new site."""
        site = self._sites.setdefault(site_id, SiteTags(since, since))
        self._sites.move_to_end(site_id)
        async with site.lock:
            if site.known < revision:
                await self._read(site_id, site, site.known)
        return site

    async def list_changes(self, site_id: int, since: int, revision: int) -> list[Touched] | None:
        """Return the changes after `since`, the latest first; None if they are not known up to a revision."""
        site = await self.learn(site_id, since, revision)
        async with site.lock:
            if since < site.floor and not site.is_cut:
                await self._read(site_id, site, since)
        return site.list_after(since) if site.floor <= since and site.known >= revision else None

    async def _read(self, site_id: int, site: SiteTags, after: int) -> None:
        """Read the changes after a revision up to the current one.

        They must not end before it: links that an event has lost since then are known from the change that removed
        them (`touched_tags`).
        """
        rows = await self._fetch(site_id, select_changes(site_id, after))
        if rows and rows[0]["last_revision"] < site.known:
            return  # A replica that is behind.
        before = site.size
        touched = read_touched(rows, after)
        if touched is None:
            # The log has been trimmed, there are too many changes, or the site has been removed.
            site.is_cut = True
            if after == site.known:
                site.reset(rows[0]["last_revision"] if rows else site.known)
        else:
            if after < site.known:
                site.reset(after)
            site.add(touched, rows[0]["last_revision"])
        if self._sites.get(site_id) is site:
            self._size += site.size - before
            self._forget_sites()

    def _forget_sites(self) -> None:
        while len(self._sites) > 1 and (self._size > MAX_TAGS or len(self._sites) > MAX_SITES):
            _, site = self._sites.popitem(last=False)
            self._size -= site.size
