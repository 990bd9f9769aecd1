"""One site per module, in a separate database."""

import sys
from collections.abc import Iterator

import pytest

from tests.conftest import replace_database, temporary_database
from tests.lists.list_site import ListSite, open_site
from tests.soak import SOAK


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, postgres_url: str, template_database: str) -> Iterator[ListSite]:
    with (
        temporary_database(postgres_url, template=template_database) as name,
        open_site(replace_database(postgres_url, name)) as opened_site,
    ):
        yield opened_site
        if SOAK and sys.__stderr__ is not None:
            sys.__stderr__.write(f"{request.module.__name__}: {opened_site.requests} answers compared\n")
