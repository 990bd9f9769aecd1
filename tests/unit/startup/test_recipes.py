"""The recipes that newcomers run first."""

import re
from pathlib import Path

import pytest

JUSTFILE = Path(__file__).resolve().parents[3] / "justfile"


@pytest.mark.parametrize("recipe", ["run", "demo"])
def test_first_line_is_output_of_the_program(recipe: str) -> None:
    assert re.search(rf"^{recipe}:\n +@", JUSTFILE.read_text(), re.MULTILINE)
