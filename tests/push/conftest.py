"""The fixtures of the API tests, and a stand for deliveries."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.api.conftest import *  # noqa: F403
from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.push.delivery_stand import DeliveryStand, OpenStand, open_stand
from tests.servers import Server


@pytest.fixture(scope="module")
def open_new_stand(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> OpenStand:
    """Return a function that opens a stand with a new database, without a worker."""
    template, users = user_template

    @contextmanager
    def open_new(settings: Mapping[str, str] | None = None) -> Iterator[DeliveryStand]:
        log = tmp_path_factory.mktemp("worker") / "worker.log"
        with (
            temporary_database(postgres_url, template=template) as name,
            open_stand(replace_database(postgres_url, name), users, start_server, log, settings) as stand,
        ):
            yield stand

    return open_new


@pytest.fixture
def idle_stand(open_new_stand: OpenStand) -> Iterator[DeliveryStand]:
    """Return a stand without a worker."""
    with open_new_stand() as stand:
        yield stand


@pytest.fixture(scope="module")
def stand(open_new_stand: OpenStand) -> Iterator[DeliveryStand]:
    """Return a stand with a worker, which the tests of a module share."""
    with open_new_stand() as stand:
        stand.start_worker()
        yield stand
