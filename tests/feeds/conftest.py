"""An application per test, with the fixtures of tests/api."""

from tests.api.conftest import start_app, start_app_for_module

__all__ = ["start_app", "start_app_for_module"]
