"""The markers of tests/markers.py, in runs of pytest on small files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
QUARANTINED = "@pytest.mark.quarantined(reason='a slow disk')\n"


def run_pytest(folder: Path, source: str, *arguments: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text(
        "[pytest]\nxfail_strict = true\nmarkers =\n quick\n quarantined\n exhaustive\n"
    )
    (folder / "test_it.py").write_text(f"import pytest\n{source}")
    command = [sys.executable, "-m", "pytest", "-ptests.markers", "-pno:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--rootdir", folder, *arguments, folder],
        cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("statement", "outcome"), [("pass", "passed"), ("assert 1 == 2", "failed")])
def test_quarantined_test_runs_but_cannot_fail_the_run(tmp_path: Path, statement: str, outcome: str) -> None:
    status, output = run_pytest(tmp_path, f"{QUARANTINED}def test_a(): {statement}\ndef test_b(): pass\n")
    assert status == 0, output
    assert f"test_it.py::test_a: {outcome}, quarantined: a slow disk\n" in output
    assert run_pytest(tmp_path, f"{QUARANTINED}def test_a(): pass\ndef test_b(): assert 0\n")[0] == 1


def test_at_most_five_tests_are_quarantined(tmp_path: Path) -> None:
    tests = [f"{QUARANTINED}@pytest.mark.parametrize('x', [1, 2])\ndef test_{n}(x): pass\n" for n in range(6)]
    assert run_pytest(tmp_path, "".join(tests[:5]))[0] == 0
    status, output = run_pytest(tmp_path, "".join(tests))
    assert (status, "6 tests are quarantined, 5 may be" in output) == (4, True)


def test_other_parameter_sets_of_a_quick_test_are_exhaustive(tmp_path: Path) -> None:
    source = "@pytest.mark.quick({})\n@pytest.mark.parametrize('x', ['a', 'ab', 'b', 'cde'])\ndef test_x(x): pass\n"
    _, output = run_pytest(tmp_path, source.format("'a', 'cd'"), "-m", "not exhaustive", "-v")
    assert re.findall(r"test_x\[(\w+)\] PASSED", output) == ["a", "cde"]
    assert run_pytest(tmp_path, source.format("'a', 'cd'"), "-v")[1].count(" PASSED") == 4
    status, output = run_pytest(tmp_path, source.format("'a', 'd'"))
    assert (status, "not one parameter set begins with ['d']" in output) == (2, True)
