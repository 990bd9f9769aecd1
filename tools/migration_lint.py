"""Checks with squawk that migrations do not block a running server; a step of `just check`."""

import subprocess
import sys
from pathlib import Path

VERSIONS = Path(__file__).resolve().parent.parent / "kalends" / "store" / "migrations" / "versions"
# The baseline, which runs only in an empty database.
LAST_UNCHECKED = "0035"
EXCLUDED_RULES = (
    # kalends/store/migrations/env.py sets the timeout of locks for all migrations.
    "require-lock-timeout",
    "require-statement-timeout",
    # Small numbers are small on purpose.
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
)


def list_files(directory: Path = VERSIONS) -> list[Path]:
    """Return the SQL files of the migrations to check."""
    return [path for path in sorted(directory.glob("[0-9]*.sql")) if path.name.partition("_")[0] > LAST_UNCHECKED]


def lint(files: list[Path]) -> int:
    """Run squawk on the files and return its exit code: 0 if it finds nothing."""
    concurrent = [path for path in files if path.name.endswith(".concurrent.sql")]
    in_transaction = [path for path in files if path not in concurrent]
    options = ["--pg-version=15", *[f"--exclude={rule}" for rule in EXCLUDED_RULES]]
    status = 0
    # Only statements outside of a transaction have to be idempotent.
    for paths, more in (
        (in_transaction, ["--assume-in-transaction", "--exclude=prefer-robust-stmts"]),
        (concurrent, []),
    ):
        if paths:
            squawk = Path(sys.executable).parent / "squawk"
            command = [str(squawk), *options, *more, *map(str, paths)]
            status |= subprocess.run(command, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(lint(list_files()))
