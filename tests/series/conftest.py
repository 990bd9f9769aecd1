"""The fixtures of the API tests, and a caller of the extension."""

from tests.api.conftest import *  # noqa: F403
