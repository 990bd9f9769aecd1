"""The wheel and the source distribution are complete, and the wheel works in an empty environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kalends import __version__
from tests.docs.page_commands import PROJECT
from tools import dist

Distributions = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return dist.build(tmp_path_factory.mktemp("dist"))


def test_distributions_are_complete(distributions: Distributions) -> None:
    wheel, source, _ = distributions
    assert dist.find_missing(wheel, source) == []


def test_missing_files_are_found(distributions: Distributions, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, source, _ = distributions
    # The files of deploy are in the source distribution only.
    monkeypatch.setattr(dist, "PACKAGE", PROJECT / "deploy")
    assert "deploy/varnish/default.vcl" in dist.find_missing(wheel, source)


def test_requirements_have_versions_and_hashes(distributions: Distributions) -> None:
    lines = distributions[2].read_text().replace("\\\n", " ").splitlines()
    requirements = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert requirements
    assert [line for line in requirements if not re.match(r"[\w.-]+==\S+.* --hash=sha256:", line)] == []


def test_wheel_runs_in_an_empty_environment(distributions: Distributions, tmp_path: Path) -> None:
    wheel, _, requirements = distributions
    environment = tmp_path / "environment"
    run(dist.UV, "venv", "--quiet", f"--python={sys.executable}", environment)
    install = (dist.UV, "pip", "install", "--quiet", f"--python={environment}", "--no-deps")
    run(*install, "--require-hashes", f"--requirement={requirements}")
    run(*install, wheel)
    assert run(environment / "bin" / "kalends", "--version", cwd=tmp_path).strip() == f"Kalends {__version__}"
    assert "Upgrade the database schema" in run(environment / "bin" / "kalends", "migrate", "--help", cwd=tmp_path)


def run(*command: str | Path, cwd: Path = PROJECT) -> str:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("KALENDS_", "VIRTUAL_ENV"))
    }
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=inherited, capture_output=True, text=True, timeout=300, check=True
    ).stdout
