"""The head of a request: a Host that is no name and port is refused, and none makes a response large (C1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.raw_requests import NS, ask, forget_peak, peak_mb, seeded
from tests.servers import Server

LIST, FEED, SITEMAP = f"{NS}/events?per_page=50", "/events.ics", "/sitemap/0.xml"
# Four labels of the greatest length: as long as a Host may be.
LONGEST = ".".join(["a" * 63] * 4)
MALFORMED: tuple[tuple[bytes, ...], ...] = (
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
    (LONGEST.encode() + b":80",),
    (b"<script>",),
    (b'a.test"onload="x',),
    (b"a.test,b.test",),
    (b"a.test", b"a.test"),
    (b"a.test", b"evil.example"),
)
OVERSIZED = ((LIST, 10_000), (LIST, 60_000), (LIST, 200_000), (FEED, 5_000), (FEED, 20_000), (SITEMAP, 10_000))


@pytest.fixture(scope="module")
def server(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log: Path = tmp_path_factory.mktemp("heads") / "log"
    with seeded(postgres_url, template_database) as url, Server.start(url, log=log) as server:
        yield server


def test_malformed_hosts_are_rejected(server: Server) -> None:
    assert len(MALFORMED) == 30
    assert ask(server, LIST, hosts=["a.test"]).status == 200
    for path in (LIST, "/", "/events/category/par/chi/"):
        replies = {hosts: ask(server, path, hosts=hosts) for hosts in MALFORMED}
        assert {hosts: reply.status for hosts, reply in replies.items()} == dict.fromkeys(MALFORMED, 400), path
        for hosts, reply in replies.items():
            assert len(reply.body) < 1024, (path, hosts)
            assert b"evil" not in reply.body, (path, hosts)
            assert "evil" not in reply.headers.get("location", "") + reply.headers.get("link", ""), (path, hosts)
            assert "public" not in reply.headers.get("cache-control", ""), (path, hosts)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/media/1/none.png", f"{NS}/"])
def test_malformed_host_is_rejected_on_all_paths(server: Server, path: str) -> None:
    for hosts in ([b"a.test:80@evil.example"], [b"a.test", b"b.test"], [b"a" * 256]):
        assert ask(server, path, hosts=hosts).status == 400, hosts


@pytest.mark.parametrize(
    "host",
    ["a.test", "A.TEST", "a.test:8080", "a.test:1", "[::1]", "[::1]:80", "127.0.0.1:8000", "my_host", "a.test.", ""],
)
def test_host_name_with_optional_port_is_accepted(server: Server, host: str) -> None:
    assert ask(server, LIST, hosts=[host]).status == 200


def test_oversized_hosts_are_rejected_without_memory_growth(server: Server) -> None:
    usual = {path: ask(server, path).body for path in (LIST, FEED, SITEMAP)}  # What is loaded once is loaded now.
    assert min(map(len, usual.values())) > 1000
    forget_peak(server)
    before = peak_mb(server)
    replies = [ask(server, path, hosts=[b"a" * size]) for path, size in OVERSIZED]
    assert {reply.status for reply in replies} <= {400, 431}, [reply.status for reply in replies]
    assert max(len(reply.body) for reply in replies) < 1024
    assert peak_mb(server) - before < 10


def test_response_size_is_limited_for_longest_host(server: Server) -> None:
    """Links repeat the host; 255 bytes of it are the most that may be."""
    usual, longest = ask(server, LIST, hosts=["localhost"]), ask(server, LIST, hosts=[LONGEST])
    assert len(LONGEST) == 255
    assert (usual.status, longest.status) == (200, 200)
    assert len(longest.body) <= 430_000
    assert len(ask(server, LIST, hosts=["b" * 256]).body) < 1024


def test_request_head_of_64_kb_is_rejected(server: Server) -> None:
    for headers in ({"Accept-Language": "x" * 65_536}, {"Cookie": "x" * 65_536}, {"X-Anything": "x" * 65_536}):
        reply = ask(server, LIST, headers=headers)
        assert reply.status in (400, 431), headers.keys()
    assert ask(server, f"{NS}/events?z={'x' * 65_536}").status in (400, 414, 431)


def test_links_use_validated_lowercase_host(server: Server) -> None:
    for path in (LIST, "/", FEED, "/events.rss", "/sitemap.xml", f"{NS}/doc"):
        reply = ask(server, path, hosts=["A.TEST:8080"])
        assert reply.status == 200, path
        assert b"A.TEST" not in reply.body, path
        assert "A.TEST" not in str(reply.headers), path
    assert b"http://a.test:8080/" in ask(server, LIST, hosts=["A.TEST:8080"]).body
