"""Fetching the file of a source from its URL."""

import asyncio
import hashlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from kalends.adapters.safe_fetch import Fetcher, FetchResponse
from kalends.core.egress import AllowedNetwork, read_target
from kalends.core.errors import InvalidValue

MAX_BYTES: Final = 10_000_000
# Imports have their own limit, so that slow calendars do not delay the fetching of images.
MAX_CONCURRENT: Final = 4
FETCH_TIMEOUT: Final = 30.0
MAX_VALIDATOR_LENGTH: Final = 500
ACCEPT: Final = (
    "text/calendar, text/csv, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, */*;q=0.5"
)
CALENDAR_SCHEMES: Final = ("webcal://", "webcals://")
_CHUNK: Final = 256 * 1024
_GZIP: Final = b"\x1f\x8b"
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A fetched file: its size after decompression, its hash, and what the next request sends to get it once only."""

    size: int
    sha256: bytes
    etag: str
    last_modified: str
    seconds: float


def make_fetcher(allowed_networks: Sequence[AllowedNetwork] = ()) -> Fetcher:
    """Return a client for imports, with limits of its own."""
    return Fetcher(allowed_networks, seconds=FETCH_TIMEOUT, max_concurrent=MAX_CONCURRENT)


def read_source_url(text: str) -> str:
    """Return the URL of a source as it is stored. Raise InvalidValue unless it is one of a public server.

    Programs give `webcal` as the scheme of calendars; it means https. Credentials are refused, because the URL is
    stored and shown.
    """
    url = text.strip()
    scheme = next((scheme for scheme in CALENDAR_SCHEMES if url.lower().startswith(scheme)), None)
    url = f"https://{url[len(scheme) :]}" if scheme else url
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise InvalidValue("must not contain a user name or a password.")
    read_target(url)
    return url


async def fetch_source(
    fetcher: Fetcher, url: str, etag: str, last_modified: str, into: BinaryIO
) -> FetchedFile | None:
    """Fetch a file into `into`; return None if it has not changed since the request with these validators.

    Raise InvalidValue if that is not allowed or fails. Messages never contain what the server sent.
    """
    validators = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    headers = {"Accept": ACCEPT, **{name: value for name, value in validators.items() if value}}
    begun = time.perf_counter()
    response = await fetcher.get(read_source_url(url), into, limit=MAX_BYTES, headers=headers)
    seconds = time.perf_counter() - begun
    if response.status == 304 and (etag or last_modified):
        return None
    if response.status != 200:
        raise InvalidValue(
            "the remote server responded with {status} after {seconds} s.",
            status=response.status,
            seconds=f"{seconds:.1f}",
        )
    size, sha256 = await asyncio.to_thread(_finish, response, into)
    return FetchedFile(
        size, sha256, _read_validator(response, "etag"), _read_validator(response, "last-modified"), seconds
    )


def _finish(response: FetchResponse, into: BinaryIO) -> tuple[int, bytes]:
    """Decompress the file if necessary, and return its size and hash."""
    if response.size == 0:
        raise InvalidValue("the remote server sent an empty file.")
    if _is_compressed(response, into):
        _decompress(into)
    into.seek(0)
    content = into.read()
    into.seek(0)
    return len(content), hashlib.sha256(content).digest()


def _is_compressed(response: FetchResponse, into: BinaryIO) -> bool:
    """Return whether the file is compressed, which was not requested; raise for encodings other than gzip."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise InvalidValue("the remote server sent a compressed file that cannot be read; only gzip is supported.")
    into.seek(0)
    return encoding in ("gzip", "x-gzip", "deflate") or into.read(2) == _GZIP


def _decompress(into: BinaryIO) -> None:
    """Replace compressed content; its size is limited while it is decompressed, because a bomb has a small file."""
    into.seek(0)
    compressed, output = into.read(), bytearray()
    decompressor = zlib.decompressobj(_ANY_HEADER)
    try:
        pending = compressed
        while pending and not decompressor.eof:
            output += decompressor.decompress(pending, _CHUNK)
            pending = decompressor.unconsumed_tail
            if len(output) > MAX_BYTES:
                raise InvalidValue("exceeds {limit} bytes after decompression.", limit=MAX_BYTES)
    except zlib.error:
        raise _incomplete() from None
    if not decompressor.eof:
        raise _incomplete()
    into.seek(0)
    into.truncate()
    into.write(output)


def _incomplete() -> InvalidValue:
    return InvalidValue("the remote server sent a compressed file that is damaged or incomplete.")


def _read_validator(response: FetchResponse, name: str) -> str:
    """Return a header for the next request; one that cannot be sent back is ignored."""
    value = response.headers.get(name, "")
    is_usable = len(value) <= MAX_VALIDATOR_LENGTH and value.isascii() and value.isprintable()
    return value if is_usable else ""
