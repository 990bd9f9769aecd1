"""An application per test, as the tests of the interface have it, and readers of feeds that are not ours."""

from tests.api.conftest import start_app, start_app_for_module

__all__ = ["start_app", "start_app_for_module"]
