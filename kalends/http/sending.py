"""Sends bodies in pieces, so that a client that reads slowly holds one piece in memory and not the whole body."""

import asyncio
from collections.abc import Sequence
from typing import Final

from kalends.http.disconnects import ClientGone, Send

PIECE: Final = 64 * 1024
# A client that takes no piece for so long is disconnected.
SECONDS_PER_PIECE: Final = 30


async def send_whole(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
    """Sends status, headers and body; raises ClientGone when the client stops reading."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    for begin in range(0, max(len(body), 1), PIECE):
        more = begin + PIECE < len(body)
        try:
            async with asyncio.timeout(SECONDS_PER_PIECE):
                await send({"type": "http.response.body", "body": body[begin : begin + PIECE], "more_body": more})
        except TimeoutError as error:
            raise ClientGone from error
