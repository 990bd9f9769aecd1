"""Lists of commands: as JSON with all entries of the table, filtered, and limited; changes of host names."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import run_command
from tools.command_runs import list_commands, write_files

LISTS = {name for name, _ in list_commands() if name.split()[-1] in ("list", "log", "moves", "check", "status")}


@pytest.fixture(scope="module")
def listed(postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a database with two entries in each list."""
    directory = tmp_path_factory.mktemp("lists")
    write_files(directory)
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        settings = {"KALENDS_MEDIA_DIR": str(directory / "media")}

        def run(*arguments: str) -> None:
            result = run_command(url, *arguments, settings=settings)
            assert result.exit_code == 0, result.output

        run("site", "add-host", "town.example")
        run("site", "add", "music.example", "--name", "Concerts")
        run("user", "add", "anna", "--role", "administrator", "--site", "1")
        run("user", "add", "ben", "--role", "author", "--email", "ben@mail.example", "--site", "1")
        run("app-password", "create", "anna", "phone", "--site", "1")
        run("app-password", "create", "anna", "tablet", "--site", "1")
        run("media", "add", str(directory / "images"), "--login", "anna", "--site", "1")
        for _ in range(2):
            run("import", str(directory / "table.csv"), "--owner", "anna", "--site", "1")
        with psycopg.connect(url) as connection:
            connection.execute("DELETE FROM procrastinate_jobs")
            for task in ("purge", "make_sizes"):
                values = ["default", task, '{"x": 1}']
                connection.execute(
                    "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES (%s, %s, %s)", values
                )
        yield url


def read(url: str, *arguments: str) -> Any:
    result = run_command(url, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def read_error(url: str, *arguments: str) -> str:
    result = run_command(url, *arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    return result.stderr.strip()


def test_every_list_can_be_printed_as_json() -> None:
    commands = dict(list_commands())
    options = {name: {option for param in commands[name].params for option in param.opts} for name in LISTS}
    assert {"site list", "user list", "job list", "cell list", "media list", "import list", "site moves"} <= LISTS
    assert [name for name in sorted(LISTS) if "--json" not in options[name]] == ["cell check", "media check"]
    large = ("site list", "user list", "job list", "media list", "import list", "site moves")
    assert [name for name in large if "--limit" not in options[name]] == []


def test_sites_are_listed(listed: str) -> None:
    town = {"id": 1, "cell": "", "name": "Kalends", "hosts": ["town.example"]}
    music = {"id": 2, "cell": "", "name": "Concerts", "hosts": ["music.example"]}
    assert read(listed, "site", "list") == [town, music]
    assert read(listed, "site", "list", "--search", "MUSIC") == read(listed, "site", "list", "--search", "concerts")
    assert read(listed, "site", "list", "--search", "music") == [music]
    limited = run_command(listed, "site", "list", "--limit", "1")
    assert limited.stdout.split() == ["1", "Kalends", "town.example"]
    assert limited.stderr.strip() == "There are more than 1 entries; a higher --limit shows them."
    assert run_command(listed, "site", "list", "--limit", "2").stderr == ""


def test_accounts_are_listed(listed: str) -> None:
    rows = read(listed, "user", "list", "--site", "1")
    assert [(row["id"], row["login"], row["role"], row["email"]) for row in rows] == [
        (1, "anna", "administrator", ""),
        (2, "ben", "author", "ben@mail.example"),
    ]
    for arguments in (["--role", "author"], ["--search", "Mail.example"], ["--search", "BEN"]):
        assert read(listed, "user", "list", "--site", "1", *arguments) == rows[1:]
    assert read(listed, "user", "list", "--site", "1", "--limit", "1") == rows[:1]
    assert "author" in read_error(listed, "user", "list", "--site", "1", "--role", "boss")
    passwords = read(listed, "app-password", "list", "anna", "--site", "1")
    assert [row["name"] for row in passwords] == ["phone", "tablet"]
    assert read(listed, "app-password", "log", "anna", "--site", "1") == []


def test_jobs_are_listed(listed: str) -> None:
    rows = read(listed, "job", "list")
    assert [(row["task_name"], row["status"], row["arguments"]) for row in rows] == [
        ("purge", "todo", {"x": 1}),
        ("make_sizes", "todo", {"x": 1}),
    ]
    assert read(listed, "job", "list", "--task", "make_sizes") == rows[1:]
    assert read(listed, "job", "list", "--limit", "1") == rows[:1]
    assert read(listed, "job", "list", "--status", "failed") == []


def test_images_are_listed(listed: str) -> None:
    (image,) = read(listed, "media", "list", "--site", "1")
    assert (image["title"], image["width"], image["height"], image["mime_type"]) == ("pixel", 1, 1, "image/png")
    assert read(listed, "media", "list", "--site", "1", "--search", "PIXEL") == [image]
    assert read(listed, "media", "list", "--site", "1", "--search", "other") == []
    incomplete = read(listed, "media", "list", "--site", "1", "--incomplete")
    assert incomplete == ([] if image["has_sizes"] else [image])


def test_imports_are_listed(listed: str) -> None:
    found = read(listed, "import", "list", "--site", "1")
    (source,) = found["sources"]
    assert (source["name"], source["kind"], source["owner_login"]) == ("table.csv", "table", "anna")
    assert [run["source_id"] for run in found["runs"]] == [source["id"], source["id"]]
    assert found["runs"][0]["counts"]["new"] == 1
    assert read(listed, "import", "list", "--site", "1", "--limit", "1")["runs"] == found["runs"][:1]
    assert read(listed, "import", "list", "--site", "1", "--source", "999")["runs"] == []
    text = run_command(listed, "import", "list", "--site", "1").stdout
    assert text.splitlines()[0].startswith("Sources: ID, kind, name")
    assert "table.csv" in text


def test_status_summarizes_many_sites(database_url: str) -> None:
    assert run_command(database_url, "site", "add-host", "one.example").exit_code == 0
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO sites (id, name) SELECT n, 'Site ' || n FROM generate_series(2, 20) n")
    lines = run_command(database_url, "status").stdout.splitlines()
    assert len([line for line in lines if line.startswith("Site ")]) == 20
    assert not [line for line in lines if line.startswith("Sites")]
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO sites (id, name, last_post_id) VALUES (21, 'Large', 500)")
    lines = run_command(database_url, "status").stdout.splitlines()
    (summary,) = [line for line in lines if line.startswith("Sites")]
    assert summary.startswith("Sites     21 sites with 0 events, 0 venues, 0 organizers, 0 accounts, 0 images")
    listed = [line for line in lines if line.startswith("Site ")]
    assert len(listed) == 5
    assert listed[0].startswith("Site 21   Large")
    report = read(database_url, "status")
    assert (report["totals"]["sites"], report["sites"][0]["id"]) == (21, 21)


def test_host_of_another_site_moves_only_on_request(database_url: str) -> None:
    for arguments in (["add-host", "a.test"], ["add-host", "spare.test"], ["add", "b.test"]):
        assert run_command(database_url, "site", *arguments).exit_code == 0
    assert (
        read_error(database_url, "site", "add-host", "A.test", "--site", "2")
        == "The host name a.test belongs to site 1. To move it, pass --move."
    )
    # The same again is no change.
    assert run_command(database_url, "site", "add-host", "a.test", "--site", "1").exit_code == 0
    moved = run_command(database_url, "site", "add-host", "a.test", "--site", "2", "--move")
    assert moved.stdout.splitlines()[0] == "a.test belongs to site 2."
    assert [site["hosts"] for site in read(database_url, "site", "list")] == [["spare.test"], ["a.test", "b.test"]]


def test_host_is_removed_unless_its_site_could_not_be_reached(database_url: str) -> None:
    for arguments in (["add-host", "a.test"], ["add", "b.test"], ["add-host", "c.test", "--site", "2"]):
        assert run_command(database_url, "site", *arguments).exit_code == 0
    assert read_error(database_url, "site", "remove-host", "x.test") == "No site has the host name x.test."
    refused = read_error(database_url, "site", "remove-host", "a.test")
    assert refused.startswith("a.test is the last host name of site 1")
    removed = run_command(database_url, "site", "remove-host", "B.test")
    assert removed.stdout.strip() == "b.test no longer belongs to site 2."
    assert run_command(database_url, "site", "remove", "2", "--yes").exit_code == 0
    # The only site answers on every host name.
    assert run_command(database_url, "site", "remove-host", "a.test").exit_code == 0
    assert read(database_url, "site", "list") == [{"id": 1, "cell": "", "name": "Kalends", "hosts": []}]
