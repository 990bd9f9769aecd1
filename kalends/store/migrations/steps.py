"""Run a migration's SQL files."""

import re
from pathlib import Path
from typing import Final

from alembic import op

# Milliseconds that a migration's statement waits for a lock. Meanwhile, requests queue behind it and use up the
# connections. Requests wait for a connection for up to one second (by default), so this must be shorter.
LOCK_TIMEOUT_MS: Final = 500
BUILT_INDEX: Final = re.compile(r"INDEX CONCURRENTLY IF NOT EXISTS (\w+)")
DROP_INVALID: Final = """
    SELECT 'DROP INDEX CONCURRENTLY ' || i.indexrelid::regclass FROM pg_index i
    WHERE i.indexrelid = to_regclass('{name}') AND NOT i.indisvalid
"""


def run_file(migration: str) -> None:
    _run(Path(migration).with_suffix(".sql").read_text(encoding="utf-8"))


def run_concurrently(migration: str) -> None:
    """Run the statements of the migration's `.concurrent.sql` file, each in a separate transaction.

    The statements must be idempotent, such as `CREATE INDEX CONCURRENTLY IF NOT EXISTS …`, because the migration
    starts again after a failure. An incomplete index from an earlier attempt is dropped first.
    """
    text = Path(migration).with_suffix(".concurrent.sql").read_text(encoding="utf-8")
    connection = op.get_bind()
    with op.get_context().autocommit_block():
        # Building an index waits for running transactions, but nothing waits for it.
        _run("SET lock_timeout = 0")
        try:
            for name in BUILT_INDEX.findall(text):
                for statement in connection.exec_driver_sql(DROP_INVALID.format(name=name)).scalars().all():
                    _run(statement)
            for statement in re.split(r";\s*$", text, flags=re.MULTILINE):
                if statement.strip():
                    _run(statement)
        finally:
            _run(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")


def _run(statements: str) -> None:
    # The driver treats a percent sign as the start of a placeholder.
    op.get_bind().exec_driver_sql(statements.replace("%", "%%"))
