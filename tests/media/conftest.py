"""An application per module, on a database with users, and databases for tests that start processes."""

import pytest

from tests.api.conftest import (
    app,
    start_single_site as start_app,
    start_single_site_for_module as start_app_for_module,
)
from tests.api.running_app import Caller, RunningApp
from tests.lifecycle.conftest import UserDatabase, user_database

__all__ = ["UserDatabase", "app", "start_app", "start_app_for_module", "user_database"]


@pytest.fixture(scope="module")
def author(app: RunningApp) -> Caller:
    return app.caller("author")


@pytest.fixture(scope="module")
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")
