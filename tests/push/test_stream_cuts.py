"""Clients whose connections are cut again and again, directly and behind proxies, miss and repeat nothing."""

import asyncio
import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.api.running_app import add_users
from tests.conftest import replace_database, temporary_database
from tests.proxies.certificates import Authority
from tests.proxies.proxy_processes import HOST, Proxy, Setup, is_installed
from tests.push.stream_client import Copy, Message, StreamClient
from tests.servers import Server, find_free_port
from tests.soak import scaled
from tools.varnish import PROGRAM as VARNISH, Varnish

API = "/api/calendar/events/v1"
CUTS = scaled(15, 200)
WRITES_PER_SECOND = 5
PROXIES = ("direct", "nginx", "caddy", "haproxy", "varnish")


@dataclass
class Backend:
    server: Server
    streams: Server
    editor: httpx.Client

    @property
    def ports(self) -> tuple[int, int]:
        server, streams = httpx.URL(self.server.base_url).port, httpx.URL(self.streams.base_url).port
        assert server
        assert streams
        return server, streams


@dataclass
class Entrance:
    base_url: str
    context: ssl.SSLContext | None = None

    def follow(self, path: str, last_id: str) -> StreamClient:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        return StreamClient(self.base_url, path, headers, self.context)


@pytest.fixture(scope="module")
def backend(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[Backend]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        editor = asyncio.run(add_users(url))["editor"]
        settings = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1", "KALENDS_BASE_URL": f"https://{HOST}"}
        server = start_server(url, environment=settings)
        streams = start_server(url, environment=settings, command_name="stream")
        with server.client(login=editor.login, password=editor.password) as client:
            yield Backend(server, streams, client)
        streams.stop()
        server.stop()


@pytest.fixture(params=PROXIES)
def entrance(request: pytest.FixtureRequest, backend: Backend, tmp_path: Path) -> Iterator[Entrance]:
    """Yield the address of a proxy, or of the process for live lists."""
    name = request.param
    server_port, stream_port = backend.ports
    with ExitStack() as running:
        if name == "direct":
            yield Entrance(backend.streams.base_url)
        elif name == "varnish":
            if VARNISH is None:
                pytest.skip("varnishd is not installed")
            varnish = Varnish.start(
                tmp_path / "varnish", backend.server.base_url, port=find_free_port(), stream_port=stream_port
            )
            yield Entrance(running.enter_context(varnish).address)
        else:
            if not is_installed(name):
                pytest.skip(f"{name} is not installed")
            authority = Authority(tmp_path)
            certificate = authority.issue(HOST, valid_until=datetime.now(UTC) + timedelta(days=1))
            setup = Setup(tmp_path / "proxy", certificate, server_port, stream_port=stream_port)
            proxy = running.enter_context(Proxy.run(name, setup))
            yield Entrance(f"https://{HOST}:{proxy.port}", authority.trusting_context())


def test_a_client_that_is_cut_misses_and_repeats_nothing(
    entrance: Entrance, backend: Backend, report: Callable[[object], None]
) -> None:
    rng = random.Random(4)
    tag = backend.editor.post(f"{API}/tags", json={"name": f"Cut {time.time_ns()}"}).json()["id"]
    path = f"{API}/events?tags={tag}"
    stop, counts = threading.Event(), {"writes": 0, "messages": 0, "silent": 0}
    writer = threading.Thread(target=write_events, args=(backend, tag, stop, counts))
    writer.start()
    copy = Copy()
    try:
        for _ in range(CUTS):
            with entrance.follow(path, copy.last_id) as client:
                assert client.status == 200, client.body
                read_for(client, copy, counts, rng.uniform(0, 1.5))
    finally:
        stop.set()
        writer.join()
    with entrance.follow(path, copy.last_id) as client:
        read_for(client, copy, counts, 4)
    page = httpx.get(f"{backend.server.base_url}{path}").json()
    assert (copy.records, copy.total) == (page["events"], page["total"])
    # The last state is known, so nothing is sent again.
    with entrance.follow(path, copy.last_id) as client:
        assert client.is_silent(2)
    report(f"{CUTS} cuts, {counts['writes']} writes, {counts['messages']} messages")


def write_events(backend: Backend, tag: int, stop: threading.Event, counts: dict[str, int]) -> None:
    rng, ids = random.Random(5), []
    # After a while nothing is written, so that some clients return to an unchanged list.
    while not stop.wait(1 / WRITES_PER_SECOND if counts["writes"] % 20 else 2):
        start = datetime.now(UTC) + timedelta(days=rng.randint(1, 60))
        times = {"start_date": f"{start:%Y-%m-%d %H:%M:00}", "end_date": f"{start:%Y-%m-%d %H:%M:00}"}
        values = {"title": f"Event {counts['writes']}", **times, "tags": [tag], "status": "publish"}
        if len(ids) < 15:
            ids.append(backend.editor.post(f"{API}/events", json=values).json()["id"])
        elif rng.random() < 0.1:
            backend.editor.delete(f"{API}/events/{ids.pop(rng.randrange(len(ids)))}")
        else:
            reply = backend.editor.patch(f"{API}/events/{rng.choice(ids)}", json=values)
            assert reply.is_success, reply.text
        counts["writes"] += 1


def read_for(client: StreamClient, copy: Copy, counts: dict[str, int], seconds: float) -> None:
    """Apply messages for some seconds; each has to change the copy."""
    deadline = time.monotonic() + seconds
    copy.reconnect()
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            message = client.next(remaining)
        except queue.Empty:
            return
        assert isinstance(message, Message)
        before = (copy.records, copy.total, copy.total_pages)
        copy.apply(message)
        assert (copy.records, copy.total, copy.total_pages) != before, "the message repeats what the client has"
        counts["messages"] += 1
