"""Three cells with a directory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kalends.fleet.storage import directory as directory_changes
from tests.cells.cell_set import NAMES, CellSet
from tests.cells.live_cells import LiveCells, open_live_cells
from tests.cells.move_fixtures import open_logical_cluster
from tests.conftest import replace_database, temporary_database
from tests.robustness.two_sites import SitePair, fill_two_sites
from tools.postgres import Server


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[Server, str]]:
    """Return a cluster that can replicate logically, and the name of a migrated database."""
    with open_logical_cluster() as opened:
        yield opened


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCells]:
    """Return three cells as PostgreSQL servers of their own, with servers and workers."""
    with open_live_cells(tmp_path) as opened:
        yield opened


@pytest.fixture
def empty_cells(postgres_url: str, template_database: str) -> Iterator[CellSet]:
    """Return migrated databases that the directory does not know yet."""
    with ExitStack() as running:
        names = [running.enter_context(temporary_database(postgres_url, template=template_database)) for _ in NAMES]
        directory = replace_database(postgres_url, running.enter_context(temporary_database(postgres_url)))
        asyncio.run(directory_changes.apply_schema(directory))
        urls = [replace_database(postgres_url, name) for name in names]
        yield CellSet(directory, dict(zip(NAMES, urls, strict=True)))


@pytest.fixture
def cells(empty_cells: CellSet) -> CellSet:
    """Return three cells without sites."""
    for name, url in empty_cells.urls.items():
        asyncio.run(directory_changes.add_cell(empty_cells.directory_url, url, name))
    return empty_cells


@pytest.fixture
async def pair(empty_cells: CellSet) -> AsyncIterator[SitePair]:
    """Return two sites with the same record IDs in two cells, for the tests of isolation."""
    filled = await fill_two_sites(empty_cells.urls["a"])
    for name in "ab":
        await directory_changes.add_cell(empty_cells.directory_url, empty_cells.urls[name], name)
    await asyncio.to_thread(empty_cells.move, filled.b.id, "a", "b")
    async with empty_cells.open_transport(pool_size=2) as transport:
        a, b = (replace(site, transport=transport) for site in (filled.a, filled.b))
        yield SitePair(filled.database_url, a, b)
