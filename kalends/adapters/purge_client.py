"""Remove outdated responses from shared caches with PURGE requests."""

from collections.abc import Iterable
from typing import Final

import httpcore

# Timeout in seconds, applied separately to connecting, sending and receiving.
TIMEOUT: Final = 2.0


async def send_purges(url: str, tag_headers: Iterable[str]) -> None:
    """Send one PURGE request per header value to a shared cache. Raise OSError if it does not respond with 200."""
    timeout = {"connect": TIMEOUT, "read": TIMEOUT, "write": TIMEOUT, "pool": TIMEOUT}
    async with httpcore.AsyncConnectionPool(max_connections=1) as pool:
        for tags in tag_headers:
            response = await pool.request("PURGE", url, headers={"xkey": tags}, extensions={"timeout": timeout})
            if response.status != 200:
                raise OSError(f"{url} responded to PURGE with {response.status}")
