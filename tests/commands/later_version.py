"""A made-up later version: the migrations of this one, and one more."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kalends.store import migrations
from kalends.store.migrations import compatibility

NUMBER = "9998"
MODULE = '''"""Made up: something is added."""

from kalends.store.migrations.steps import run_concurrently, run_file

revision = "{number}"
down_revision = "{previous}"


def upgrade() -> None:
    {upgrade}(__file__)
'''


def add_migration(directory: Path, number: str, previous: str, files: Mapping[str, str]) -> None:
    """Add a migration with these SQL files, by suffix, to the ones in a directory."""
    module = directory / "versions" / f"{number}_made_up.py"
    upgrade = "run_concurrently" if ".concurrent.sql" in files else "run_file"
    module.write_text(MODULE.format(number=number, previous=previous, upgrade=upgrade))
    for suffix, text in files.items():
        module.with_suffix(suffix).write_text(text)


@contextmanager
def later_version(
    directory: Path, files: Mapping[str, str], declarations: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Replace the migrations of this process by a copy with one more: its SQL files by suffix, its declarations."""
    shutil.copytree(migrations.HERE, directory / "migrations")
    add_migration(directory / "migrations", NUMBER, migrations.newest_revision(), files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "HERE", directory / "migrations")
        patch.setattr(compatibility, "OLDEST_CODE", {**compatibility.OLDEST_CODE, **(declarations or {})})
        patch.setattr(migrations, "list_revisions", migrations.list_revisions.__wrapped__)
        yield
