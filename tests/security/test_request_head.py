"""The head of a request: a Host that is no name and port is refused, and none makes a response large (C1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.raw_requests import API_PATH, peak_memory_mb, reset_peak_memory, seeded_database, send_request
from tests.servers import Server

LIST, FEED, SITEMAP = f"{API_PATH}/events?per_page=50", "/events.ics", "/sitemap/0.xml"
# Four labels of the greatest length: as long as a Host may be.
LONGEST_HOST = ".".join(["a" * 63] * 4)
MALFORMED_HOSTS: tuple[tuple[bytes, ...], ...] = (
    (b"a.test:80@evil.example",),
    (b"a.test@evil.example",),
    (b"user:secret@a.test",),
    (b"a.test:80/evil",),
    (b"a.test/evil",),
    (b"http://a.test",),
    (b"a.test?evil",),
    (b"a.test#evil",),
    (b"a.test\\evil",),
    (b"a.test evil.example",),
    (b"a.test\tevil",),
    (b"a.test:80 evil",),
    (b"a.test\x01",),
    (b"a.test\x1b[31m",),
    (b"a.test\x7f",),
    (b"a.test\x00",),
    (b"a.test:123456",),
    (b"a.test:80a",),
    (b"a.test:-1",),
    (b"a.test:+80",),
    (b"a.test:80:80",),
    (b"a.test:0x50",),
    (b"a.test:\xd9\xa1",),
    (b"a" * 256,),
    (LONGEST_HOST.encode() + b":80",),
    (b"<script>",),
    (b'a.test"onload="x',),
    (b"a.test,b.test",),
    (b"a.test", b"a.test"),
    (b"a.test", b"evil.example"),
)
OVERSIZED_HOSTS = ((LIST, 10_000), (LIST, 60_000), (LIST, 200_000), (FEED, 5_000), (FEED, 20_000), (SITEMAP, 10_000))


@pytest.fixture(scope="module")
def server(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log: Path = tmp_path_factory.mktemp("heads") / "log"
    with seeded_database(postgres_url, template_database) as url, Server.start(url, log=log) as server:
        yield server


def test_malformed_hosts_are_rejected(server: Server) -> None:
    assert len(MALFORMED_HOSTS) == 30
    assert send_request(server, LIST, hosts=["a.test"]).status == 200
    for path in (LIST, "/", "/events/category/par/chi/"):
        replies = {hosts: send_request(server, path, hosts=hosts) for hosts in MALFORMED_HOSTS}
        assert {hosts: reply.status for hosts, reply in replies.items()} == dict.fromkeys(MALFORMED_HOSTS, 400), path
        for hosts, reply in replies.items():
            assert len(reply.body) < 1024, (path, hosts)
            assert b"evil" not in reply.body, (path, hosts)
            assert "evil" not in reply.headers.get("location", "") + reply.headers.get("link", ""), (path, hosts)
            assert "public" not in reply.headers.get("cache-control", ""), (path, hosts)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/media/1/none.png", f"{API_PATH}/"])
def test_malformed_host_is_rejected_on_all_paths(server: Server, path: str) -> None:
    for hosts in ([b"a.test:80@evil.example"], [b"a.test", b"b.test"], [b"a" * 256]):
        assert send_request(server, path, hosts=hosts).status == 400, hosts


@pytest.mark.parametrize(
    "host",
    ["a.test", "A.TEST", "a.test:8080", "a.test:1", "[::1]", "[::1]:80", "127.0.0.1:8000", "my_host", "a.test.", ""],
)
def test_host_name_with_optional_port_is_accepted(server: Server, host: str) -> None:
    assert send_request(server, LIST, hosts=[host]).status == 200


def test_oversized_hosts_are_rejected_without_memory_growth(server: Server) -> None:
    usual = {
        path: send_request(server, path).body for path in (LIST, FEED, SITEMAP)
    }  # Modules that are loaded once are loaded now.
    assert min(map(len, usual.values())) > 1000
    reset_peak_memory(server)
    before = peak_memory_mb(server)
    replies = [send_request(server, path, hosts=[b"a" * size]) for path, size in OVERSIZED_HOSTS]
    assert {reply.status for reply in replies} <= {400, 431}, [reply.status for reply in replies]
    assert max(len(reply.body) for reply in replies) < 1024
    assert peak_memory_mb(server) - before < 10


def test_response_size_is_limited_for_longest_host(server: Server) -> None:
    """Links repeat the host; 255 bytes of it are the most that may be."""
    usual, longest = send_request(server, LIST, hosts=["localhost"]), send_request(server, LIST, hosts=[LONGEST_HOST])
    assert len(LONGEST_HOST) == 255
    assert (usual.status, longest.status) == (200, 200)
    assert len(longest.body) <= 430_000
    assert len(send_request(server, LIST, hosts=["b" * 256]).body) < 1024


def test_request_head_of_64_kb_is_rejected(server: Server) -> None:
    for headers in ({"Accept-Language": "x" * 65_536}, {"Cookie": "x" * 65_536}, {"X-Anything": "x" * 65_536}):
        reply = send_request(server, LIST, headers=headers)
        assert reply.status in (400, 431), headers.keys()
    assert send_request(server, f"{API_PATH}/events?z={'x' * 65_536}").status in (400, 414, 431)


def test_links_use_validated_lowercase_host(server: Server) -> None:
    for path in (LIST, "/", FEED, "/events.rss", "/sitemap.xml", f"{API_PATH}/doc"):
        reply = send_request(server, path, hosts=["A.TEST:8080"])
        assert reply.status == 200, path
        assert b"A.TEST" not in reply.body, path
        assert "A.TEST" not in str(reply.headers), path
    assert b"http://a.test:8080/" in send_request(server, LIST, hosts=["A.TEST:8080"]).body
