"""Two sites on one server: no header, parameter, spelling or credential leads from one to the other."""

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest

from kalends.routes import EXTENSION
from tests.robustness.two_sites import API_PATH, FOREIGN_IMAGE, SITE_A_SELECTORS
from tests.security.instance import Report
from tests.security.two_hosts import TwoHosts, open_two_hosts
from tests.security.wire_client import WireRequest, WireResponse, basic_auth, json_request, send_one
from tests.servers import Server

LIST = f"{API_PATH}/venues"
# Beside the host of site `b`.
MISLEADING_HEADERS = {
    "X-Forwarded-Server": "a.example",
    "X-HTTP-Host-Override": "a.example",
    "X-Original-URL": f"http://a.example{LIST}",
    "X-Rewrite-URL": f"http://a.example{LIST}",
    "X-Forwarded-Host": "a.example:80, b.example",
    "Forwarded": 'for=1.2.3.4;host="a.example";proto=https',
    "X-Forwarded-For": "a.example",
    "X-Forwarded-Prefix": "//a.example",
}
# Names that look like the other site's, and none is.
MISLEADING_HOSTS = (
    "b.example, a.example", "b.example a.example", "a.example.b.example", "b.example#a.example",
    "b.example/a.example",
    "b.example?a.example", "b.example@a.example", "b.example:80@a.example", "[a.example]", "a.example%00",
    "a.example%2e",
    "a%2eexample", "a.example\\", "a.example,", "1", "127.0.0.1", "localhost", "*", "%",
)  # fmt: skip


@pytest.fixture(scope="module")
def hosts(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[TwoHosts]:
    with open_two_hosts(postgres_url, template_database, start_server) as instance:
        yield instance


def send_get(hosts: TwoHosts, target: str = LIST, **headers: str) -> WireResponse:
    return send_one(hosts.server.base_url, WireRequest("GET", target, {"host": "b.example", **headers}))


def test_only_host_header_selects_site(hosts: TwoHosts, report: Report) -> None:
    a, b = hosts.pair.a, hosts.pair.b
    count = 0

    def check(response: WireResponse | bytes, statuses: tuple[int, ...], label: object) -> None:
        nonlocal count
        count += 1
        text = response.decode(errors="replace") if isinstance(response, bytes) else response.text
        status = int(text.split(" ")[1]) if text.startswith("HTTP/") else 0
        assert a.word not in text, label
        assert status in statuses, (label, status)

    for options in SITE_A_SELECTORS:
        query = urlencode(options.get("params", {}))
        headers = {name.lower(): value for name, value in options.get("headers", {}).items()}
        check(send_get(hosts, f"{LIST}?{query}", **headers), (200,), options)
    for name, value in MISLEADING_HEADERS.items():
        check(send_get(hosts, **{name.lower(): value}), (200,), name)
    for host in MISLEADING_HOSTS:
        # Whether such a name is refused or unknown, it is not the other site.
        check(send_get(hosts, host=host), (200, 400, 404), host)
    for of_a in ("ann", "ed"):
        for target in (LIST, f"{API_PATH}/events"):
            check(send_get(hosts, target, authorization=basic_auth(*a.users[of_a])), (401,), of_a)
    login = basic_auth(*b.users["ed"])
    check(send_get(hosts, f"/api/{EXTENSION.namespace}/media/{FOREIGN_IMAGE}", authorization=login), (404,), "media")
    linked = json_request("POST", LIST, {"venue": "x", "image": FOREIGN_IMAGE}, host="b.example", authorization=login)
    check(send_one(hosts.server.base_url, linked), (400,), "image")
    report(f"{count} headers that name the other site, {count} ignored")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("host", ["a.example", "b.example"])
def test_absolute_request_target_is_served_by_one_site(hosts: TwoHosts, method: str, host: str) -> None:
    """Serve only one site: RFC 9112 prefers the absolute URL to the Host header, and nothing is mixed."""
    other = "b.example" if host == "a.example" else "a.example"
    data = f"{method} http://{other}{LIST} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    text = hosts.raw(data).decode(errors="replace")
    words = [site.word for site in (hosts.pair.a, hosts.pair.b) if site.word in text]
    links = [name for name in ("a.example", "b.example") if f"//{name}" in text]
    assert len(words) <= 1
    assert len(links) <= 1
    assert not text.startswith("HTTP/1.1 5")


@pytest.mark.parametrize("names", [("a.example", "b.example"), ("b.example", "a.example")])
def test_duplicate_hosts_are_never_both_served(hosts: TwoHosts, names: tuple[str, str]) -> None:
    lines = "".join(f"Host: {name}\r\n" for name in names)
    text = hosts.raw(f"GET {LIST} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode()).decode(errors="replace")
    assert len([site.word for site in (hosts.pair.a, hosts.pair.b) if site.word in text]) <= 1


def test_sites_remain_isolated_afterwards(hosts: TwoHosts) -> None:
    """Nothing of all that was kept in memory for somebody else."""
    for site, other in ((hosts.pair.a, hosts.pair.b), (hosts.pair.b, hosts.pair.a)):
        text = send_get(hosts, host=site.host).text
        assert (site.word in text, other.word in text, f"//{other.host}" in text) == (True, False, False)
