"""Bytes that are no proper HTTP: no request hides in another one, no header is injected, the server goes on."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.robustness.two_sites import ROOT
from tests.security.instance import Tell
from tests.security.two_hosts import TwoHosts, two_hosts_opened
from tests.servers import Server


def asking(line: bytes, *headers: bytes) -> bytes:
    """A request for another path, after which the connection is closed."""
    return b"\r\n".join([line + b" HTTP/1.1", b"Host: b.example", *headers, b"Connection: close", b"", b""])


HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"
POST = b"POST " + ROOT.encode() + b"/venues HTTP/1.1\r\nHost: b.example\r\nContent-Type: application/json\r\n"
GET = b"GET " + ROOT.encode() + b"/venues HTTP/1.1\r\nHost: b.example\r\n"
LENGTH = b"Content-Length: %d\r\n" % (len(HIDDEN) + 5)

# Requests whose end is doubtful: what follows the first of them must not be taken for a second one.
DOUBTFUL = {
    "length and chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\n" + LENGTH + b"\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": POST + b"Content-Length: 2\r\n" + LENGTH + b"\r\n{}" + HIDDEN,
    "two lengths in one": POST + b"Content-Length: 2, 40\r\n\r\n{}" + HIDDEN,
    "a negative length": POST + b"Content-Length: -2\r\n\r\n{}" + HIDDEN,
    "a length with a sign": POST + b"Content-Length: +2\r\n\r\n{}" + HIDDEN,
    "a hexadecimal length": POST + b"Content-Length: 0x2\r\n\r\n{}" + HIDDEN,
    "a length beyond 64 bits": POST + b"Content-Length: 18446744073709551618\r\n\r\n{}" + HIDDEN,
    "xchunked": POST + b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a space before the colon": POST + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "encoding on two lines": POST + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a chunk of negative size": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + HIDDEN,
    "a chunk beyond 64 bits": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n" + HIDDEN,
    "no end of a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n" + HIDDEN,
}
# One request each; what is in it must not come out as a header or lead elsewhere.
ODD = {
    "a folded header": GET + b"X-One: a\r\n X-Injected: 1\r\nConnection: close\r\n\r\n",
    "NUL in a header": GET + b"X-One: a\x00b\r\nConnection: close\r\n\r\n",
    "CR in a header": GET + b"X-One: a\rX-Injected: 1\r\nConnection: close\r\n\r\n",
    "NUL in the path": b"GET /\x00 HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "a line break in the path": asking(b"GET /event/a%0d%0aX-Injected:1"),
    "a line break that is led on": asking(b"GET /events/list%0d%0aX-Injected:1"),
    "a line break in the query": asking(b"GET /events/list?a=%0d%0aX-Injected:1"),
    "a line break in the request ID": GET + b"X-Request-ID: a%0d%0aX-Injected: 1\r\nConnection: close\r\n\r\n",
    "an odd chunk extension": POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;x="
    + b"y" * 200 + b"\r\n{}\r\n0\r\n\r\n",
    "upgrade to WebSocket": GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "upgrade to h2c": GET + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    b"Connection: Upgrade, HTTP2-Settings, close\r\n\r\n",
    "TRACE": asking(b"TRACE /", b"X-Secret: grue"),
    "CONNECT": asking(b"CONNECT evil.example:80"),
    "two slashes": asking(b"GET //evil.example/events"),
    "two slashes and a view": asking(b"GET //evil.example/%2e%2e/events/list"),
    "a backslash": asking(b"GET /\\evil.example/events/list"),
    "line feeds only": b"GET /healthz HTTP/1.1\nHost: b.example\nConnection: close\n\n",
    "HTTP/1.0 without a host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "HTTP/9.9": b"GET /healthz HTTP/9.9\r\nHost: b.example\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header without a name": GET + b": x\r\nConnection: close\r\n\r\n",
    "no request at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
}  # fmt: skip


@pytest.fixture(scope="module")
def hosts(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[TwoHosts]:
    with two_hosts_opened(postgres_url, template_database, start_server) as opened:
        yield opened


def assert_goes_on(hosts: TwoHosts) -> None:
    assert httpx.get(f"{hosts.server.address}/healthz").text == "ok\n"


def test_request_smuggling_is_rejected(hosts: TwoHosts, tell: Tell) -> None:
    held, wrong = 0, []
    for name, data in DOUBTFUL.items():
        answer = hosts.raw(data)
        served = "/smuggled" in hosts.server.read_log() or answer.count(b"HTTP/1.1 ") > 1
        failed = answer.startswith(b"HTTP/1.1 5") or b"alphaword" in answer
        if served or failed:
            wrong.append((name, answer[:300]))
        held += not (served or failed)
        assert_goes_on(hosts)
    assert wrong == []
    # The control: a second request that is not hidden is answered, and noted.
    assert hosts.raw(GET + b"\r\n" + HIDDEN).count(b"HTTP/1.1 ") == 2
    assert "/smuggled" in hosts.server.read_log()
    tell(f"{len(DOUBTFUL)} requests with a doubtful end, {held} held")


def test_malformed_bytes_inject_nothing(hosts: TwoHosts, tell: Tell) -> None:
    wrong = []
    for name, data in ODD.items():
        answer = hosts.raw(data)
        head, _, body = answer.partition(b"\r\n\r\n")
        injected = any(line.lower().startswith(b"x-injected") for line in head.splitlines())
        elsewhere = [line for line in head.lower().splitlines() if line.startswith(b"location:") and b"evil" in line]
        led = [line for line in elsewhere if b"//evil" in line.partition(b":")[2].strip()[:9] or b"\\" in line]
        if (
            injected
            or led
            or head.startswith((b"HTTP/1.1 5", b"HTTP/1.1 101"))
            or b"grue" in answer
            or b"alphaword" in body
        ):
            wrong.append((name, answer[:300]))
        assert_goes_on(hosts)
    assert wrong == []
    tell(f"{len(ODD)} requests of odd bytes, {len(ODD)} held")
