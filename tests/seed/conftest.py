"""Further databases, for comparisons."""

from collections.abc import Iterator

import pytest

from tests.conftest import replace_database, temporary_database


@pytest.fixture
def other_database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    with temporary_database(postgres_url, template=template_database) as name:
        yield replace_database(postgres_url, name)


@pytest.fixture
def third_database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    with temporary_database(postgres_url, template=template_database) as name:
        yield replace_database(postgres_url, name)
