"""Rooms consist of units in one order, and `lint-imports` finds what breaks it (docs/architecture.md)."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from importlinter.cli import lint_imports

from tests.conftest import keep_logging

PROJECT = Path(__file__).parents[2]
CONFIGURATION = (PROJECT / "pyproject.toml").read_text()
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["name"]: contract for contract in tomllib.loads(CONFIGURATION)["tool"]["importlinter"]["contracts"]
}
ORDER = re.findall(r"[\w.]+", " ".join(CONTRACTS["Order"]["layers"]))
ROOMS = CONTRACTS["Units of a room"]["containers"]


def test_every_unit_is_in_the_order() -> None:
    files = [file for room in ROOMS for file in (PROJECT / room.replace(".", "/")).glob("[a-z]*")]
    units = {f"kalends.{file.parent.name}.{file.stem}" for file in files}
    assert units == {name for name in ORDER if name.rpartition(".")[0] in ROOMS}


def test_file_names_are_unique_except_units() -> None:
    units = set(re.findall(r"\w+", " ".join(CONTRACTS["Units of a room"]["layers"])))
    names = Counter(file.stem for file in (PROJECT / "kalends").rglob("*.py"))
    assert {name for name, number in names.items() if number > 1} - units == {"__init__"}


@pytest.mark.parametrize(
    ("module", "text", "broken"),
    [
        ("series.operations", "import kalends.calendar.operations", []),
        ("series.rules", "import kalends.imports.rules", ["Order"]),
        ("series.helpers", "", ["Units of a room"]),
        ("extras", "", ["Every package has a place"]),
        ("series.rules", "import granian", ["Rules are pure"]),
        ("rendering", "import kalends.calendar.operations", ["Page models are pure"]),
        ("series.operations", "import asyncpg", ["Only storage imports the database driver"]),
        ("worker", "import starlette", ["No web below the surface"]),
        ("http", "import babel", ["Only rendering and the console import Jinja2 and Babel"]),
    ],
)
def test_each_contract_finds_what_breaks_it(
    module: str, text: str, broken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Lint a house in which only one module has code. Its package has another name, as kalends is imported."""
    for name in ["kalends", *ROOMS, *ORDER, "kalends.website.models", f"kalends.{module}"]:
        package = tmp_path / name.replace("kalends", "house").replace(".", "/")
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(text.replace("kalends", "house") if name == f"kalends.{module}" else "")
    configuration = tmp_path / "house.toml"
    configuration.write_text(CONFIGURATION.replace("kalends", "house"))
    monkeypatch.syspath_prepend(tmp_path)
    with keep_logging():
        lint_imports(config_filename=str(configuration), no_cache=True)
    lines = re.findall(r"^(.*) (KEPT|BROKEN)$", capsys.readouterr().out, re.MULTILINE)
    assert lines == [(name, "BROKEN" if name in broken else "KEPT") for name in CONTRACTS]
