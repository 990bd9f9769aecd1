"""The response cache is bounded by all that it holds: the heads of requests count too, or are not in it (H1)."""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.security.raw_requests import NS, count_hits, memory_mb, seeded
from tests.servers import Server, find_free_port
from tests.soak import scaled

PATH = f"{NS}/tags?per_page=1&_fields=total"
MEGABYTES = 4
REQUESTS = scaled(1_500, 6_000)
HEADS = 1_500

Head = Callable[[int], tuple[str, dict[str, str]]]


def in_language(size: int) -> Head:
    return lambda number: (PATH, {"Accept-Language": f"{number:06}" + "x" * size})


def in_parameter(size: int) -> Head:
    return lambda number: (f"{PATH}&z={number:06}{'x' * size}", {})


@pytest.fixture
def metrics_port() -> int:
    return find_free_port()


@pytest.fixture
def server(postgres_url: str, template_database: str, tmp_path: Path, metrics_port: int) -> Iterator[Server]:
    settings = {"KALENDS_CACHE_MB": str(MEGABYTES), "KALENDS_METRICS_PORT": str(metrics_port)}
    with (
        seeded(postgres_url, template_database, events=60) as url,
        Server.start(url, log=tmp_path / "log", environment=settings) as server,
    ):
        yield server


def test_distinct_8_kb_request_heads_do_not_fill_memory(server: Server) -> None:
    _ask_many(server, in_language(10), 100)
    before = memory_mb(server)
    assert _ask_many(server, in_language(8_000), REQUESTS) == {200}
    assert _ask_many(server, in_parameter(8_000), REQUESTS) == {200}
    assert memory_mb(server) - before < 20


@pytest.mark.parametrize("head", [in_language, in_parameter])
def test_distinct_30_kb_request_heads_do_not_fill_memory(server: Server, head: Callable[[int], Head]) -> None:
    """As large as a head may be; a server that takes smaller ones only refuses them."""
    _ask_many(server, in_language(10), 100)
    before = memory_mb(server)
    assert _ask_many(server, head(30_000), HEADS) <= {200, 400, 414, 431}
    assert memory_mb(server) - before < MEGABYTES + 20


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(lambda n: (PATH, {"Accept-Language": f"en-{n:06}, en;q=0.9"}), id="language"),
        pytest.param(lambda n: (f"{PATH}&z={n}", {}), id="parameter"),
        pytest.param(lambda n: (f"{NS}/events?z={n}&utm_source={n}", {}), id="parameters"),
        pytest.param(lambda n: (f"/events/list/?z={n}", {}), id="page"),
        pytest.param(lambda n: (f"/events.ics?a={n}", {}), id="feed"),
    ],
)
def test_equivalent_requests_share_cache_entry(server: Server, metrics_port: int, head: Head) -> None:
    """Counted by the metrics: the first request makes the response, all others find it."""
    hits, others = count_hits(metrics_port)
    assert _ask_many(server, head, 200) == {200}
    hits_after, others_after = count_hits(metrics_port)
    assert (hits_after - hits, others_after - others) == (199, 1)


def test_parameter_order_does_not_affect_cache_key(server: Server, metrics_port: int) -> None:
    hits, others = count_hits(metrics_port)
    for path in (f"{NS}/events?per_page=7&search=a", f"{NS}/events?search=a&per_page=7"):
        assert _ask_many(server, lambda _, path=path: (path, {}), 1) == {200}
    hits_after, others_after = count_hits(metrics_port)
    assert (hits_after - hits, others_after - others) == (1, 1)


def test_unknown_parameters_are_not_revealed_to_other_clients(server: Server) -> None:
    """Entries are shared, so nothing of the request that made them may be in them but what the key has."""
    for path in ("/events.ics", "/events.rss", "/events.atom", "/events.json", "/events/list/", f"{NS}/events"):
        first, second = (_read(server, f"{path}?junk={word}&per_page=2") for word in ("frobozz", "grue"))
        assert b"frobozz" not in first + second, path
        assert b"grue" not in second, path


def _read(server: Server, path: str) -> bytes:
    connection = _connection(server)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200, path
        return response.read()
    finally:
        connection.close()


def _ask_many(server: Server, head: Head, number: int) -> set[int]:
    """The statuses of so many requests on one connection, each with a head of its own."""
    statuses: set[int] = set()
    connection = _connection(server)
    try:
        for turn in range(number):
            path, headers = head(turn)
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


def _connection(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", urlsplit(server.address).port, timeout=60)
