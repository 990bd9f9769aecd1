"""Which site a host names, remembered for a minute."""

import time
from typing import Final

from kalends.core.errors import Refusal
from kalends.store.clocks import Clocks

MAX_HOSTS: Final = 1000
SECONDS: Final = 60.0


class Hosts:
    """Remembers the sites of hosts, so that files of images are served without a query, and while it would fail."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._known: dict[str, tuple[int, float]] = {}

    async def find_site(self, host: str) -> int | None:
        """Return the number of the site; None if no site answers to this host."""
        known, now = self._known.get(host), time.monotonic()
        if known is not None and now < known[1] + SECONDS:
            return known[0]
        try:
            clock = await self._clocks.current(host)
        except Refusal:
            if known is None:
                raise
            return known[0]
        if len(self._known) >= MAX_HOSTS:
            self._known.clear()
        if clock is None:
            self._known.pop(host, None)
            return None
        self._known[host] = (clock.site_id, now)
        return clock.site_id
