"""Public reads come from a replica as long as it is recent enough, everything else from the primary."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from prometheus_client import REGISTRY

from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.fleet.storage.replica import PrimaryLog
from kalends.store.database import Database, Options
from kalends.store.sql import Sql
from tests.lifecycle.processes import run_command
from tests.replicas.standby import TIMEOUT, Pair, Site, run_on, run_site, start_pair
from tests.robustness.faulty_proxy import FaultyProxy
from tests.robustness.keeping_proxy import KeepingProxy
from tests.robustness.site_fixtures import API_PATH, add_users
from tests.servers import find_free_port
from tools import postgres

COOKIE = "__Host-kalends=unknown"
STATEMENT_TIMEOUT = 60.0


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with start_pair() as pair:
        yield pair


def count_reads(outcome: str) -> float:
    return REGISTRY.get_sample_value("kalends_replica_reads_total", {"outcome": outcome}) or 0.0


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> float:
    started = time.monotonic()
    while not await condition():
        assert time.monotonic() - started < TIMEOUT
        await asyncio.sleep(0.1)
    return time.monotonic() - started


async def wait_for_replica(site: Site) -> None:
    """Wait until the replica answers; before its first answer the primary is used."""

    async def is_used() -> bool:
        before = count_reads("replica")
        await site.sees("nothing")
        return count_reads("replica") > before

    await wait_until(is_used)


async def test_client_that_names_its_revision_sees_its_write(pair: Pair) -> None:
    async with run_site(pair) as site:
        await wait_for_replica(site)
        with pair.paused_replay():
            revision = await site.add("Paused")
            assert not await site.sees("Paused"), "the replica answers anonymous reads"
            assert await site.sees("Paused", site.editor), "the primary answers those with an account"
            assert await site.sees("Paused", cookie=COOKIE)
            assert await site.sees("Paused", x_kalends_revision=str(revision))
            assert not await site.sees("Paused", x_kalends_revision=str(revision - 1))
            assert not await site.sees("Paused", site.editor, x_kalends_revision=str(revision - 1))
        await wait_until(lambda: site.sees("Paused"))


async def test_cached_response_is_as_recent_as_client_asks(pair: Pair) -> None:
    async with run_site(pair) as site:
        await wait_for_replica(site)
        pages = (f"{API_PATH}/events?search=Cached", "/events/list/?search=Cached")
        with pair.paused_replay():
            for path in pages:
                await site.anonymous.get(path)
            revision = await site.add("Cached concert")
            for path in pages:
                assert "Cached concert" not in (await site.anonymous.get(path)).text
                recent = await site.anonymous.get(path, headers={"X-Kalends-Revision": str(revision)})
                assert "Cached concert" in recent.text
                # The response that the primary has rendered is newer than the revision of the replica.
                assert (await site.anonymous.get(path)).text == recent.text


@pytest.mark.parametrize("value", ["-1", "1.5", "seven", "9" * 101])
async def test_invalid_revision_is_rejected(pair: Pair, value: str) -> None:
    async with run_site(pair) as site:
        response = await site.anonymous.get(f"{API_PATH}/events", headers={"X-Kalends-Revision": value})
        assert (response.status_code, response.json()["code"]) == (400, "rest_invalid_param")


async def test_lagging_replica_is_not_used(pair: Pair) -> None:
    async with run_site(pair, replica_max_lag=2) as site:
        await wait_for_replica(site)
        with pair.paused_replay():
            await site.add("Lagging")
            written_at = time.monotonic()
            behind = count_reads("behind")
            while not await site.sees("Lagging"):
                assert time.monotonic() - written_at < TIMEOUT
            assert await site.sees("Lagging"), "never again an older state"
            assert count_reads("behind") > behind
        pair.catch_up()
        await wait_for_replica(site)


async def test_idle_primary_is_no_lag(pair: Pair) -> None:
    """Neither side has anything to do, so the last replayed transaction is older than the maximum lag."""
    async with run_site(pair, replica_max_lag=60) as site:
        await wait_for_replica(site)
        await asyncio.sleep(3)
        await wait_for_replica(site)
        lag = REGISTRY.get_sample_value("kalends_replica_lag_seconds")
        assert lag is not None
        assert lag < 60


async def test_primary_answers_without_replica(pair: Pair) -> None:
    url = f"postgresql://postgres@127.0.0.1:{find_free_port()}/kalends"
    async with run_site(pair, replica_url=url) as site:
        unavailable = count_reads("unavailable")
        await site.add("Alone")
        assert await site.sees("Alone")
        assert count_reads("unavailable") > unavailable


@pytest.mark.parametrize("fault", ["silent", "refused"])
async def test_replica_answers_without_primary(pair: Pair, fault: str) -> None:
    pair.catch_up()
    async with FaultyProxy(pair.primary.url) as proxy:
        port = find_free_port()
        url = proxy.url if fault == "silent" else f"postgresql://postgres@127.0.0.1:{port}/kalends"
        settings = {"statement_timeout": 2, "pool_timeout": 2} if fault == "silent" else {}
        async with run_site(pair, database_url=url, **settings) as site:
            if fault == "silent":
                await wait_for_replica(site)
                proxy.pause()

            async def is_away_known() -> bool:
                response = await site.anonymous.get("/readyz")
                return response.status_code == 200 and "replica" in response.text

            await wait_until(is_away_known)
            for path in (f"{API_PATH}/events?search=away", "/events/list/?search=away", "/events.ics", "/docs"):
                # The API honours the session; pages ignore it.
                for headers in ({},) if path.startswith(API_PATH) else ({}, {"Cookie": COOKIE}):
                    response = await site.anonymous.get(path, headers=headers)
                    assert response.status_code == 200, (path, response.text)
                    if path != "/docs":
                        assert response.headers["cache-control"] == "no-store", path
                        assert int(response.headers["age"]) >= 1
            assert (await site.editor.get(f"{API_PATH}/events")).status_code == 503
            assert (await site.editor.post(f"{API_PATH}/venues", json={"venue": "Lost"})).status_code == 503
            if fault == "silent":
                proxy.resume()

                async def is_back() -> bool:
                    response = await site.anonymous.get(f"{API_PATH}/events?search=away")
                    return "age" not in response.headers

                await wait_until(is_back)


async def test_read_that_fails_on_replica_is_answered(pair: Pair) -> None:
    async with run_site(pair) as site:
        await wait_for_replica(site)
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename <> ''"
        )
        with psycopg.connect(pair.standby.url, autocommit=True) as connection:
            for _ in range(20):
                connection.execute(query)
                assert not await site.sees("nothing")
        await wait_for_replica(site)


@asynccontextmanager
async def open_standby(proxy: KeepingProxy) -> AsyncIterator[Database]:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{postgres.DATABASE}"
    options = Options(url=url, is_standby=True, pool_timeout=10, statement_timeout=STATEMENT_TIMEOUT)
    database = await Database.open(options)
    try:
        yield database
    finally:
        await database.close()


async def test_connections_to_promoted_standby_are_replaced(pair: Pair) -> None:
    """A proxy leads new ones to another standby, which survives the next failover."""
    target = pair.primary
    async with KeepingProxy(lambda: ("127.0.0.1", target.port)) as proxy, open_standby(proxy) as database:
        await database.read_log_position()
        target = pair.standby

        async def is_standby() -> bool:
            await database.read_log_position()
            (row,) = await database.fetch_unscoped(Sql("SELECT pg_is_in_recovery() AS is_standby"))
            return bool(row["is_standby"])

        await wait_until(is_standby)


async def test_transaction_does_not_wait_for_silent_standby(pair: Pair) -> None:
    async with KeepingProxy(lambda: ("127.0.0.1", pair.standby.port)) as proxy, open_standby(proxy) as database:
        async with database.transaction("localhost", utc_now(), writing=False):
            pass
        proxy.silence()
        started = time.monotonic()
        with pytest.raises(ApiError, match="unavailable"):
            async with database.transaction("localhost", utc_now(), writing=False):
                pass
        assert time.monotonic() - started < STATEMENT_TIMEOUT / 2


async def test_primary_decides_about_rejected_password(pair: Pair) -> None:
    async with run_site(pair) as site:
        await wait_for_replica(site)
        any_revision = {"X-Kalends-Revision": "0"}
        with pair.paused_replay():
            new = add_users(pair.primary.url, {"new": "author"})["new"]
            response = await site.anonymous.get(f"{API_PATH}/events", auth=new, headers=any_revision)
            assert response.status_code == 200, "too new for the replica"
            response = await site.anonymous.get(f"{API_PATH}/events", auth=("ed", "wrong"), headers=any_revision)
            assert response.status_code == 401
            assert run_on(pair.primary, "SELECT max(count) FROM login_failures") == 1, "counted once"


def test_age_is_time_since_position_was_current() -> None:
    log = PrimaryLog(0.0)
    for second, position in enumerate((100, 100, 250, 250, 400)):
        log.record(float(second), position)
    assert [log.find_age(position, 5.0) for position in (400, 399, 250, 249, 100)] == [1, 2, 2, 4, 4]
    assert log.find_age(99, 5.0) == float("inf")


def test_position_of_new_primary_may_be_lower() -> None:
    log = PrimaryLog(0.0)
    log.record(1.0, 500)
    log.record_failure()
    assert (log.is_away, log.find_outage(11.0)) == (True, 10.0)
    log.record(12.0, 450)
    assert (log.is_away, log.find_outage(13.0), log.find_age(450, 13.0)) == (False, 0.0, 1.0)


def test_check_reports_an_unreachable_and_a_lagging_replica(pair: Pair, tmp_path: Path) -> None:
    def find(replica_url: str) -> tuple[str, str]:
        settings = {
            "KALENDS_REPLICA_URL": replica_url,
            "KALENDS_REPLICA_MAX_LAG": "1",
            "KALENDS_MEDIA_DIR": str(tmp_path),
        }
        result = run_command(pair.primary.url, "check", "--json", settings=settings)
        (finding,) = [row for row in json.loads(result.stdout) if row["subject"] == "Replica"]
        assert (finding["level"] == "error") <= (result.exit_code == 1)
        return finding["level"], finding["text"]

    pair.catch_up()
    address, closed = f"127.0.0.1:{pair.standby.port}", find_free_port()
    assert find(pair.standby.url) == ("ok", f"{address} is up to date.")
    assert find(f"postgresql://postgres@127.0.0.1:{closed}/kalends") == (
        "error",
        f"Cannot reach PostgreSQL at 127.0.0.1:{closed}.",
    )
    assert find(pair.primary.url) == ("error", f"127.0.0.1:{pair.primary.port} is not a standby.")
    with pair.paused_replay():
        run_on(pair.primary, "SELECT pg_logical_emit_message(false, 'test', repeat('x', 100000))")
        level, text = find(pair.standby.url)
    assert level == "warning"
    assert re.fullmatch(rf"{address} is [\d,]+ bytes behind, for more than 1 s\.", text), text
