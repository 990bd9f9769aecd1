"""Fetches web pages for people who are waiting, and reads their events."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from kalends.adapters.sandbox import Limits
from kalends.core.egress import AllowedNetwork
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.imports.operations.sources import fetch_file
from kalends.imports.rules.import_records import ParsedSource

if TYPE_CHECKING:
    from kalends.adapters.safe_fetch import Fetcher

MAX_BYTES: Final = 2_000_000
MAX_CONCURRENT: Final = 2
ACCEPT: Final = "text/html, application/xhtml+xml, */*;q=0.1"
LIMITS: Final = Limits(megabytes=512, file_megabytes=16, cpu_seconds=5, timeout=20.0, niceness=5)


class PageReader:
    def __init__(self, allowed_networks: Sequence[AllowedNetwork] = ()) -> None:
        self._allowed_networks = allowed_networks
        self._worker = ImportWorker(MAX_CONCURRENT, LIMITS)
        self._fetcher: Fetcher | None = None

    async def read(self, url: str) -> tuple[str, ParsedSource]:
        """Return a page's URL after redirects, and its events.

        Raise InvalidValue if the page may not be fetched, cannot be read within the limits or has no event.
        """
        with TemporaryDirectory(prefix="kalends-page-") as directory:
            path = Path(directory) / "page"
            with path.open("w+b") as into:
                fetched = await fetch_file(self._get_fetcher(), url, "", "", into, limit=MAX_BYTES, accept=ACCEPT)
            if fetched is None:
                raise AssertionError("only a request with validators has no content")
            options = {"url": fetched.url, "content_type": fetched.content_type}
            return fetched.url, await self._worker.parse(path, "html", options)

    def _get_fetcher(self) -> "Fetcher":
        """Return the fetcher, imported on first use because most processes never need it."""
        from kalends.adapters.safe_fetch import Fetcher

        if self._fetcher is None:
            self._fetcher = Fetcher(self._allowed_networks)
        return self._fetcher
