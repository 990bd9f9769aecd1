"""A plugin that validates every response of the application in the test process against /doc."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

UNIT_TESTS = Path(__file__).parents[1] / "unit"


@pytest.fixture(scope="session", autouse=True)
def _responses_match_document(request: pytest.FixtureRequest) -> Iterator[None]:
    if all(item.path.is_relative_to(UNIT_TESTS) for item in request.session.items):
        yield  # They send no requests, and need not wait for the import of the application.
        return
    from kalends.asgi import Application
    from tests.description.response_validation import wrap_application

    with patch.object(Application, "__call__", wrap_application(Application.__call__)):
        yield
