"""CPU time per signed POST, against a bare loop of the HTTP client in the same run."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import httpcore
import pytest

from kalends.adapters.safe_fetch import Fetcher
from kalends.core.egress import read_allowed_network
from kalends.push import rules
from kalends.push.operations.webhook_delivery import send_page
from kalends.push.operations.webhook_messages import Message
from kalends.push.storage.delivery_tables import Pending
from tests.lifecycle.lifecycle_fixtures import report
from tests.soak import scaled

PAGES = scaled(5, 50)
ROUNDS = 3
BODY = b'{"type": "event.updated", "data": {"record": {"description": "' + b"x" * 3000 + b'"}}}'
# Answers every request with 204, in a process of its own.
RECEIVER = """
import asyncio

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\\r")[0]))
            writer.write(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@pytest.fixture
def port() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def make_page() -> list[Message]:
    pending = [Pending("events", number, 0) for number in range(1, rules.PAGE_RECORDS + 1)]
    return [Message(f"msg_{row.record_id}", "event.updated", row.record_id, BODY, row, False) for row in pending]


async def post_barely(url: str) -> None:
    """Post a page with the HTTP client alone, as many requests at a time as deliveries send."""
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]
    queue = list(range(rules.PAGE_RECORDS))

    async def work() -> None:
        while queue:
            queue.pop()
            response = await pool.request("POST", url, headers=headers, content=BODY)
            assert response.status == 204

    async with httpcore.AsyncConnectionPool(max_connections=rules.MAX_IN_FLIGHT) as pool:
        await asyncio.gather(*[work() for _ in range(rules.MAX_IN_FLIGHT)])


async def post_signed(fetcher: Fetcher, url: str, secrets: list[str]) -> None:
    async with fetcher.open_session(url) as session:
        sent = await send_page(session, secrets, make_page())
    assert sent.effects == {"delivered": rules.PAGE_RECORDS}


async def test_signed_post_takes_at_most_twice_the_cpu_of_a_bare_one(port: int) -> None:
    url = f"http://127.0.0.1:{port}/"
    fetcher = Fetcher([read_allowed_network(f"127.0.0.1:{port}")])
    secrets = [rules.derive_secret(b"k" * 32, 1, "abcdefghijkl", generation) for generation in (1, 2)]
    ratios: list[float] = []
    rates: list[float] = []
    await post_barely(url)
    await post_signed(fetcher, url, secrets)
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(PAGES):
            await post_barely(url)
        bare = time.process_time() - start
        start = time.process_time()
        for _ in range(PAGES):
            await post_signed(fetcher, url, secrets)
        signed = time.process_time() - start
        ratios.append(signed / bare)
        rates.append(PAGES * rules.PAGE_RECORDS / signed)
    report(
        f"signed POST: {min(ratios):.2f} × the CPU time of a bare one; {max(rates):.0f} per second of CPU time, "
        f"with two signatures"
    )
    assert min(ratios) <= 2
