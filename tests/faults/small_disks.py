"""Small file systems in memory that can be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

FILLER = "filler"


@dataclass(frozen=True)
class SmallDisk:
    path: Path

    def fill(self, *, leave: int = 0) -> None:
        """Take all space but some bytes."""
        with (self.path / FILLER).open("wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(bytes(65536)):
                    pass
            file.truncate(max(file.tell() - leave, 0))

    def make_room(self) -> None:
        (self.path / FILLER).unlink()


@contextmanager
def mount_small_disk(path: Path, megabytes: int, user: str = "") -> Iterator[SmallDisk]:
    """Mount a file system of a size at a path; skip the test if that is not permitted."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "kalends-test", str(path)]
    done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted: {done.stderr.strip()}")
    try:
        if user:
            subprocess.run(["chown", user, str(path)], check=True)
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
