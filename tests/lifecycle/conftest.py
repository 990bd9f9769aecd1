"""An application per module, on a database with one user of every role and a stranger."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.api.running_app import Interface, Person, add_people
from tests.conftest import address, temporary_database


@pytest.fixture(scope="session")
def peopled(postgres_url: str, template_database: str) -> Iterator[tuple[str, dict[str, Person]]]:
    """The name of a database to be copied, and the users in it."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield name, asyncio.run(add_people(address(postgres_url, name)))


@pytest.fixture(scope="module")
def interface(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Interface]:
    """Callers choose the address that they call from, by X-Forwarded-For."""
    template, people = peopled
    with (
        temporary_database(postgres_url, template=template) as name,
        Interface(address(postgres_url, name), people, {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}) as running,
    ):
        yield running


@pytest.fixture
def fresh(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Callable[..., Interface]]:
    """Starts an application on a database of its own: `fresh({"KALENDS_…": "…"})`."""
    template, people = peopled
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> Interface:
            name = running.enter_context(temporary_database(postgres_url, template=template))
            given = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1", **(settings or {})}
            return running.enter_context(Interface(address(postgres_url, name), people, given))

        yield start


@dataclass(frozen=True)
class Place:
    """A database with people, for servers and workers of its own."""

    url: str
    people: Mapping[str, Person]


@pytest.fixture
def place(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Place]:
    template, people = peopled
    with temporary_database(postgres_url, template=template) as name:
        yield Place(address(postgres_url, name), people)
