"""The small form of `just bench-mixed`: a large site beside small ones, its requests, and the limit."""

import os
import shutil
from collections.abc import Callable

import pytest

from bench.load import Sample
from bench.mixed_sites import CASES, Cost, add_neighbors, fill_large_site, find_failures, make_target, measure_costs
from bench.seeded_sites import NS
from bench.site_copies import fill_copies, host_name
from kalends.core.times import utc_now
from kalends.store.database import Database, Options
from kalends.store.sql import Sql
from tests.conftest import replace_database, temporary_database
from tests.servers import Server

pytestmark = pytest.mark.process


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (Debian: wrk)")
def test_large_site_beside_small_ones(
    postgres_url: str, template_database: str, database_url: str, start_server: Callable[..., Server]
) -> None:
    with temporary_database(postgres_url, template=template_database) as name:
        large = fill_large_site(replace_database(postgres_url, name), 60)
        small = fill_copies(database_url, 3)
        neighbor = add_neighbors(small, large, large, medium_sites=1)
        assert add_neighbors(small, large, large, medium_sites=1) == neighbor
        assert neighbor.list_hosts(1) == [host_name(4)]

        alone, shared = start_server(large.url), start_server(small.url)
        bodies = []
        for server in (alone, shared):
            with server.client() as client:
                response = client.get(f"{NS}/events?per_page=50", headers={"Host": host_name(4)})
                bodies.append(response.raise_for_status().json())
        assert bodies[0] == bodies[1]
        assert bodies[0]["total"] > 20

        targets = (
            make_target(alone, large, large.list_hosts(1)),
            make_target(shared, neighbor, neighbor.list_hosts(1)),
        )
        cases = [case for case in CASES if case.script]
        costs = measure_costs("large", targets, cases, os.getpid(), rounds=1, seconds=1)
        assert [cost.name for cost in costs] == [f"large, {case.name}" for case in cases]
        assert all(run.rate > 1 for cost in costs for run in (*cost.alone, *cost.shared))
        for server in (alone, shared):
            server.stop()


async def test_statements_of_a_large_site_are_planned_for_it(
    postgres_url: str, template_database: str, database_url: str
) -> None:
    """Plans for a site of average size would read all events of a large one; alone, a site is of average size."""
    with temporary_database(postgres_url, template=template_database) as name:
        large = fill_large_site(replace_database(postgres_url, name), 1500)
        small = fill_copies(database_url, 100)
        neighbor = add_neighbors(small, large, large, medium_sites=0)
        modes = [await _read_plan_mode(site.url, site.list_hosts(1)[0]) for site in (small, neighbor, large)]
    assert modes == ["auto", "force_custom_plan", "auto"]


async def _read_plan_mode(url: str, host: str) -> str:
    """Return the mode of the plans in a transaction, by host and by ID; it ends with the transaction."""
    database = await Database.open(Options(url, size=1))
    modes: list[str] = []
    try:
        async with database.transaction(host, utc_now(), writing=False) as tx:
            site_id = tx.site.id
        for key in (host, site_id):
            async with database.transaction(key, utc_now(), writing=False) as tx:
                modes.append((await tx.fetch_all(Sql("SHOW plan_cache_mode")))[0]["plan_cache_mode"])
    finally:
        await database.close()
    assert modes[0] == modes[1]
    return modes[0]


def test_limit() -> None:
    one, same, more = Sample(0, 0, 0, 2.0, 1.0), Sample(0, 0, 0, 2.2, 1.2), Sample(0, 0, 0, 2.2, 1.6)
    assert find_failures([Cost("list", [one] * 3, [same] * 3)]) == []
    assert find_failures([Cost("list", [one] * 3, [more] * 3)]) == ["list: 1.27 × the site alone"]
