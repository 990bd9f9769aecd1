"""The commands of a move-in as processes, and the state of the database that they leave."""

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tests.move_in.conftest import OldSite

TABLES = (
    *("sites", "users", "categories", "tags", "media", "venues", "organizers", "events", "media_files"),
    *("event_venues", "event_organizers", "event_categories", "event_tags", "slug_redirects", "legacy_files"),
    *("import_items", "changes"),
)
# Columns that depend on the moment of the run.
TIMES = ("created_at", "trashed_at", "changed_at", "first_seen_at", "last_seen_at")


@dataclass(frozen=True)
class NewSite:
    """A site of this server into which an old one moves."""

    database_url: str
    directory: Path
    old: OldSite

    @property
    def snapshot(self) -> Path:
        return self.directory / "old.snapshot"

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
        return {
            **inherited,
            "KALENDS_DATABASE_URL": self.database_url,
            "KALENDS_MEDIA_DIR": str(self.directory / "media"),
            "KALENDS_FETCH_ALLOWED_NETWORKS": f"127.0.0.1:{self.old.port}",
            "COLUMNS": "200",
        }

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kalends", "import", *map(str, arguments)]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.directory,
        )

    def run(self, *arguments: object, status: int = 0) -> str:
        """Run a command of `kalends import` and return its output."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=900)
        assert process.returncode == status, f"{output}\n{errors}"
        return output

    def credentials(self) -> tuple[str, ...]:
        path = self.directory / "password"
        path.write_text(f"{self.old.password}\n")
        return ("--login", "administrator", "--password-file", str(path), "--rate", "1000")

    def plan(self, *options: str) -> int:
        """Read the old site and plan; return the number of the run, which is the last line of the output."""
        arguments = ("--snapshot", str(self.snapshot), *self.credentials(), *options)
        output = self.run("tec", "plan", self.old.url, *arguments)
        return int(output.splitlines()[-1])

    def apply(self, run_id: int, *options: str) -> str:
        return self.run("tec", "apply", run_id, *options)

    def kill_during_apply(self, run_id: int, applied: int) -> None:
        """Apply a run, and kill the process when so many rows are applied."""
        process = self.start("tec", "apply", run_id)
        while process.poll() is None and self.count_applied(run_id) < applied:
            time.sleep(0.05)
        process.kill()
        process.communicate()

    def count_applied(self, run_id: int) -> int:
        query = "SELECT count(*) AS n FROM import_rows WHERE run_id = %s AND state = 'applied'"
        return int(self.sql(query, run_id)[0]["n"])

    def sql(self, text: str, *values: object) -> list[dict[str, Any]]:
        """Run a statement as the owner of the database."""
        with psycopg.connect(self.database_url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(text.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def read_state(self) -> dict[str, list[str]]:
        """Return hashes of all rows, apart from times of the run, by table."""
        with psycopg.connect(self.database_url) as connection:
            return {table: self._hash_rows(connection, table) for table in TABLES}

    def _hash_rows(self, connection: Any, table: str) -> list[str]:
        rows = connection.execute(sql.SQL("SELECT to_jsonb(t) FROM {} t").format(sql.Identifier(table))).fetchall()
        return sorted(hashlib.sha256(repr(drop_times(row[0])).encode()).hexdigest() for row in rows)

    def read_revision(self) -> int:
        return int(self.sql("SELECT revision FROM sites WHERE id = 1")[0]["revision"])


def drop_times(value: Any) -> Any:
    """Return a JSON value without the times of the run, in a fixed order."""
    if isinstance(value, dict):
        return sorted((name, drop_times(entry)) for name, entry in value.items() if name not in TIMES)
    return [drop_times(entry) for entry in value] if isinstance(value, list) else value
