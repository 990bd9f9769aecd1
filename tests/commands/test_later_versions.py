"""A later version migrates the database: what servers of this one do, and how the migration gets its locks."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from kalends.store.migrations import list_revisions, migrate, newest_revision
from kalends.store.migrations.compatibility import OLDEST_CODE
from kalends.store.problems import SchemaVersion, compare_schema
from tests.api.running_app import RunningApp
from tests.commands.later_version import NUMBER, later_version
from tests.lifecycle.processes import run_command
from tests.servers import make_environment

READY = "http://calendar.test/readyz"
ADD_COLUMN = {".sql": "ALTER TABLE venues ADD COLUMN made_up text;"}
BUILD_INDEX = {".concurrent.sql": "CREATE INDEX CONCURRENTLY IF NOT EXISTS made_up ON venues (site_id, title);\n"}


def test_every_migration_is_declared() -> None:
    assert list(OLDEST_CODE) == list_revisions()
    oldest = list(OLDEST_CODE.values())
    assert oldest == sorted(oldest), "a later migration cannot suit older code than an earlier one"
    assert all(list_revisions()[0] <= code <= revision for revision, code in OLDEST_CODE.items())


@pytest.mark.parametrize(
    ("found", "is_usable"),
    [
        (SchemaVersion("0030"), True),
        (SchemaVersion("0031", "0030"), True),
        (SchemaVersion("0039", "0025"), True),
        (SchemaVersion("0031", "0031"), False),
        (SchemaVersion("0031"), False),
        (SchemaVersion("0029", "0025"), False),
        (SchemaVersion(""), False),
    ],
)
def test_newer_schema_is_usable_if_it_is_declared(found: SchemaVersion, is_usable: bool) -> None:
    assert (compare_schema(found, "0030") is None) == is_usable


def test_server_is_ready_on_a_newer_schema_that_suits_it(
    start_app: Callable[..., RunningApp], tmp_path: Path
) -> None:
    app = start_app()
    caller, code = app.caller(), newest_revision()
    assert caller.get(READY).status_code == 200
    with later_version(tmp_path, ADD_COLUMN, {NUMBER: code}):
        migrate(app.database_url)
    assert caller.get(READY).status_code == 200
    state = f"{NUMBER}, newer than this version ({code}) and compatible with it."
    for command in (("migrate",), ("migrate", "--check")):
        result = run_command(app.database_url, *command)
        assert (result.exit_code, result.stdout) == (0, f"The schema is {state}\n")
    assert f"Schema      {state}" in run_command(app.database_url, "check").stdout

    app.sql("UPDATE schema_compatibility SET oldest_code = '9990' WHERE revision = $1", NUMBER)
    assert caller.get(READY).status_code == 503
    app.sql("DELETE FROM schema_compatibility WHERE revision = $1", NUMBER)
    response = caller.get(READY)
    assert (response.status_code, "upgrade Kalends" in response.json()["message"]) == (503, True)
    result = run_command(app.database_url, "migrate")
    expected = f"The schema is {NUMBER}, this version needs {code}. Upgrade Kalends."
    assert (result.exit_code, result.stderr.strip()) == (1, expected)


def test_migration_waits_for_a_lock_in_short_turns(database_url: str, tmp_path: Path) -> None:
    lines: list[str] = []
    turns = threading.Semaphore(0)

    def report(line: str) -> None:
        lines.append(line)
        if "trying again" in line:
            turns.release()

    with later_version(tmp_path, ADD_COLUMN), psycopg.connect(database_url) as holder:
        holder.execute("SELECT count(*) FROM venues")
        thread = threading.Thread(target=migrate, args=(database_url,), kwargs={"report": report})
        thread.start()
        with psycopg.connect(database_url, autocommit=True) as reader:
            for _ in range(2):
                assert turns.acquire(timeout=120)
                # It gives way: nobody queues behind it during its pause.
                reader.execute("SET statement_timeout = '60s'")
                assert reader.execute("SELECT count(*) FROM venues").fetchone() == (0,)
        holder.rollback()
        thread.join(120)
        assert not thread.is_alive()
    assert lines[-1].startswith(NUMBER)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (NUMBER,)
        assert connection.execute("SELECT count(made_up) FROM venues").fetchone() == (0,)


def test_index_is_built_while_transactions_and_another_migration_wait(database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as connection:
        # Remains of an earlier attempt.
        connection.execute("CREATE INDEX made_up ON venues (site_id)")
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'made_up'::regclass")
    with later_version(tmp_path, BUILD_INDEX, {NUMBER: newest_revision()}), psycopg.connect(database_url) as holder:
        # The index waits for this transaction, for longer than any lock timeout.
        holder.execute("SELECT count(*) FROM venues")
        thread = threading.Thread(target=migrate, args=(database_url,))
        thread.start()
        other = subprocess.Popen(
            [sys.executable, "-m", "kalends", "migrate"],
            env={**make_environment(database_url), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "Another migration is running; waiting for it.\n"
        with psycopg.connect(database_url) as writer:
            writer.execute("SET statement_timeout = '60s'")
            writer.execute("UPDATE venues SET title = title")
        assert thread.is_alive()
        holder.rollback()
        thread.join(120)
        assert not thread.is_alive()
        rest, _ = other.communicate(timeout=120)
        assert (other.returncode, rest) == (
            0,
            f"The schema is {NUMBER}, newer than this version ({newest_before()}) and compatible with it.\n",
        )
    with psycopg.connect(database_url) as connection:
        definition = (
            "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'made_up'::regclass"
        )
        assert connection.execute(definition).fetchone() == (
            True,
            "CREATE INDEX made_up ON public.venues USING btree (site_id, title)",
        )


def newest_before() -> str:
    """Return the newest migration of this version, while the made-up one is in place."""
    return [revision for revision in list_revisions() if revision != NUMBER][-1]
