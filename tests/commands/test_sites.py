"""`kalends site`: a second site never takes the first one down, and a removed site leaves nothing behind."""

from collections.abc import Callable

import httpx
import psycopg
import pytest

from kalends.core.messages import LANGUAGES
from tests.console.console_rows import add_console_rows
from tests.lifecycle.processes import run_command
from tests.servers import Server


def stdout(url: str, *arguments: str) -> str:
    result = run_command(url, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def stderr(url: str, *arguments: str) -> str:
    result = run_command(url, *arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    return result.stderr.strip()


def test_second_site_needs_a_host_for_the_first(database_url: str, start_server: Callable[..., Server]) -> None:
    assert stdout(database_url, "site", "list").split() == ["1", "Kalends", "any", "host", "name"]
    server = start_server(database_url)

    def statuses() -> list[int]:
        hosts = ("a.test", "b.test", "other.test")
        return [httpx.get(f"{server.base_url}/events/list/", headers={"Host": host}).status_code for host in hosts]

    refused = stderr(database_url, "site", "add", "b.test", "--name", "Second")
    assert refused.startswith(
        "Site 1 (Kalends) has no host name and could not be reached any more. Pass --first-host"
    )
    assert statuses() == [200, 200, 200]
    # Nothing is added if the second of the two hosts is taken.
    assert "belongs to site" in stderr(database_url, "site", "add", "a.test", "--first-host", "A.test")
    added = stdout(database_url, "site", "add", "B.test", "--name", "Second", "--first-host", "a.test")
    lines = [" ".join(line.split()) for line in added.splitlines()]
    assert lines == ["Added site 2 at b.test.", "1 Kalends a.test", "2 Second b.test"]
    assert statuses() == [200, 200, 404]
    assert stderr(database_url, "site", "add", "b.test") == "The host name b.test belongs to site 2."
    assert stderr(database_url, "site", "add-host", "c.test") == "There are several sites: choose one with --site."
    assert "2 Second b.test, other.test" in " ".join(
        stdout(database_url, "site", "add-host", "other.test", "--site", "2").split()
    )
    for site in ("2", "b.test"):
        lines = stdout(database_url, "site", "show", "--site", site).splitlines()
        shown = dict(line.split(None, 1) for line in lines if " " in line.strip())
        assert (shown["id"], shown["hosts"].strip()) == ("2", "b.test, other.test")


def test_removed_site_leaves_nothing_and_its_id_never_returns(database_url: str) -> None:
    assert stderr(database_url, "site", "remove", "1", "--yes") == "The only site of a server cannot be removed."
    stdout(database_url, "site", "add", "b.test", "--first-host", "a.test")
    assert "Created 30 events" in stdout(database_url, "seed", "--events", "30", "--site", "b.test")
    stdout(database_url, "user", "add", "anna", "--role", "editor", "--site", "2")
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO slug_redirects SELECT 2, 'events', 'old', 1")
        add_console_rows(connection, 2, 1, "anna")
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', 'purge', %s)",
            ['{"site_id": 2}'],
        )
    asked = run_command(database_url, "site", "remove", "b.test")
    assert asked.exit_code == 1
    assert "Remove site 2 (Kalends) with" in asked.stdout
    removed = stdout(database_url, "site", "remove", "b.test", "--yes")
    assert removed.startswith("Removed site 2.")
    assert count_rows(database_url, 2) == 0
    assert (
        " ".join(stdout(database_url, "site", "add", "c.test").splitlines()[0].split()) == "Added site 3 at c.test."
    )
    assert stderr(database_url, "site", "remove", "b.test", "--yes") == "There is no site b.test."
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO sites (id) VALUES (7)")
        connection.execute("INSERT INTO site_hosts VALUES ('imported.test', 7)")
    assert stdout(database_url, "site", "add", "d.test").startswith("Added site 8 at d.test.")


def count_rows(url: str, site_id: int) -> int:
    """Return the number of rows of a site in all tables, and of its jobs."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.columns "
            "WHERE column_name = 'site_id' AND table_schema = 'public'"
        ).fetchall()
        assert len(tables) > 15
        counts = [
            connection.execute(f"SELECT count(*) FROM {table} WHERE site_id = %s".encode(), [site_id]).fetchone()
            for (table,) in tables
        ]
        jobs = connection.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE args ->> 'site_id' = %s", [str(site_id)]
        )
        return sum(row[0] for row in (*counts, jobs.fetchone()) if row)


@pytest.mark.parametrize(("value", "stored"), [("de", "de"), ("pt_BR", "pt-BR"), ("en-GB", "en-GB")])
def test_language_of_a_site_is_confirmed(database_url: str, value: str, stored: str) -> None:
    assert stdout(database_url, "site", "set", "language", value) == f"language is now '{stored}'.\n"


def test_language_without_catalogue_is_rejected(database_url: str) -> None:
    for value in ("xx", "klingon", "de<b>", ""):
        message = stderr(database_url, "site", "set", "language", value)
        assert message == f"language must be one of {', '.join(LANGUAGES)}, also with a region, such as en-GB."
    expected = "There is no setting acent. Did you mean accent?"
    assert stderr(database_url, "site", "set", "acent", "#112233") == expected
