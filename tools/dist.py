"""Builds what an installation needs, in `dist`: the wheel, the source distribution and the locked requirements.

The source distribution contains the configuration of services and proxies (`deploy`). docs/how-to/install.md uses
all three files.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from kalends import __version__

PROJECT: Final = Path(__file__).resolve().parent.parent
DIST: Final = PROJECT / "dist"
PACKAGE: Final = PROJECT / "kalends"
# uv tells its own path to the programs that it runs, so that it need not be on the PATH.
UV: Final = os.environ.get("UV", "uv")
# Options of `uv export` for the dependencies of an installation.
LOCKED: Final = ("--frozen", "--no-default-groups", "--extra=s3", "--no-emit-project", "--no-header")


def main() -> int:
    files = build(DIST)
    missing = find_missing(*files[:2])
    for name in missing:
        print(f"{name} is missing.", file=sys.stderr)
    for path in files:
        print(f"dist/{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return 1 if missing else 0


def build(directory: Path) -> tuple[Path, Path, Path]:
    """Build into a directory; return the wheel, the source distribution and the requirements."""
    _run(UV, "build", "--quiet", f"--out-dir={directory}", str(PROJECT))
    requirements = directory / "requirements.txt"
    _run(UV, "export", "--quiet", *LOCKED, f"--output-file={requirements}")
    return (
        directory / f"kalends-{__version__}-py3-none-any.whl",
        directory / f"kalends-{__version__}.tar.gz",
        requirements,
    )


def find_missing(wheel: Path, source: Path) -> list[str]:
    """Return the files of the package that the wheel lacks, and those of `deploy` that the sdist lacks."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    return sorted({*(_list_files(PACKAGE) - in_wheel), *(_list_files(PROJECT / "deploy") - in_source)})


def _list_files(directory: Path) -> set[str]:
    files = [path for path in directory.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    return {path.relative_to(PROJECT).as_posix() for path in files}


def _run(*command: str) -> None:
    subprocess.run(command, cwd=PROJECT, check=True)


if __name__ == "__main__":
    sys.exit(main())
