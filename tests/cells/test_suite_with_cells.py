"""The small form of `just test-cells`: tests of the API pass on a site that is found through a directory."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

TESTS = ("tests/api/test_event_lists.py", "tests/api/test_index_and_doc.py::test_readiness_of_three_cells")


def test_lists_of_a_site_in_a_cell() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KALENDS_", "PYTEST_"))}
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        env={**environment, "KALENDS_TEST_CELLS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout
    assert "skipped" not in completed.stdout
