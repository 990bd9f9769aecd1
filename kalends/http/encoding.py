"""Compression of responses, as far as the client accepts it."""

import asyncio
import gzip
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

# Smaller bodies cost more to compress than compression saves.
MIN_COMPRESSED_BYTES: Final = 1024
# Larger bodies are compressed in a thread: a feed of thousands of events would block the event loop.
MIN_THREAD_BYTES: Final = 256 * 1024
ZERO_QUALITY: Final = re.compile(r"q\s*=\s*0?\.?0*")


async def compress(body: bytes) -> bytes | None:
    """Return the compressed body; None if compression is not worthwhile."""
    if len(body) < MIN_COMPRESSED_BYTES:
        return None
    return await asyncio.to_thread(_gzip, body) if len(body) >= MIN_THREAD_BYTES else _gzip(body)


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


async def compress_response(request: Request, response: Response) -> None:
    """Compress the body of a response, if it has one that is worthwhile and the client accepts that."""
    if "content-encoding" in response.headers or not accepts_gzip(request.headers.get("accept-encoding", "")):
        return
    if packed := await compress(bytes(response.body)):
        response.body = packed
        response.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(packed))})
        response.headers["Vary"] = "Accept-Encoding"


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header accepts gzip; `gzip;q=0` and `*;q=0` do not."""
    accepted: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, *parameters = [piece.strip() for piece in part.split(";")]
        accepted[name] = not any(ZERO_QUALITY.fullmatch(parameter) for parameter in parameters)
    return accepted.get("gzip", accepted.get("*", False))
