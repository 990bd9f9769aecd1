"""Two sites in one database, for tests of isolation."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conftest import replace_database, temporary_database
from tests.robustness.two_sites import SitePair, copy_sites, fill_two_sites


@pytest.fixture(scope="module")
def module_database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """Return the URL of a migrated database for the tests of a module. Each test adds a site."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield replace_database(postgres_url, name)


@pytest.fixture(scope="module")
def filled_pair(module_database_url: str) -> SitePair:
    """Return two sites with the same IDs and slugs, to be copied."""
    return asyncio.run(fill_two_sites(module_database_url))


@pytest.fixture
async def pair(postgres_url: str, filled_pair: SitePair) -> AsyncIterator[SitePair]:
    """Return a copy of the two sites for one test."""
    template = filled_pair.database_url.rpartition("/")[2]
    with temporary_database(postgres_url, template=template) as name:
        async with copy_sites(filled_pair, replace_database(postgres_url, name)) as pair:
            yield pair
