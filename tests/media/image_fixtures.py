"""What the tests of the media library share: pictures, and servers that behave badly."""

import asyncio
import io
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from PIL import Image

from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH, EXTENSION_URL, report

__all__ = ["EXTENSION_PATH", "EXTENSION_URL", "encode_image", "make_image", "report", "start_listener"]

ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def encode_image(image: Image.Image, codec: str = "JPEG", **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, codec, **options)
    return content.getvalue()


def make_image(codec: str = "JPEG", width: int = 64, height: int = 48, seed: int = 1, **options: Any) -> bytes:
    """A small picture that no other seed makes."""
    numbers = random.Random(seed)
    image = Image.frombytes("RGB", (8, 6), numbers.randbytes(144)).resize((width, height))
    return encode_image(image, codec, **options)


@asynccontextmanager
async def start_listener(
    serve: ConnectionHandler, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A server in this process; its port."""

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client has closed the connection.
        finally:
            writer.close()

    server = await asyncio.start_server(handle_connection, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        server.close_clients()
        await server.wait_closed()
