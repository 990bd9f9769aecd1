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


@contextmanager
def later_version(
    directory: Path, files: Mapping[str, str], declarations: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Replace the migrations of this process by a copy with one more: its SQL by suffix, its declarations."""
    previous = migrations.newest_revision()
    shutil.copytree(migrations.HERE, directory / "migrations")
    base = directory / "migrations" / "versions" / f"{NUMBER}_made_up.py"
    upgrade = "run_concurrently" if ".concurrent.sql" in files else "run_file"
    base.write_text(MODULE.format(number=NUMBER, previous=previous, upgrade=upgrade))
    for suffix, text in files.items():
        base.with_suffix(suffix).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "HERE", directory / "migrations")
        patch.setattr(compatibility, "OLDEST_CODE", {**compatibility.OLDEST_CODE, **(declarations or {})})
        migrations.list_revisions.cache_clear()
        try:
            yield
        finally:
            migrations.list_revisions.cache_clear()
    migrations.list_revisions.cache_clear()
