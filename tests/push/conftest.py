"""The fixtures of the API tests."""

from tests.api.conftest import *  # noqa: F403
