"""The small form of `just bench-sites`: requests to many sites, the jobs of the worker, and the limits."""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.load import Sample
from bench.many_sites import CASES, CONNECTIONS, Cost, Memory, Result, measure_costs, measure_memory, read_all
from bench.periodic_jobs import JobWork, measure_periodic_jobs
from bench.site_copies import fill_copies, host_name
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.operations.record_verbs import read_record
from kalends.core.times import utc_now
from kalends.store.database import Database, Options
from kalends.store.sql import Sql
from tests.conftest import replace_database, temporary_database
from tests.servers import Server

pytestmark = pytest.mark.process

ONE, SAME, MORE = Sample(0, 0, 0, 2.0, 1.0), Sample(0, 0, 0, 2.2, 1.2), Sample(0, 0, 0, 2.2, 1.6)
MEMORY = Memory(100, 180, 185)
# The statements that read the event and its linked records.
PREPARED = """
    SELECT statement, generic_plans FROM pg_prepared_statements
    WHERE statement ~ ' FROM (events|venues) r '
"""


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (Debian: wrk)")
def test_requests_to_many_sites(database_url: str, start_server: Callable[..., Server]) -> None:
    sites = fill_copies(database_url, 6)
    hosts = sites.list_hosts(3)
    assert hosts == [host_name(1), host_name(3), host_name(5)]
    server = start_server(database_url)
    read_all(server, hosts, [case.path(sites) for case in CASES])
    targets = [(server, sites, hosts[:1]), (server, sites, hosts)]
    costs = measure_costs(targets, CASES[:1], os.getpid(), rounds=1, seconds=1)
    assert [cost.connections for cost in costs] == list(CONNECTIONS)
    assert all(run.rate > 1 for cost in costs for run in (*cost.one, *cost.many))
    memory = measure_memory(server, sites, hosts)
    assert memory.first > 10
    server.stop()


def test_periodic_jobs_do_not_visit_idle_sites(postgres_url: str, template_database: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        works = []
        for sites in (2, 800):
            name = stack.enter_context(temporary_database(postgres_url, template=template_database))
            url = replace_database(postgres_url, name)
            fill_copies(url, sites)
            works.append(asyncio.run(measure_periodic_jobs(url, tmp_path)))
    few, many = works
    assert {"trim_change_logs", "publish_overdue", "empty_trash", "extend_series"} <= few.keys()
    assert many["trim_change_logs"].statements == ["SELECT site_id FROM sites_with_old_changes($1)"]
    assert Result([], MEMORY, few, many).find_failures() == []


async def test_statements_of_one_event_are_planned_once(database_url: str) -> None:
    """With many sites, plans for the values of one request would always seem cheaper than a plan for all."""
    sites = fill_copies(database_url, 300)
    database = await Database.open(Options(database_url, size=1))
    plans: dict[str, int] = {}
    try:
        for number in range(1, 21):
            async with database.transaction(host_name(number), utc_now(), writing=False) as tx:
                await read_record(EVENTS, OperationContext(tx, Actor(), "", "", slug=sites.slug))
                rows = await tx.fetch_all(Sql(PREPARED))
                plans = {row["statement"]: row["generic_plans"] for row in rows}
    finally:
        await database.close()
    assert len(plans) == 2
    assert all(plans.values())


@pytest.mark.parametrize(
    ("many", "memory", "blocks", "failures"),
    [
        (SAME, MEMORY, 40, 0),
        (MORE, MEMORY, 40, 1),  # more CPU
        (SAME, Memory(100, 240, 245), 40, 1),  # more than the budgets of the caches
        (SAME, Memory(100, 150, 180), 40, 1),  # still growing
        (SAME, MEMORY, 200, 1),  # a job that visits all sites
    ],
)
def test_limits(many: Sample, memory: Memory, blocks: int, failures: int) -> None:
    runs: Sequence[Sample] = [many] * 3
    costs = [Cost(CASES[0], 1, [ONE] * 3, runs)]
    result = Result(costs, memory, {"job": JobWork([], 10)}, {"job": JobWork([], blocks)})
    assert len(result.find_failures()) == failures
