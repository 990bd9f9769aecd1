"""The committed bundle of the rich-text editor: reproducible, small, and with its licences."""

import gzip
import json
import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "tools" / "editor"
STATIC = ROOT / "kalends" / "console" / "static"
BUNDLE = STATIC / "rich-text.js"
MAX_GZIP_BYTES = 75_000


@pytest.fixture(scope="module")
def esbuild() -> Path:
    """Return the program; install it and the packages if `just setup-node` has not done so."""
    program = SOURCES / "node_modules" / ".bin" / "esbuild"
    if not program.exists():
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=SOURCES, check=True, timeout=300)
    return program


def test_bundle_is_built_from_its_sources(esbuild: Path, tmp_path: Path) -> None:
    script = json.loads((SOURCES / "package.json").read_text())["scripts"]["build"]
    arguments = [argument for argument in script.split() if not argument.startswith("--outfile")]
    output = tmp_path / "rich-text.js"
    subprocess.run([esbuild, *arguments[1:], f"--outfile={output}"], cwd=SOURCES, check=True, env=os.environ)
    built, committed = output.read_bytes(), BUNDLE.read_bytes()
    assert sha256(built).hexdigest() == sha256(committed).hexdigest(), "run `just editor`"


def test_bundle_is_small() -> None:
    assert len(gzip.compress(BUNDLE.read_bytes(), 9)) <= MAX_GZIP_BYTES


def test_lock_file_names_no_registry_and_all_licences_are_included() -> None:
    text = (SOURCES / "package-lock.json").read_text()
    assert "resolved" not in text
    packages = json.loads(text)["packages"]
    licences = (STATIC / "rich-text.LICENSE").read_text()
    for path, package in packages.items():
        name = path.removeprefix("node_modules/")
        if path and not package.get("dev"):
            assert package["license"] == "MIT", name
            assert name in licences, name
            assert package["integrity"].startswith("sha512-"), name
