"""The tests that docs/security.md names exist and are quick, apart from those that need a server."""

import ast
import re
from pathlib import Path

from tests.conftest import FIXTURE_MARKERS, find_path_markers
from tests.docs.page_commands import PROJECT

ROW = re.compile(r"^\| .+ \| `([\w/]+\.py)::(\w+)`( \(server\))? \|$", re.MULTILINE)
ROWS = ROW.findall((PROJECT / "docs" / "security.md").read_text())
SLOW_MARKERS = {"process", "browser", "varnish", "npm", "docs", "exhaustive", "large"}


def find_file(name: str) -> Path:
    (path,) = [path for folder in ("tests", "tests/unit") if (path := PROJECT / folder / name).exists()]
    return path


def find_test(path: Path, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.parse(path.read_text()).body if isinstance(node, functions) and node.name == name]
    assert found, f"{path} has no {name}"
    return found[0]


def list_markers(path: Path, test: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the markers of a test by its path, its fixtures and its decorators."""
    decorators = {node.attr for node in test.decorator_list if isinstance(node, ast.Attribute)}
    fixtures = {argument.arg for argument in test.args.args}
    by_fixture = {marker for fixture, marker in FIXTURE_MARKERS.items() if fixture in fixtures}
    return decorators | by_fixture | {*find_path_markers(path)}


def test_named_tests_exist_and_are_quick() -> None:
    assert len(ROWS) == len(set(ROWS)) >= 70
    wrong = []
    for file, name, needs_server in ROWS:
        path = find_file(file)
        slow = list_markers(path, find_test(path, name)) & SLOW_MARKERS
        if bool(slow) != bool(needs_server):
            wrong.append((file, name, slow))
    assert wrong == []
