"""One cell or the directory is away: the sites of the other cells notice nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import httpx
import pytest

from kalends.fleet.storage import cell_router
from tests.cells.cell_set import CellSet, CellSite
from tests.robustness.faulty_proxy import FaultyProxy
from tests.robustness.site_fixtures import API_PATH


@dataclass
class FragileCells:
    """Cells whose databases are reached through proxies; the one of the directory has an empty name."""

    cells: CellSet
    sites: dict[str, CellSite]
    proxies: dict[str, FaultyProxy]
    client: httpx.AsyncClient

    async def get_status(self, cell: str, path: str = f"{API_PATH}/events") -> int:
        response = await self.client.get(path, headers={"Host": self.sites[cell].host})
        return response.status_code

    async def stop(self, name: str) -> None:
        """Refuse connections, as a server that does not run."""
        await self.proxies.pop(name).__aexit__(None, None, None)


@asynccontextmanager
async def run_fragile(cells: CellSet, **settings: object) -> AsyncIterator[FragileCells]:
    sites = {cell: await asyncio.to_thread(cells.add_site, f"{cell}.example", cell) for cell in "abc"}
    async with AsyncExitStack() as running:
        proxies = {name: FaultyProxy(url) for name, url in {"": cells.directory_url, **cells.urls}.items()}
        for proxy in proxies.values():
            await proxy.__aenter__()
        urls = {name: proxy.url for name, proxy in proxies.items()}
        through = replace(cells, directory_url=urls.pop(""), urls=urls)
        client = await running.enter_async_context(
            through.open_client(**{"cache_mb": 0, "pool_timeout": 1, "stale_if_error_seconds": 0, **settings})
        )
        fragile = FragileCells(through, sites, proxies, client)
        try:
            yield fragile
        finally:
            await running.aclose()
            for proxy in fragile.proxies.values():
                await proxy.__aexit__(None, None, None)


async def test_sites_of_other_cells_are_unaffected_by_a_cell_that_is_down(cells: CellSet) -> None:
    async with run_fragile(cells) as fragile:
        assert [await fragile.get_status(cell) for cell in "abc"] == [200, 200, 200]
        await fragile.stop("b")
        assert [await fragile.get_status(cell) for cell in "abc"] == [200, 503, 200]
        ready = await fragile.client.get("/readyz")
        assert (ready.status_code, ready.text.splitlines()) == (
            200,
            ["ready", "cell a: ready", "cell b: The database is unreachable.", "cell c: ready"],
        )
        await fragile.stop("a")
        await fragile.stop("c")
        assert (await fragile.client.get("/readyz")).status_code == 503


async def test_sites_of_other_cells_do_not_wait_for_a_cell_that_hangs(cells: CellSet) -> None:
    async with run_fragile(cells, cache_mb=8) as fragile:
        # Cached responses need the revision of their site only.
        assert [await fragile.get_status(cell) for cell in "abc"] == [200, 200, 200]
        fragile.proxies["b"].pause()
        waiting = [asyncio.create_task(fragile.get_status("b")) for _ in range(20)]
        await asyncio.sleep(0.05)
        slowest = 0.0
        for cell in "ac" * 10:
            started = time.monotonic()
            assert await fragile.get_status(cell) == 200
            slowest = max(slowest, time.monotonic() - started)
        assert slowest < 1  # The lookup in the other cell ends after two seconds.
        started = time.monotonic()
        assert (await fragile.client.get("/readyz")).status_code == 200
        assert time.monotonic() - started < 5
        assert set(await asyncio.gather(*waiting)) == {503}


async def test_known_hosts_work_without_the_directory(cells: CellSet, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_fragile(cells) as fragile:
        assert [await fragile.get_status(cell) for cell in "ab"] == [200, 200]
        await fragile.stop("")
        monkeypatch.setattr(cell_router, "MAX_AGE", 0)  # All locations are outdated.
        for _ in range(3):
            assert [await fragile.get_status(cell) for cell in "ab"] == [200, 200]
        # Nobody knows where this one is, and whether it exists.
        assert await fragile.get_status("c") == 503
        unknown = await fragile.client.get("/events/list/", headers={"Host": "unknown.example"})
        assert (unknown.status_code, unknown.headers["retry-after"]) == (503, "1")
        assert (await fragile.client.get("/readyz")).status_code == 200


async def test_known_hosts_do_not_wait_for_a_directory_that_hangs(
    cells: CellSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_fragile(cells) as fragile:
        assert [await fragile.get_status(cell) for cell in "ab"] == [200, 200]
        fragile.proxies[""].pause()
        monkeypatch.setattr(cell_router, "MAX_AGE", 0)
        for cell in "ab" * 5:
            started = time.monotonic()
            assert await fragile.get_status(cell) == 200
            assert time.monotonic() - started < 1
        started = time.monotonic()
        assert await fragile.get_status("c") == 503
        assert time.monotonic() - started < 5


async def test_site_that_left_a_cell_before_it_went_down_is_found(
    cells: CellSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_router, "MIN_AGE", 0)
    async with run_fragile(cells) as fragile:
        assert await fragile.get_status("a") == 200
        await asyncio.to_thread(cells.move, fragile.sites["a"].id, "a", "b")
        await fragile.stop("a")
        deadline = time.monotonic() + 10
        while await fragile.get_status("a") != 200:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_site_that_moved_is_unavailable_while_the_directory_is_down(cells: CellSet) -> None:
    """The former cell does not know the site any more. That is no proof that there is none."""
    async with run_fragile(cells) as fragile:
        assert await fragile.get_status("a") == 200
        site = fragile.sites["a"]
        await asyncio.to_thread(cells.move, site.id, "a", "b")
        await fragile.stop("")
        assert await fragile.get_status("a") == 503
