"""An application per module, on a database with people; servers of their own for what needs a process."""

import pytest

from tests.api.conftest import fresh, fresh_for_module, interface, peopled
from tests.api.running_app import Caller, Interface
from tests.lifecycle.conftest import Place, place

__all__ = ["Place", "fresh", "fresh_for_module", "interface", "peopled", "place"]


@pytest.fixture(scope="module")
def author(interface: Interface) -> Caller:
    return interface.caller("author")


@pytest.fixture(scope="module")
def editor(interface: Interface) -> Caller:
    return interface.caller("editor")
