"""The files and calls of kalends in one warm request do not increase (`python -m tools.walk`)."""

from inspect import unwrap
from unittest.mock import patch

import pytest

from kalends.asgi import Application
from tests.api.conftest import StartApp
from tools.walk import Walk, measure_all

# Files and calls. Lower them when a change saves some; they never rise. They rose once: since linked records are no
# longer kept between requests (decision 0037), events are rendered together with them, which takes two more files.
# The month rose by 30 calls when pages began to name their fonts, their category and disabled buttons.
CEILINGS = {
    "GET event, cached": (10, 33),
    "GET event": (30, 404),
    "GET five events": (33, 683),
    "POST event": (39, 857),
    "Month page": (43, 1677),
    "Save in the console": (43, 713),
}
# Calls of timers that may fall into a request, for example those of the access log and of earlier tests' servers.
TIMERS = 5


@pytest.fixture(scope="module")
def walks(start_single_site_for_module: StartApp) -> dict[str, Walk]:
    # The validation of responses would be counted.
    with patch.object(Application, "__call__", unwrap(Application.__call__)):
        return measure_all(start_single_site_for_module())


@pytest.mark.parametrize("name", CEILINGS)
def test_request_runs_through_few_files_and_calls(walks: dict[str, Walk], name: str) -> None:
    files, calls = CEILINGS[name]
    assert walks[name].files <= files
    assert walks[name].calls <= calls + TIMERS


def test_every_measured_request_has_a_ceiling(walks: dict[str, Walk]) -> None:
    assert set(walks) == set(CEILINGS)
