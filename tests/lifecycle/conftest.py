"""A site per module, with one user of every role, and databases for servers and workers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.api.conftest import StartApp, start_single_site
from tests.api.running_app import RunningApp, User
from tests.conftest import replace_database, temporary_database

__all__ = ["start_single_site"]


@pytest.fixture(scope="session")
def forwarding_app(shared_app: RunningApp) -> Iterator[RunningApp]:
    """Return an application like `shared_app` whose callers choose their IP address with X-Forwarded-For."""
    with RunningApp(shared_app.database_url, {}, {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}) as running:
        yield running


@pytest.fixture(scope="module")
def app(forwarding_app: RunningApp) -> RunningApp:
    """Return the site that the tests of a module share."""
    return forwarding_app.add_site()


@pytest.fixture
def start_app(forwarding_app: RunningApp) -> StartApp:
    """Return a function that adds a site."""
    return forwarding_app.add_site


@dataclass(frozen=True)
class UserDatabase:
    """A database with users, for servers and workers."""

    url: str
    users: Mapping[str, User]


@pytest.fixture
def user_database(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[UserDatabase]:
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        yield UserDatabase(replace_database(postgres_url, name), users)
