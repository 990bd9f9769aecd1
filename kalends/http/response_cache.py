"""Answers kept in memory, each right as long as its site is at the revision it was made at."""

import gzip
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime

from kalends.store.site_revisions import SiteClock

# Below this size compressing costs more than it saves.
LEAST_TO_COMPRESS = 1024


@dataclass(slots=True)
class Page:
    """One answer. `until` is when the clock alone makes it wrong, such as midnight for the default list."""

    site_id: int
    revision: int
    until: datetime | None
    headers: list[tuple[bytes, bytes]]
    etag: str
    body: bytes
    route: str
    _compressed: bytes | None = field(default=None)

    def compressed(self) -> bytes | None:
        """Compressed once, when first asked for; None where it is not worth it."""
        if self._compressed is None:
            if len(self.body) < LEAST_TO_COMPRESS:
                return None
            self._compressed = gzip.compress(self.body, 6, mtime=0)
        return self._compressed


class Pages:
    """The most recently used answers, within a budget of bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._pages: OrderedDict[object, Page] = OrderedDict()

    def get(self, key: object, clock: SiteClock, now: datetime) -> Page | None:
        page = self._pages.get(key)
        if page is None:
            return None
        late = page.until is not None and now >= page.until
        # A host may come to belong to another site.
        if late or page.site_id != clock.site_id or page.revision < clock.revision:
            self._drop(key)
            return None
        self._pages.move_to_end(key)
        return page

    def put(self, key: object, page: Page) -> None:
        self._drop(key)
        self._size += _weight(page)
        self._pages[key] = page
        while self._size > self._budget and self._pages:
            self._drop(next(iter(self._pages)))

    def _drop(self, key: object) -> None:
        page = self._pages.pop(key, None)
        if page is not None:
            self._size -= _weight(page)


def _weight(page: Page) -> int:
    """Twice the body: room for its compressed form, whenever that is made."""
    return 2 * (len(page.body) + 1000)
