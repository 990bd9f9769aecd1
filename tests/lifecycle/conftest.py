"""An application per module, on a database with one user of every role and a stranger."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.api.running_app import RunningApp, User
from tests.conftest import replace_database, temporary_database


@pytest.fixture(scope="module")
def app(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[RunningApp]:
    """Return an application whose callers choose their IP address with X-Forwarded-For."""
    template, users = user_template
    with (
        temporary_database(postgres_url, template=template) as name,
        RunningApp(replace_database(postgres_url, name), users, {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}) as running,
    ):
        yield running


@pytest.fixture
def start_app(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[Callable[..., RunningApp]]:
    """Return a function that starts an application on a separate database: `start_app({"KALENDS_…": "…"})`."""
    template, users = user_template
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> RunningApp:
            name = running.enter_context(temporary_database(postgres_url, template=template))
            environment = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1", **(settings or {})}
            return running.enter_context(RunningApp(replace_database(postgres_url, name), users, environment))

        yield start


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
