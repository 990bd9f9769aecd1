"""The check of migrations finds statements that would block a running server."""

from pathlib import Path

import pytest

from kalends.store.migrations import list_revisions
from tools.migration_lint import lint, list_files

INDEX = "CREATE INDEX CONCURRENTLY IF NOT EXISTS events_title ON events (site_id, title);\n"


@pytest.mark.parametrize(
    ("name", "text", "is_accepted"),
    [
        ("0900_a.sql", "ALTER TABLE events ADD COLUMN note text NOT NULL DEFAULT '';\n", True),
        ("0900_a.sql", "CREATE INDEX events_title ON events (site_id, title);\n", False),
        ("0900_a.concurrent.sql", INDEX, True),
        ("0900_a.concurrent.sql", INDEX.replace("IF NOT EXISTS ", ""), False),
        ("0900_a.sql", "ALTER TABLE events RENAME COLUMN title TO name;\n", False),
        ("0900_a.sql", "ALTER TABLE events DROP COLUMN title;\n", False),
        ("0900_a.sql", "ALTER TABLE events ALTER COLUMN cost TYPE bigint;\n", False),
        ("0900_a.sql", "ALTER TABLE events ADD CONSTRAINT c CHECK (id > 0);\n", False),
    ],
)
def test_blocking_statements_are_found(name: str, text: str, is_accepted: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert (lint(list_files(tmp_path)) == 0) == is_accepted


def test_migrations_are_accepted() -> None:
    checked = {path.name.partition("_")[0] for path in list_files()}
    assert checked == set(list_revisions()[1:]), "all but the baseline are checked"
    assert lint(list_files()) == 0
