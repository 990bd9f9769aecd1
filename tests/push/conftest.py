"""The fixtures of the API tests, and a stand for deliveries."""

from collections.abc import Callable, Iterator

import pytest

from tests.api.conftest import *  # noqa: F403
from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.push.delivery_stand import DeliveryStand, open_stand
from tests.servers import Server


@pytest.fixture
def idle_stand(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DeliveryStand]:
    """Return a stand without a worker."""
    template, users = user_template
    log = tmp_path_factory.mktemp("worker") / "worker.log"
    with (
        temporary_database(postgres_url, template=template) as name,
        open_stand(replace_database(postgres_url, name), users, start_server, log) as stand,
    ):
        yield stand


@pytest.fixture(scope="module")
def stand(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DeliveryStand]:
    """Return a stand with a worker, which the tests of a module share."""
    template, users = user_template
    log = tmp_path_factory.mktemp("worker") / "worker.log"
    with (
        temporary_database(postgres_url, template=template) as name,
        open_stand(replace_database(postgres_url, name), users, start_server, log) as stand,
    ):
        stand.start_worker()
        yield stand
