"""An application with accounts that can sign in to the console."""

import pytest

from tests.api.conftest import (
    StartApp,
    start_app,
    start_app_for_module,
    start_single_site,
    start_single_site_for_module,
)
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, set_passwords
from tests.pages.conftest import chromium

__all__ = ["chromium", "start_app", "start_app_for_module", "start_single_site", "start_single_site_for_module"]


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    """Return the site that the tests of a module share, with a password for every account."""
    started = start_app_for_module()
    set_passwords(started)
    return started


@pytest.fixture
def visitor(app: RunningApp) -> ConsoleClient:
    return ConsoleClient(app)


@pytest.fixture
def administrator(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "administrator")


@pytest.fixture
def editor(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "editor")


@pytest.fixture
def author(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "author")


@pytest.fixture
def contributor(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "contributor")
