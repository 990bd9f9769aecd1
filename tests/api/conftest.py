"""An application per module, on a copy of a database that has one user of every role."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from tests.api.running_app import Caller, Interface, Person, add_people
from tests.api.sample_records import LINKED, POSTS, SAMPLES, TERMS, Sample
from tests.conftest import address, temporary_database


@pytest.fixture(scope="session")
def peopled(postgres_url: str, template_database: str) -> Iterator[tuple[str, dict[str, Person]]]:
    """The name of a database to be copied, and the users in it."""
    with temporary_database(postgres_url, template=template_database) as name:
        yield name, asyncio.run(add_people(address(postgres_url, name)))


Start = Callable[..., Interface]


@contextmanager
def starting(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Start]:
    """Starts applications, each on a database of its own; all are stopped in the end."""
    template, people = peopled
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> Interface:
            name = running.enter_context(temporary_database(postgres_url, template=template))
            return running.enter_context(Interface(address(postgres_url, name), people, settings))

        yield start


@pytest.fixture(scope="module")
def interface(fresh_for_module: Start) -> Interface:
    """The application that the tests of a module share: what one of them counts, it has named uniquely."""
    return fresh_for_module()


@pytest.fixture(scope="module")
def fresh_for_module(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Start]:
    """As `fresh`, for an application that several tests of a module share."""
    with starting(postgres_url, peopled) as start:
        yield start


@pytest.fixture
def fresh(postgres_url: str, peopled: tuple[str, dict[str, Person]]) -> Iterator[Start]:
    """Starts an application on a database of its own: `fresh({"KALENDS_…": "…"})`."""
    with starting(postgres_url, peopled) as start:
        yield start


@pytest.fixture(scope="module")
def anonymous(interface: Interface) -> Caller:
    return interface.caller()


@pytest.fixture(scope="module")
def subscriber(interface: Interface) -> Caller:
    return interface.caller("subscriber")


@pytest.fixture(scope="module")
def contributor(interface: Interface) -> Caller:
    return interface.caller("contributor")


@pytest.fixture(scope="module")
def author(interface: Interface) -> Caller:
    return interface.caller("author")


@pytest.fixture(scope="module")
def editor(interface: Interface) -> Caller:
    return interface.caller("editor")


@pytest.fixture(scope="module")
def administrator(interface: Interface) -> Caller:
    return interface.caller("administrator")


@pytest.fixture(params=SAMPLES.values(), ids=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    """Each of the five kinds in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=POSTS, ids=lambda kind: kind.kind)
def post(request: pytest.FixtureRequest) -> Sample:
    """Events, venues and organizers in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=TERMS, ids=lambda kind: kind.kind)
def term(request: pytest.FixtureRequest) -> Sample:
    """Categories and tags in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=LINKED, ids=lambda kind: kind.kind)
def place(request: pytest.FixtureRequest) -> Sample:
    """Venues and organizers in turn: what an event links to and is a post itself."""
    kind: Sample = request.param
    return kind
