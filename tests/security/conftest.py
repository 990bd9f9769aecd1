"""An application per test, as the tests of the interface have it."""

from tests.api.conftest import fresh, fresh_for_module, peopled

__all__ = ["fresh", "fresh_for_module", "peopled"]
