"""Connections that stay open but never answer again, as after a failover behind a proxy that does not cut them."""

import asyncio
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from procrastinate import App
from procrastinate.exceptions import ConnectorException
from psycopg import sql

from kalends.store import checks, job_queue
from kalends.store.queue_connector import QueueConnector
from tests.robustness.keeping_proxy import KeepingProxy
from tests.robustness.site_fixtures import API_PATH, add_editor, run_application, wait_until

TIMEOUT = 3.0  # of statements
OPEN = 6  # connections in the pool


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[KeepingProxy]:
    target = urlsplit(database_url)
    async with KeepingProxy(lambda: (target.hostname or "", target.port or 0)) as proxy:
        yield proxy


def through(proxy: KeepingProxy, database_url: str) -> str:
    return urlsplit(database_url)._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()


async def test_silent_pool_fails_one_request(database_url: str, proxy: KeepingProxy) -> None:
    """The first timeout replaces all connections; otherwise each of them would cost one."""
    login = add_editor(database_url)
    settings = {"statement_timeout": TIMEOUT - 1, "pool_timeout": 10, "max_connections_per_client": 0}
    async with (
        run_application(through(proxy, database_url), **settings) as transport,
        httpx.AsyncClient(transport=transport, base_url=f"http://x{API_PATH}", auth=login, trust_env=False) as client,
    ):
        with psycopg.connect(database_url) as holder:
            holder.execute("LOCK TABLE venues IN ACCESS EXCLUSIVE MODE")
            reads = [asyncio.create_task(client.get("/venues")) for _ in range(OPEN)]
            await wait_until(lambda: proxy.connections >= OPEN, 60)
        await asyncio.gather(*reads)
        proxy.silence()
        statuses = [(await client.post("/venues", json={"venue": f"{n}"})).status_code for n in range(OPEN)]
    assert statuses[0] == 503
    assert statuses.count(503) <= OPEN // 2, statuses  # A busy machine may exceed the short timeout once more.


async def test_single_connections_do_not_wait_for_their_end(database_url: str, proxy: KeepingProxy) -> None:
    """Behind such a proxy, the server would wait for the end of its first connection without a limit at its start."""
    url = through(proxy, database_url)
    async with asyncio.timeout(60):
        assert (await checks.read_facts(url)).database
        assert (await checks.read_state(url)).schema.number
        await job_queue.count_jobs(url)
        await job_queue.list_jobs(url)


async def test_queue_replaces_silent_connection(database_url: str, proxy: KeepingProxy) -> None:
    connector = QueueConnector(through(proxy, database_url), timeout=TIMEOUT)
    async with App(connector=connector).open_async():
        assert await connector.execute_query_one_async("SELECT 1 AS one") == {"one": 1}
        proxy.silence()
        assert await connector.execute_query_one_async("SELECT 2 AS two") == {"two": 2}
        assert not connector.is_broken.is_set()


async def test_queue_gives_up_statement_without_answer(database_url: str, proxy: KeepingProxy) -> None:
    connector = QueueConnector(through(proxy, database_url), timeout=TIMEOUT)
    async with App(connector=connector).open_async():
        asyncio.get_running_loop().call_later(0.5, proxy.silence)
        started = time.monotonic()
        with pytest.raises(ConnectorException):
            await connector.execute_query_one_async("SELECT pg_sleep(60)")
        assert time.monotonic() - started < 30
        assert connector.is_broken.is_set()


async def test_queue_starts_again_after_read_only_connection(database_url: str) -> None:
    connector = QueueConnector(database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:
        name = sql.Identifier(database_url.rpartition("/")[2])
        admin.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
    async with App(connector=connector).open_async():
        assert await connector.execute_query_one_async("SELECT 1 AS one") == {"one": 1}
        assert not connector.is_broken.is_set()
        with pytest.raises(ConnectorException):
            await connector.execute_query_async("CREATE TABLE written (id int)")
        assert connector.is_broken.is_set()
