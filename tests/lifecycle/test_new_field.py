"""The recipe "Add a field to venues" of CONTRIBUTING.md, applied to a copy of the package: nothing else is needed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kalends.store.migrations.compatibility import OLDEST_CODE

ROOT = Path(__file__).parents[2]
ROW = """VENUE_FIELDS: Final = (
    Field(
        param("capacity", params.integer(null_value=None), "The number of people", is_extension=True),
        N_("Capacity"),
        "address",
        ("Capacity", "Plätze", "Capacité", "Aforo", "Capienza", "Capacidade", "Capaciteit", "定員"),
        form=Input("number"),
    ),
"""
MIGRATION = '''"""The capacity of venues."""

from kalends.store.migrations.steps import run_file

revision = "9000"
down_revision = "{head}"


def upgrade() -> None:
    run_file(__file__)
'''


def test_field_needs_a_migration_a_row_and_an_attribute(postgres_url: str, tmp_path: Path) -> None:
    for name in ("kalends", "tests", "tools", "bench"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    head = max(OLDEST_CODE)
    migrations = tmp_path / "kalends/store/migrations"
    (migrations / "versions/9000_capacity.py").write_text(MIGRATION.format(head=head))
    (migrations / "versions/9000_capacity.sql").write_text("ALTER TABLE venues ADD COLUMN capacity integer;\n")
    line = f'    "{head}": "{OLDEST_CODE[head]}",\n'
    edit(migrations / "compatibility.py", line, f'{line}    "9000": "{OLDEST_CODE[head]}",\n')
    edit(tmp_path / "kalends/calendar/rules/fields.py", "VENUE_FIELDS: Final = (\n", ROW)
    edit(
        tmp_path / "kalends/calendar/rules/record_types.py",
        "class Venue(Post):\n",
        "class Venue(Post):\n    capacity: int | None\n",
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/lifecycle/capacity_checks.py"],
        cwd=tmp_path,
        env={**os.environ, "KALENDS_TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert "5 passed" in result.stdout


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))
