"""The units of deploy/systemd have no mistakes, restrict the processes, and start commands that exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page_commands import PROJECT
from tests.unit.docs.test_references import check

UNITS = sorted((PROJECT / "deploy" / "systemd").glob("*.service"))
MAX_EXPOSURE = 2.0

each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "LANG": "C.UTF-8"}
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@needs_systemd
@each_unit
def test_exposure_is_low(unit: Path) -> None:
    result = analyze("security", "--offline=true", "--no-pager", unit)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", result.stdout)
    assert found, result.stderr
    assert float(found[1]) <= MAX_EXPOSURE


@needs_systemd
@each_unit
def test_unit_has_no_mistakes(unit: Path, tmp_path: Path) -> None:
    # The command of the unit is not installed here; another one must exist in its place.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/kalends/bin/kalends", sys.executable))
    result = analyze("verify", "--man=no", copy)
    assert (result.returncode, result.stderr, result.stdout) == (0, "", "")


@needs_systemd
def test_mistakes_are_found(tmp_path: Path) -> None:
    copy = tmp_path / UNITS[0].name
    copy.write_text(UNITS[0].read_text().replace("PrivateTmp=", "PrivateTemp="))
    assert "PrivateTemp" in analyze("verify", "--man=no", copy).stderr


@each_unit
def test_command_exists(unit: Path) -> None:
    found = re.search(r"(?m)^ExecStart=/opt/kalends/bin/kalends (.*)$", unit.read_text())
    assert found
    assert list(check(found[1].split())) == []


def test_units_have_the_same_restrictions() -> None:
    restrictions = {unit.read_text().partition("\n# The same restrictions")[2] for unit in UNITS}
    (server,) = restrictions
    assert server
    # The image decoder sets limits and its priority: @resources, as a part of @system-service.
    assert re.findall(r"(?m)^SystemCallFilter=(.*)$", server) == ["@system-service", "~@privileged"]
