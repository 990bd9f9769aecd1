"""Sending responses in chunks, so that a slow client keeps one chunk in the send buffer and not the whole body."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kalends.http import cors, responses
from kalends.http.context import RequestContext
from kalends.http.disconnects import ClientDisconnected, Send
from kalends.http.encoding import accepts_gzip
from kalends.http.response_cache import CachedResponse
from kalends.http.response_headers import HeaderPolicy

CHUNK_BYTES: Final = 64 * 1024
# A client that does not accept a chunk within this time is disconnected.
MAX_SECONDS_PER_CHUNK: Final = 30
# Headers by which clients and shared caches recognize a current response.
VALIDATORS: Final = (b"etag", b"surrogate-key")


async def send_response(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
    """Send status, headers and body; raise ClientDisconnected if the client stops reading."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        more = start + CHUNK_BYTES < len(body)
        try:
            async with asyncio.timeout(MAX_SECONDS_PER_CHUNK):
                await send(
                    {"type": "http.response.body", "body": body[start : start + CHUNK_BYTES], "more_body": more}
                )
        except TimeoutError as error:
            raise ClientDisconnected from error


async def send_cached(
    context: RequestContext[Any],
    send: Send,
    cached: CachedResponse,
    policy: HeaderPolicy,
    *,
    request_id: str,
    age: float = 0.0,
    is_outdated: bool = False,
) -> int:
    """Send a cached response and return its status.

    A response with an age is stale, because the database is unavailable; it must not be stored. One that is outdated
    has no ETag either, because a newer one exists.
    """
    request = context.request
    control = "no-store" if age else policy.cache_control(cached.expires_at, context.now)
    kept = [pair for pair in cached.headers if pair[0] not in VALIDATORS] if is_outdated else cached.headers
    fields = [*kept, (b"x-request-id", request_id.encode()), (b"cache-control", control.encode())]
    if age:
        fields.append((b"age", str(int(max(age, 1.0))).encode()))
    allowed = {**cors.make_headers(request, policy.origins), **context.own_headers}
    fields += [(name.lower().encode(), value.encode()) for name, value in allowed.items()]
    body, status = cached.body, 200
    known = responses.split_etags(request.headers.get("if-none-match", ""))
    if cached.etag and not is_outdated and responses.is_known_etag(cached.etag, known):
        body, status = b"", 304
    elif accepts_gzip(request.headers.get("accept-encoding", "")) and (packed := await cached.compress()):
        body = packed
        fields.append((b"content-encoding", b"gzip"))
    if status == 200:
        fields.append((b"content-length", str(len(body)).encode()))
    await send_response(send, status, fields, b"" if request.method == "HEAD" else body)
    return status
