"""The fixtures of the API tests, and a site that people can follow."""

from collections.abc import Iterator

import pytest

from tests.api.conftest import *  # noqa: F403
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer, run_smtp_server
from tests.follow.follow_client import SETTINGS, open_following


@pytest.fixture
def site(start_single_site: StartApp) -> RunningApp:
    """A site that people can follow, on a database of its own, because the sender serves all sites."""
    return open_following(start_single_site(SETTINGS))


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with run_smtp_server() as server:
        yield server
