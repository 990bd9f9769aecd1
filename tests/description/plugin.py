"""Every answer that any test gets from the application in its process is held against /doc."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from kalends.asgi import Application
from tests.description.response_validation import checked


@pytest.fixture(scope="session", autouse=True)
def _answers_are_described() -> Iterator[None]:
    with patch.object(Application, "__call__", checked(Application.__call__)):
        yield
