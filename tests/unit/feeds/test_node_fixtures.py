"""Tests that need Node are marked by the fixture they use, so a fresh clone can run the others."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]


def test_only_fixtures_start_node() -> None:
    readers = r"\b(IcalJs|RuleReader|NodeProcess)\(\)"
    sources = [path for path in TESTS.rglob("*.py") if re.search(readers, path.read_text())]
    assert [path.relative_to(TESTS).as_posix() for path in sources] == ["feeds/conftest.py"]
