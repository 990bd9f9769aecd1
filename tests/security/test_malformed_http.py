"""Malformed HTTP: no request is smuggled, no header is injected, and the server keeps running."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.robustness.two_sites import API_PATH
from tests.security.instance import Report
from tests.security.two_hosts import TwoHosts, open_two_hosts
from tests.servers import Server


def build_request(line: bytes, *headers: bytes) -> bytes:
    """A request for another path, after which the connection is closed."""
    return b"\r\n".join([line + b" HTTP/1.1", b"Host: b.example", *headers, b"Connection: close", b"", b""])


SMUGGLED_REQUEST = b"GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"
POST_HEAD = (
    b"POST " + API_PATH.encode() + b"/venues HTTP/1.1\r\nHost: b.example\r\nContent-Type: application/json\r\n"
)
GET_HEAD = b"GET " + API_PATH.encode() + b"/venues HTTP/1.1\r\nHost: b.example\r\n"
LENGTH_HEADER = b"Content-Length: %d\r\n" % (len(SMUGGLED_REQUEST) + 5)

# Requests whose end is doubtful: what follows the first of them must not be taken for a second one.
AMBIGUOUS_REQUESTS = {
    "length and chunks": POST_HEAD
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED_REQUEST,
    "chunks and length": POST_HEAD
    + b"Transfer-Encoding: chunked\r\n"
    + LENGTH_HEADER
    + b"\r\n0\r\n\r\n"
    + SMUGGLED_REQUEST,
    "two lengths": POST_HEAD + b"Content-Length: 2\r\n" + LENGTH_HEADER + b"\r\n{}" + SMUGGLED_REQUEST,
    "two lengths in one": POST_HEAD + b"Content-Length: 2, 40\r\n\r\n{}" + SMUGGLED_REQUEST,
    "a negative length": POST_HEAD + b"Content-Length: -2\r\n\r\n{}" + SMUGGLED_REQUEST,
    "a length with a sign": POST_HEAD + b"Content-Length: +2\r\n\r\n{}" + SMUGGLED_REQUEST,
    "a hexadecimal length": POST_HEAD + b"Content-Length: 0x2\r\n\r\n{}" + SMUGGLED_REQUEST,
    "a length beyond 64 bits": POST_HEAD + b"Content-Length: 18446744073709551618\r\n\r\n{}" + SMUGGLED_REQUEST,
    "xchunked": POST_HEAD + b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED_REQUEST,
    "a space before the colon": POST_HEAD
    + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + SMUGGLED_REQUEST,
    "chunked, identity": POST_HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED_REQUEST,
    "a vertical tab": POST_HEAD
    + b"Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + SMUGGLED_REQUEST,
    "encoding on two lines": POST_HEAD
    + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    + SMUGGLED_REQUEST,
    "a chunk of negative size": POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + SMUGGLED_REQUEST,
    "a chunk beyond 64 bits": POST_HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"f" * 17
    + b"\r\n"
    + SMUGGLED_REQUEST,
    "no end of a chunk": POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n" + SMUGGLED_REQUEST,
}
# One request each; what is in it must not come out as a header or lead elsewhere.
MALFORMED_REQUESTS = {
    "a folded header": GET_HEAD + b"X-One: a\r\n X-Injected: 1\r\nConnection: close\r\n\r\n",
    "NUL in a header": GET_HEAD + b"X-One: a\x00b\r\nConnection: close\r\n\r\n",
    "CR in a header": GET_HEAD + b"X-One: a\rX-Injected: 1\r\nConnection: close\r\n\r\n",
    "NUL in the path": b"GET /\x00 HTTP/1.1\r\nHost: b.example\r\n\r\n",
    "a line break in the path": build_request(b"GET /event/a%0d%0aX-Injected:1"),
    "a line break that is led on": build_request(b"GET /events/list%0d%0aX-Injected:1"),
    "a line break in the query": build_request(b"GET /events/list?a=%0d%0aX-Injected:1"),
    "a line break in the request ID": GET_HEAD + b"X-Request-ID: a%0d%0aX-Injected: 1\r\nConnection: close\r\n\r\n",
    "an odd chunk extension": POST_HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2;x="
    + b"y" * 200 + b"\r\n{}\r\n0\r\n\r\n",
    "upgrade to WebSocket": GET_HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "upgrade to h2c": GET_HEAD + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    b"Connection: Upgrade, HTTP2-Settings, close\r\n\r\n",
    "TRACE": build_request(b"TRACE /", b"X-Secret: grue"),
    "CONNECT": build_request(b"CONNECT evil.example:80"),
    "two slashes": build_request(b"GET //evil.example/events"),
    "two slashes and a view": build_request(b"GET //evil.example/%2e%2e/events/list"),
    "a backslash": build_request(b"GET /\\evil.example/events/list"),
    "line feeds only": b"GET /healthz HTTP/1.1\nHost: b.example\nConnection: close\n\n",
    "HTTP/1.0 without a host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "HTTP/9.9": b"GET /healthz HTTP/9.9\r\nHost: b.example\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header without a name": GET_HEAD + b": x\r\nConnection: close\r\n\r\n",
    "no request at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
}  # fmt: skip


@pytest.fixture(scope="module")
def hosts(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[TwoHosts]:
    with open_two_hosts(postgres_url, template_database, start_server) as instance:
        yield instance


def assert_healthy(hosts: TwoHosts) -> None:
    assert httpx.get(f"{hosts.server.base_url}/healthz").text == "ok\n"


def test_request_smuggling_is_rejected(hosts: TwoHosts, report: Report) -> None:
    passed, wrong = 0, []
    for name, data in AMBIGUOUS_REQUESTS.items():
        response = hosts.raw(data)
        served = "/smuggled" in hosts.server.read_log() or response.count(b"HTTP/1.1 ") > 1
        failed = response.startswith(b"HTTP/1.1 5") or b"alphaword" in response
        if served or failed:
            wrong.append((name, response[:300]))
        passed += not (served or failed)
        assert_healthy(hosts)
    assert wrong == []
    # The control: a second request that is not hidden is answered, and noted.
    assert hosts.raw(GET_HEAD + b"\r\n" + SMUGGLED_REQUEST).count(b"HTTP/1.1 ") == 2
    assert "/smuggled" in hosts.server.read_log()
    report(f"{len(AMBIGUOUS_REQUESTS)} requests with ambiguous framing, {passed} handled safely")


def test_malformed_bytes_inject_nothing(hosts: TwoHosts, report: Report) -> None:
    wrong = []
    for name, data in MALFORMED_REQUESTS.items():
        response = hosts.raw(data)
        head, _, body = response.partition(b"\r\n\r\n")
        injected = any(line.lower().startswith(b"x-injected") for line in head.splitlines())
        elsewhere = [line for line in head.lower().splitlines() if line.startswith(b"location:") and b"evil" in line]
        led = [line for line in elsewhere if b"//evil" in line.partition(b":")[2].strip()[:9] or b"\\" in line]
        if (
            injected
            or led
            or head.startswith((b"HTTP/1.1 5", b"HTTP/1.1 101"))
            or b"grue" in response
            or b"alphaword" in body
        ):
            wrong.append((name, response[:300]))
        assert_healthy(hosts)
    assert wrong == []
    report(f"{len(MALFORMED_REQUESTS)} malformed requests, {len(MALFORMED_REQUESTS)} handled safely")
