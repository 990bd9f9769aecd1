"""One client's expensive requests are bounded, and others are answered meanwhile (H2, H3).

`just bench-fairness` measures the same at 200,000 events. Here the database is held by a lock instead, so that
every read of events takes as long as the test wants, whatever the machine.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.security.raw_requests import (
    API_PATH,
    Reply,
    connect,
    count_cache_hits,
    measure_health,
    seeded_database,
    send_request,
)
from tests.servers import Server, find_free_port

POOL_SIZE = 10
CACHED_PATH = f"{API_PATH}/events?per_page=5"
PROXY_ADDRESS = "127.0.0.9"
MANY_ADDRESSES = [f"127.0.1.{number}" for number in range(1, 25)]


@dataclass(frozen=True)
class FairnessSetup:
    server: Server
    url: str
    metrics_port: int


@pytest.fixture(scope="module")
def stage(
    postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FairnessSetup]:
    log: Path = tmp_path_factory.mktemp("fairness") / "log"
    port = find_free_port()
    settings = {
        "KALENDS_POOL_SIZE": str(POOL_SIZE),
        "KALENDS_METRICS_PORT": str(port),
        "KALENDS_TRUSTED_PROXIES": PROXY_ADDRESS,
        "KALENDS_PUBLIC_STATEMENT_TIMEOUT": "10",  # Statements that end earlier have another cause.
    }
    with (
        seeded_database(postgres_url, template_database, events=500) as url,
        Server.start(url, log=log, environment=settings) as server,
    ):
        yield FairnessSetup(server, url, port)


@pytest.mark.parametrize("sources", [["127.0.0.2"] * 24, MANY_ADDRESSES], ids=["one client", "many clients"])
def test_cached_responses_are_served_when_all_database_connections_are_busy(
    stage: FairnessSetup, sources: list[str]
) -> None:
    assert send_request(stage.server, CACHED_PATH).status == 200
    with run_attack(stage, sources, f"{API_PATH}/events?search=a", locked=True):
        replies = [measure(stage.server, path) for path in (CACHED_PATH, "/readyz", "/healthz") * 3]
    assert {reply.status for reply, _ in replies} == {200}, [reply.status for reply, _ in replies]
    assert max(seconds for _, seconds in replies) < 1


def test_one_client_does_not_hold_all_database_connections(stage: FairnessSetup) -> None:
    """Those of its reads that are too many are refused with a hint when to come back."""
    with run_attack(stage, ["127.0.0.3"] * 24, f"{API_PATH}/events?search=b", locked=True) as replies:
        assert count_blocked_queries(stage.url) < POOL_SIZE
    assert_retry_after(replies)
    assert send_request(stage.server, f"{API_PATH}/events?search=b", source="127.0.0.3").status == 200


def test_ipv6_network_is_one_client(stage: FairnessSetup) -> None:
    """Whoever has one address of a /64 has all of them."""
    with run_attack(
        stage, [PROXY_ADDRESS] * 12, f"{API_PATH}/events?search=e", locked=True, network="2001:db8::"
    ) as replies:
        assert count_blocked_queries(stage.url) <= 4
    assert_retry_after(replies)


@pytest.mark.parametrize("sources", [["127.0.0.2"] * 12, MANY_ADDRESSES[:12]], ids=["one client", "many clients"])
def test_concurrent_feed_builds_are_limited(stage: FairnessSetup, sources: list[str]) -> None:
    with run_attack(stage, sources, "/events.ics?search=c", locked=True) as replies:
        assert count_blocked_queries(stage.url) <= 2
        assert measure_health(stage.server) is not None
    assert_retry_after(replies)
    assert send_request(stage.server, "/events.ics?search=c").status == 200  # Later requests are served again.


def test_meaningless_parameters_share_one_build(stage: FairnessSetup) -> None:
    _, before = count_cache_hits(stage.metrics_port)
    with run_attack(stage, ["127.0.0.2"] * 12, "/events.ics?a=1&z=", locked=False) as replies:
        pass
    assert [reply.status for reply in replies] == [200] * 12
    assert count_cache_hits(stage.metrics_port)[1] - before == 1


@pytest.mark.parametrize(
    "body",
    [
        "\r\n",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 5\r\n\r\nab",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    ],
    ids=["no body", "empty", "unfinished", "chunked", "announced"],
)
def test_reads_of_disconnected_clients_are_cancelled(stage: FairnessSetup, body: str) -> None:
    with lock_events(stage.url):
        with ThreadPoolExecutor(4) as asking:
            for number in range(4):
                asking.submit(
                    disconnect_early, stage.server, f"{API_PATH}/events?search=d{number}{time.time_ns()}", body
                )
        deadline = time.monotonic() + 3
        while count_blocked_queries(stage.url) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert count_blocked_queries(stage.url) == 0
        assert send_request(stage.server, CACHED_PATH).status in (200, 503)


@pytest.mark.parametrize("path", ["/events.ics?search=g", f"{API_PATH}/events?search=g"])
def test_head_response_is_cached_for_all(stage: FairnessSetup, path: str) -> None:
    hits, others = count_cache_hits(stage.metrics_port)
    heads = [send_request(stage.server, path, method="HEAD") for _ in range(3)]
    full = send_request(stage.server, path)
    assert [(head.status, head.body) for head in heads] == [(200, b"")] * 3
    assert {head.headers["content-length"] for head in heads} == {str(len(full.body))}
    assert {head.headers["etag"] for head in heads} == {full.headers["etag"]}
    assert count_cache_hits(stage.metrics_port) == (hits + 3, others + 1)


def test_feed_build_survives_disconnect_of_first_client(stage: FairnessSetup) -> None:
    path = f"/events.ics?search=f{time.time_ns()}"
    with ThreadPoolExecutor(6) as asking:
        with lock_events(stage.url):
            with connect(stage.server) as first:
                first.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                wait_for_blocked_query(stage.url)
                others = [
                    asking.submit(send_request, stage.server, path, source=source) for source in MANY_ADDRESSES[:6]
                ]
                time.sleep(1)
            time.sleep(3)  # Longer than anybody waits for a turn.
        assert [other.result().status for other in others] == [200] * 6


@contextmanager
def lock_events(url: str) -> Iterator[None]:
    """Every statement that reads events waits until this ends."""
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def run_attack(
    stage: FairnessSetup, sources: list[str], path: str, *, locked: bool, network: str = ""
) -> Iterator[list[Reply]]:
    """Each source asks for another address at the same time; the replies are complete afterwards.

    With `locked` whatever reads events waits while the block runs. With a `network` each forwards for another of it.
    """
    replies: list[Reply] = []

    def attack(number: int, source: str) -> None:
        headers = {"X-Forwarded-For": f"{network}{number + 1:x}"} if network else {}
        replies.append(send_request(stage.server, f"{path}{number}x{time.time_ns()}", headers=headers, source=source))

    attackers = [threading.Thread(target=attack, args=pair) for pair in enumerate(sources)]
    try:
        with lock_events(stage.url) if locked else nullcontext():
            for attacker in attackers:
                attacker.start()
            if locked:
                wait_for_blocked_query(stage.url)
                time.sleep(2.5)  # By now every attacker holds a connection, or has waited for one in vain.
            yield replies
    finally:
        for attacker in attackers:
            attacker.join()


def assert_retry_after(replies: list[Reply]) -> None:
    rejected = [reply for reply in replies if reply.status in (429, 503)]
    assert rejected, [reply.status for reply in replies]
    assert all("retry-after" in reply.headers for reply in rejected)


def measure(server: Server, path: str) -> tuple[Reply, float]:
    started = time.monotonic()
    return send_request(server, path), time.monotonic() - started


def disconnect_early(server: Server, path: str, body: str) -> None:
    """Send a request and close the connection before the response."""
    with connect(server) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{body}".encode())
        time.sleep(0.5)


def count_blocked_queries(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        query = """SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"""
        return connection.execute(query).rowcount


def wait_for_blocked_query(url: str) -> None:
    deadline = time.monotonic() + 10
    while not count_blocked_queries(url):
        assert time.monotonic() < deadline, "no read has reached the database"
        time.sleep(0.05)
