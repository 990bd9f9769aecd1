"""The response cache is bounded by all that it holds: the heads of requests count too, or are not in it (H1)."""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.security.raw_requests import API_PATH, count_cache_hits, memory_mb, seeded_database
from tests.servers import Server, find_free_port
from tests.soak import scaled

TAGS_PATH = f"{API_PATH}/tags?per_page=1&_fields=total"
CACHE_MEGABYTES = 4
REQUESTS = scaled(800, 6_000)
REQUESTS_30_KB = 1_500

HeadBuilder = Callable[[int], tuple[str, dict[str, str]]]


def language_header(size: int) -> HeadBuilder:
    return lambda number: (TAGS_PATH, {"Accept-Language": f"{number:06}" + "x" * size})


def query_parameter(size: int) -> HeadBuilder:
    return lambda number: (f"{TAGS_PATH}&z={number:06}{'x' * size}", {})


@pytest.fixture
def metrics_port() -> int:
    return find_free_port()


@pytest.fixture
def server(postgres_url: str, template_database: str, tmp_path: Path, metrics_port: int) -> Iterator[Server]:
    settings = {"KALENDS_CACHE_MB": str(CACHE_MEGABYTES), "KALENDS_METRICS_PORT": str(metrics_port)}
    with (
        seeded_database(postgres_url, template_database, events=60) as url,
        Server.start(url, log=tmp_path / "log", environment=settings) as server,
    ):
        yield server


def test_distinct_8_kb_request_heads_do_not_fill_memory(server: Server) -> None:
    _send_many(server, language_header(10), 100)
    before = memory_mb(server)
    assert _send_many(server, language_header(8_000), REQUESTS) == {200}
    assert _send_many(server, query_parameter(8_000), REQUESTS) == {200}
    assert memory_mb(server) - before < 20


@pytest.mark.parametrize("head", [language_header, query_parameter])
def test_distinct_30_kb_request_heads_do_not_fill_memory(server: Server, head: Callable[[int], HeadBuilder]) -> None:
    """As large as a head may be; a server that takes smaller ones only refuses them."""
    _send_many(server, language_header(10), 100)
    before = memory_mb(server)
    assert _send_many(server, head(30_000), REQUESTS_30_KB) <= {200, 400, 414, 431}
    assert memory_mb(server) - before < CACHE_MEGABYTES + 20


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(lambda n: (TAGS_PATH, {"Accept-Language": f"en-{n:06}, en;q=0.9"}), id="language"),
        pytest.param(lambda n: (f"{TAGS_PATH}&z={n}", {}), id="parameter"),
        pytest.param(lambda n: (f"{API_PATH}/events?z={n}&utm_source={n}", {}), id="parameters"),
        pytest.param(lambda n: (f"/events/list/?z={n}", {}), id="page"),
        pytest.param(lambda n: (f"/events.ics?a={n}", {}), id="feed"),
    ],
)
def test_equivalent_requests_share_cache_entry(server: Server, metrics_port: int, head: HeadBuilder) -> None:
    """Counted by the metrics: the first request makes the response, all others find it."""
    hits, others = count_cache_hits(metrics_port)
    assert _send_many(server, head, 200) == {200}
    hits_after, others_after = count_cache_hits(metrics_port)
    assert (hits_after - hits, others_after - others) == (199, 1)


def test_parameter_order_does_not_affect_cache_key(server: Server, metrics_port: int) -> None:
    hits, others = count_cache_hits(metrics_port)
    for path in (f"{API_PATH}/events?per_page=7&search=a", f"{API_PATH}/events?search=a&per_page=7"):
        assert _send_many(server, lambda _, path=path: (path, {}), 1) == {200}
    hits_after, others_after = count_cache_hits(metrics_port)
    assert (hits_after - hits, others_after - others) == (1, 1)


def test_unknown_parameters_are_not_revealed_to_other_clients(server: Server) -> None:
    """Entries are shared, so nothing of the request that made them may be in them but what the key has."""
    for path in ("/events.ics", "/events.rss", "/events.atom", "/events.json", "/events/list/", f"{API_PATH}/events"):
        first, second = (_read_body(server, f"{path}?junk={word}&per_page=2") for word in ("frobozz", "grue"))
        assert b"frobozz" not in first + second, path
        assert b"grue" not in second, path


def _read_body(server: Server, path: str) -> bytes:
    connection = _connect(server)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200, path
        return response.read()
    finally:
        connection.close()


def _send_many(server: Server, head: HeadBuilder, number: int) -> set[int]:
    """Send requests with different heads on one connection and return their statuses."""
    statuses: set[int] = set()
    connection = _connect(server)
    try:
        for index in range(number):
            path, headers = head(index)
            try:
                connection.request("GET", path, headers=headers)
                response = connection.getresponse()
                response.read()
                statuses.add(response.status)
            except ConnectionError:  # It was refused before it was sent.
                statuses.add(431)
                connection.close()
    finally:
        connection.close()
    return statuses


def _connect(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", urlsplit(server.base_url).port, timeout=60)
