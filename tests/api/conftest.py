"""An application per module, on a copy of a database that has one user of every role."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from tests.api.running_app import Caller, RunningApp, User
from tests.api.sample_records import LINKED, POSTS, SAMPLES, TERMS, Sample
from tests.conftest import replace_database, temporary_database

StartApp = Callable[..., RunningApp]


@contextmanager
def app_factory(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """Starts applications, each on a database of its own; all are stopped in the end."""
    template, users = user_template
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> RunningApp:
            name = running.enter_context(temporary_database(postgres_url, template=template))
            return running.enter_context(RunningApp(replace_database(postgres_url, name), users, settings))

        yield start


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    """The application that the tests of a module share: what one of them counts, it has named uniquely."""
    return start_app_for_module()


@pytest.fixture(scope="module")
def start_app_for_module(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """As `fresh`, for an application that several tests of a module share."""
    with app_factory(postgres_url, user_template) as start:
        yield start


@pytest.fixture
def start_app(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """Starts an application on a database of its own: `fresh({"KALENDS_…": "…"})`."""
    with app_factory(postgres_url, user_template) as start:
        yield start


@pytest.fixture(scope="module")
def anonymous(app: RunningApp) -> Caller:
    return app.caller()


@pytest.fixture(scope="module")
def subscriber(app: RunningApp) -> Caller:
    return app.caller("subscriber")


@pytest.fixture(scope="module")
def contributor(app: RunningApp) -> Caller:
    return app.caller("contributor")


@pytest.fixture(scope="module")
def author(app: RunningApp) -> Caller:
    return app.caller("author")


@pytest.fixture(scope="module")
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")


@pytest.fixture(scope="module")
def administrator(app: RunningApp) -> Caller:
    return app.caller("administrator")


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
