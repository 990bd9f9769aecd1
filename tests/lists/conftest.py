"""One site per module, in a database of its own."""

import sys
from collections.abc import Iterator

import pytest

from tests.conftest import address, temporary_database
from tests.lists.list_site import Site, open_site
from tests.soak import SOAK


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, postgres_url: str, template_database: str) -> Iterator[Site]:
    with (
        temporary_database(postgres_url, template=template_database) as name,
        open_site(address(postgres_url, name)) as opened,
    ):
        yield opened
        if SOAK and sys.__stderr__ is not None:
            sys.__stderr__.write(f"{request.module.__name__}: {opened.asked} answers compared\n")
