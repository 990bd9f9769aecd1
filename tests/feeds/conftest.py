"""An application per test, with the fixtures of tests/api, and the readers that need Node."""

from collections.abc import Iterator

import pytest

from tests.api.conftest import start_app, start_app_for_module
from tests.feeds.ical_readers import IcalJs
from tests.feeds.rule_readers import RuleReader

__all__ = ["start_app", "start_app_for_module"]


# tests/conftest.py marks tests by the names of these fixtures, so nothing else starts Node.
@pytest.fixture(scope="session")
def ical_js() -> Iterator[IcalJs]:
    with IcalJs() as started:
        yield started


@pytest.fixture(scope="session")
def rule_reader() -> Iterator[RuleReader]:
    with RuleReader() as started:
        yield started
