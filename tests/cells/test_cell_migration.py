"""All cells are migrated to the next version while servers of this one use them."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.cells.cell_set import NAMES
from tests.cells.live_cells import LiveCells, Load
from tests.robustness.consistency import assert_consistent
from tests.soak import SOAK
from tests.upgrade.versions import next_version

pytestmark = pytest.mark.process

WRITERS, READERS = 2, 2


@pytest.mark.skipif(not SOAK, reason="builds another version, which takes minutes; runs with `just soak` only")
async def test_cells_are_migrated_under_load_without_an_error(live: LiveCells, report: Any) -> None:
    cells, version = live.cells, await asyncio.to_thread(next_version)
    sites = [await asyncio.to_thread(cells.add_site, f"{name}.example", name) for name in NAMES]
    # Commands share the standard output of this process, so only one load could run them.
    loads = [Load(live, site, adds_accounts=False) for site in sites]
    printed = ""

    async def migrate() -> None:
        nonlocal printed
        await asyncio.sleep(3)
        printed = await asyncio.to_thread(version.run, "postgresql:///unused", "migrate", settings=live.environment)
        # Two versions of the schema and of the code: the servers stay ready and go on.
        async with httpx.AsyncClient(trust_env=False) as client:
            for server in live.servers:
                assert (await client.get(f"{server.base_url}/readyz")).status_code == 200
        await asyncio.sleep(5)

    work = asyncio.create_task(migrate())
    await asyncio.gather(*[load.run(WRITERS, READERS, work) for load in loads])
    for site, load in zip(sites, loads, strict=True):
        assert f"{site.cell}: done in" in printed
        assert cells.sql(site.cell, "SELECT version_num FROM alembic_version") == [(version.schema,)]
        stored = dict(cells.sql(site.cell, "SELECT id, title FROM events"))
        assert stored.items() >= load.titles.items()
        assert_consistent(cells.urls[site.cell], site.id)
    writes, reads = sum(load.writes for load in loads), sum(load.reads for load in loads)
    report(f"{writes} writes, {reads} reads, 0 errors, during\n{printed}")
