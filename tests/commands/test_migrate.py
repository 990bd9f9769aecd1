"""`kalends migrate` reports its steps and restores what a dump loses; `--check` and `kalends check` only look."""

import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from kalends.store.migrations import list_revisions, newest_revision
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import run_command
from tests.robustness.site_fixtures import API_PATH, DATES, add_editor
from tests.servers import Server, make_environment

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
UP_TO_DATE = f"The schema is up to date ({newest_revision()}).\n"
FUNCTIONS = ("arrayoverlap", "geography_overlaps", "st_dwithin", "textlike", "textnlike")


def test_migration_reports_versions_and_durations(empty_database_url: str) -> None:
    pending = run_command(empty_database_url, "migrate", "--check")
    assert (pending.exit_code, pending.stdout) == (
        1,
        f"The database has no Kalends schema. Run `kalends migrate`. Pending migrations: {len(list_revisions())}.\n",
    )
    first, *steps = run_command(empty_database_url, "migrate").stdout.splitlines()
    assert first == f"The schema is empty, the target is {newest_revision()}."
    assert [re.sub(r" +\d+\.\d s  \S.*$", "", line) for line in steps] == list_revisions()
    for arguments in (("migrate",), ("migrate", "--check")):
        done = run_command(empty_database_url, *arguments)
        assert (done.exit_code, done.stdout) == (0, UP_TO_DATE)


def test_replaced_version_continues_under_its_new_number(database_url: str, tmp_path: Path) -> None:
    """The baseline has the schema of the last version that it replaces."""
    login, password = add_editor(database_url)
    [statement] = re.findall(r"^ *(UPDATE alembic_version .*;)$", CHANGELOG.read_text(), re.MULTILINE)
    with psycopg.connect(database_url, autocommit=True) as connection:
        for number, advice in (
            ("0009", "which this version cannot upgrade. Upgrade to 0034 first: CHANGELOG.md explains how."),
            ("0034", "Version 0035 has the same schema under a new number. Run the statement in CHANGELOG.md"),
        ):
            connection.execute("UPDATE alembic_version SET version_num = %s", [number])
            refused = run_command(database_url, "migrate")
            assert (refused.exit_code, refused.stdout) == (1, "")
            assert advice in " ".join(refused.stderr.split())
        connection.execute(statement.encode())
    migrated = run_command(database_url, "migrate")
    assert migrated.exit_code == 0, migrated.output
    assert migrated.stdout.startswith(f"The schema is 0035, the target is {newest_revision()}.\n") or (
        migrated.stdout == UP_TO_DATE
    )
    with (
        Server.start(database_url, log=tmp_path / "server.log") as server,
        server.client(login=login, password=password) as client,
    ):
        response = client.post(f"{API_PATH}/events", json={"title": "Fair", **DATES})
        assert response.status_code == 201, response.text


def test_sites_that_are_in_use_keep_the_calendar_as_their_start_page(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert connection.execute("SELECT id, start_page FROM sites").fetchall() == [(1, "front")]
        connection.execute("ALTER TABLE sites DROP COLUMN start_page")
        connection.execute("UPDATE alembic_version SET version_num = '0035'")
        connection.execute("INSERT INTO sites (id, revision) VALUES (2, 1)")
        assert run_command(database_url, "migrate").exit_code == 0
        connection.execute("INSERT INTO sites (id) VALUES (3)")
        pages = connection.execute("SELECT id, start_page FROM sites ORDER BY id").fetchall()
        assert pages == [(1, "front"), (2, "calendar"), (3, "front")]


@pytest.fixture
def restored_url(postgres_url: str, database_url: str) -> Iterator[str]:
    """Return the URL of a new database with the restored dump of a migrated one."""
    with temporary_database(postgres_url) as name:
        url = replace_database(postgres_url, name)
        environment = make_environment(database_url)
        dump = subprocess.run(
            ["pg_dump", "--format=custom", database_url], env=environment, capture_output=True, check=True
        )
        subprocess.run(
            ["pg_restore", "--exit-on-error", f"--dbname={url}"],
            env=environment,
            input=dump.stdout,
            capture_output=True,
            check=True,
        )
        yield url


def test_restored_dump_gets_its_marks_back(restored_url: str, database_url: str) -> None:
    assert find_marked(database_url) == list(FUNCTIONS)
    assert find_marked(restored_url) == []
    checked = run_command(restored_url, "check")
    assert checked.exit_code == 1
    lines = [line.split() for line in checked.stdout.splitlines()]
    assert ["ok", "Schema", f"{newest_revision()},", "up", "to", "date."] in lines
    assert "error    Search      Slow, because functions lack the mark LEAKPROOF." in checked.stdout
    statements = [" ".join(words) for words in lines if words[0] == "ALTER"]
    assert [re.sub(r"\(.*", "", line) for line in statements] == [f"ALTER FUNCTION {name}" for name in FUNCTIONS]

    warned = run_command(add_login(restored_url), "migrate")
    assert warned.exit_code == 0, warned.output
    assert find_marked(restored_url) == []
    assert [line.strip() for line in warned.stdout.splitlines() if line.startswith("  ALTER")] == statements
    assert "only a superuser can set" in warned.stdout

    with psycopg.connect(restored_url) as connection:
        connection.execute(statements[0].encode())  # The printed statements are exact.
    assert find_marked(restored_url) == [FUNCTIONS[0]]
    migrated = run_command(restored_url, "migrate")
    assert (migrated.exit_code, migrated.stdout) == (0, f"{UP_TO_DATE}Marked 4 functions LEAKPROOF.\n")
    assert find_marked(restored_url) == list(FUNCTIONS)
    good = run_command(restored_url, "check")
    assert good.exit_code == 0, good.stdout
    assert "ok       Search      All functions are marked LEAKPROOF." in good.stdout


def find_marked(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT proname FROM pg_proc WHERE proleakproof AND proname = ANY(%s) "
            "AND (pronargs = 4 OR proname <> 'st_dwithin') AND prorettype = 'boolean'::regtype "
            "AND (proname <> 'geography_overlaps' OR pronargs = 2) ORDER BY 1",
            [list(FUNCTIONS)],
        )
        return [row[0] for row in rows]


def add_login(url: str) -> str:
    """Return the URL with a new login that may migrate the database but is no superuser."""
    name = f"test_owner_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        admin.execute(
            sql.SQL("GRANT SELECT ON alembic_version, schema_compatibility TO {}").format(sql.Identifier(name))
        )
    parts = urlsplit(url)
    return parts._replace(netloc=f"{name}@{parts.hostname}:{parts.port}").geturl()
