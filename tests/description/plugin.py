"""A plugin that validates every response of the application in the test process against /doc."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from kalends.asgi import Application
from tests.description.response_validation import wrap_application


@pytest.fixture(scope="session", autouse=True)
def _responses_match_document() -> Iterator[None]:
    with patch.object(Application, "__call__", wrap_application(Application.__call__)):
        yield
