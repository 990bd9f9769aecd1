"""What the tests of the media library share: pictures, and servers that behave badly."""

import asyncio
import io
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from PIL import Image

from tests.lifecycle.lifecycle_fixtures import EXTENSION, EXTENSION_PATH, tell

__all__ = ["EXTENSION", "EXTENSION_PATH", "encoded", "listening", "picture", "tell"]

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def encoded(image: Image.Image, codec: str = "JPEG", **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, codec, **options)
    return content.getvalue()


def picture(codec: str = "JPEG", width: int = 64, height: int = 48, seed: int = 1, **options: Any) -> bytes:
    """A small picture that no other seed makes."""
    numbers = random.Random(seed)
    image = Image.frombytes("RGB", (8, 6), numbers.randbytes(144)).resize((width, height))
    return encoded(image, codec, **options)


@asynccontextmanager
async def listening(
    serve: Serve, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A server in this process; its port."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # Whoever asked has gone.
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        server.close_clients()
        await server.wait_closed()
