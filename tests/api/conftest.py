"""A site per module in the shared application, with one user of every role."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.running_app import Caller, RunningApp, User
from tests.api.sample_records import LINKED, POSTS, SAMPLES, TERMS, Sample
from tests.conftest import replace_database, temporary_database

StartApp = Callable[..., RunningApp]
TRANSACTION_METHODS = ("fetch_all", "fetch_one", "fetch_value", "execute")


@contextmanager
def app_factory(shared_app: RunningApp) -> Iterator[StartApp]:
    """Yield a function that adds sites to the shared application, or to one with other settings on its database."""
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> RunningApp:
            if settings is None:
                return shared_app.add_site()
            return running.enter_context(RunningApp(shared_app.database_url, {}, settings)).add_site()

        yield start


@contextmanager
def single_site_factory(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """Yield a function that starts applications, each on a separate database with one site."""
    template, users = user_template
    with ExitStack() as running:

        def start(settings: Mapping[str, str] | None = None) -> RunningApp:
            name = running.enter_context(temporary_database(postgres_url, template=template))
            return running.enter_context(RunningApp(replace_database(postgres_url, name), users, settings))

        yield start


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    """Return the site that the tests of a module share. Tests that count records give them unique names."""
    return start_app_for_module()


@pytest.fixture(scope="module")
def start_app_for_module(shared_app: RunningApp) -> Iterator[StartApp]:
    """Return a function like `start_app`, for sites that several tests of a module share."""
    with app_factory(shared_app) as start:
        yield start


@pytest.fixture
def start_app(shared_app: RunningApp) -> Iterator[StartApp]:
    """Return a function that adds a site: `start_app()`, or with other settings `start_app({"KALENDS_…": "…"})`."""
    with app_factory(shared_app) as start:
        yield start


@pytest.fixture(scope="module")
def start_single_site_for_module(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """Return a function like `start_single_site`, for applications that several tests of a module share."""
    with single_site_factory(postgres_url, user_template) as start:
        yield start


@pytest.fixture
def start_single_site(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[StartApp]:
    """Return a function like `start_app`, for tests of the schema, the jobs or the commands of a database."""
    with single_site_factory(postgres_url, user_template) as start:
        yield start


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL of every statement that requests run from here on."""
    seen: list[str] = []

    def record_statements(method: Callable[..., Any]) -> Callable[..., Any]:
        async def run_statement(self: Transaction, sql: Sql) -> Any:
            seen.append(" ".join(sql.text.split()))
            return await method(self, sql)

        return run_statement

    for name in TRANSACTION_METHODS:
        monkeypatch.setattr(Transaction, name, record_statements(getattr(Transaction, name)))
    return seen


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


def mark_all_but(quick: Sequence[str], samples: Iterable[Sample]) -> list[Any]:
    """Return samples as parameters; `just test-quick` uses the quick ones only."""
    return [pytest.param(sample, marks=() if sample.kind in quick else pytest.mark.exhaustive) for sample in samples]


@pytest.fixture(params=mark_all_but(["events", "tags"], SAMPLES.values()), ids=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    """Return each of the five kinds in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=mark_all_but(["events", "organizers"], POSTS), ids=[post.kind for post in POSTS])
def post(request: pytest.FixtureRequest) -> Sample:
    """Return events, venues and organizers in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=TERMS, ids=lambda kind: kind.kind)
def term(request: pytest.FixtureRequest) -> Sample:
    """Return categories and tags in turn."""
    kind: Sample = request.param
    return kind


@pytest.fixture(params=LINKED, ids=lambda kind: kind.kind)
def place(request: pytest.FixtureRequest) -> Sample:
    """Return venues and organizers in turn: the posts that events link to."""
    kind: Sample = request.param
    return kind
