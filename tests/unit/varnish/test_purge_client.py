"""PURGE requests to shared caches."""

import asyncio

import pytest

from kalends.adapters.purge_client import send_purges


async def start_cache(status: bytes, requests: list[bytes]) -> asyncio.Server:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    return await asyncio.start_server(respond, "127.0.0.1", 0)


async def test_each_header_value_is_one_purge_request() -> None:
    requests: list[bytes] = []
    async with await start_cache(b"200 Purged", requests) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await send_purges(f"http://{host}", ["s1 s1-a", "s1-b"])
    assert requests == [
        f"PURGE / HTTP/1.1\r\nHost: {host}\r\nxkey: {tags}\r\n\r\n".encode() for tags in ("s1 s1-a", "s1-b")
    ]


async def test_other_status_than_200_is_an_error() -> None:
    async with await start_cache(b"405 Not Allowed", []) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/purge"
        with pytest.raises(OSError, match="responded to PURGE with 405"):
            await send_purges(url, ["s1"])
