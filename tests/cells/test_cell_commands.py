"""The commands of a directory with three cells."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from kalends.adapters import metrics
from kalends.calendar.operations.site_metrics import make_server_reader
from kalends.fleet.storage import directory as directory_changes
from kalends.store.migrations import migrate, newest_revision
from tests.cells.cell_set import CellSet
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import run_command
from tests.servers import find_free_port


def stdout(cells: CellSet, *arguments: str) -> list[str]:
    result = cells.run(*arguments)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def stderr(cells: CellSet, *arguments: str) -> str:
    result = cells.run(*arguments)
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


def find_problems(cells: CellSet) -> list[str]:
    result = cells.run("cell", "check")
    assert result.exit_code == 1, result.output
    return result.stdout.splitlines()


def count_sites(cells: CellSet) -> list[int]:
    return [cells.sql(cell, "SELECT count(*) FROM sites")[0][0] for cell in "abc"]


def test_cells_are_migrated_added_and_filled(postgres_url: str, empty_database_url: str) -> None:
    """The way of an operator with empty databases."""
    with temporary_database(postgres_url) as name:
        urls = {"a": empty_database_url, "b": replace_database(postgres_url, name)}
        with temporary_database(postgres_url) as directory:
            cells = CellSet(replace_database(postgres_url, directory), urls)
            assert cells.run("migrate", "--check").exit_code == 1
            lines = stdout(cells, "migrate")
            assert lines[0] == "The directory is up to date."
            assert lines.index(f"a: The schema is empty, the target is {newest_revision()}.") < lines.index(
                f"b: The schema is empty, the target is {newest_revision()}."
            )
            assert [line.partition(" in ")[0] for line in lines if ": done in" in line] == ["a: done", "b: done"]
            # Again, there is nothing to do, not in the directory either.
            assert f"a: The schema is up to date ({newest_revision()})." in stdout(cells, "migrate")
            assert stdout(cells, "migrate", "--check", "--cell", "b") == [
                f"The schema is up to date ({newest_revision()})."
            ]
            assert stdout(cells, "cell", "list") == [
                f"{cell} is not in the directory: run `kalends cell add {cell}`." for cell in "ab"
            ]
            for cell in "ab":
                added = stdout(cells, "cell", "add", cell)
                assert added == [f"The cell {cell} is in the directory, with 0 sites of its own."]
                assert cells.sql(cell, "SELECT count(*) FROM sites") == [(0,)]
            hosts = [stdout(cells, "site", "add", f"{number}.example")[0] for number in range(3)]
            assert hosts == [
                "Added site 1 at 0.example to the cell a.",
                "Added site 2 at 1.example to the cell b.",
                "Added site 3 at 2.example to the cell a.",
            ]
            assert stdout(cells, "cell", "check") == ["All cells agree with the directory."]


def test_migration_stops_at_the_first_cell_that_fails(cells: CellSet) -> None:
    cells.sql("b", "UPDATE alembic_version SET version_num = '0024'")  # Its tables exist, so 0025 fails.
    cells.sql("c", "UPDATE alembic_version SET version_num = '0024'")
    result = cells.run("migrate")
    assert result.exit_code == 1
    assert result.stderr.startswith("b: ")
    assert "a: done" in result.stdout
    assert "c:" not in result.stdout


def test_existing_database_joins_with_its_sites(empty_cells: CellSet, database_url: str) -> None:
    asyncio.run(directory_changes.add_cell(empty_cells.directory_url, empty_cells.urls["a"], "a"))
    url = empty_cells.urls["b"]
    run_command(url, "user", "add", "anna", "--role", "editor")
    refused = stderr(empty_cells, "cell", "add", "b")
    assert refused.startswith("Site 1 (Kalends) has no host name and could not be reached any more.")
    for arguments in (("site", "add-host", "one.example"), ("site", "add", "two.example")):
        assert run_command(url, *arguments).exit_code == 0
    assert stdout(empty_cells, "cell", "add", "b") == ["The cell b is in the directory, with 2 sites of its own."]
    assert stdout(empty_cells, "cell", "add", "b") == ["The cell b is in the directory, with 2 sites of its own."]
    # IDs continue above those that exist.
    assert stdout(empty_cells, "site", "add", "three.example") == ["Added site 3 at three.example to the cell a."]
    assert stdout(empty_cells, "cell", "check") == ["All cells agree with the directory."]
    # Another database with the same IDs, and then with the same host.
    other = empty_cells.urls["c"]
    assert run_command(other, "site", "add-host", "four.example").exit_code == 0
    assert stderr(empty_cells, "cell", "add", "c").startswith(
        "Site 1 (Kalends) has the ID of a site of the cell b. A cell can be added only if"
    )
    with psycopg.connect(other) as connection:
        connection.execute("INSERT INTO sites (id) VALUES (77)")
        connection.execute("UPDATE site_hosts SET site_id = 77, host = 'one.example'")
        connection.execute("DELETE FROM sites WHERE id = 1")
    assert stderr(empty_cells, "cell", "add", "c") == (
        "The host name one.example of site 77 (Kalends) belongs to site 1."
    )
    assert empty_cells.sql("c", "SELECT name FROM cell") == []
    with psycopg.connect(other) as connection:
        connection.execute("UPDATE site_hosts SET host = 'five.example'")
    assert stdout(empty_cells, "cell", "add", "c") == ["The cell c is in the directory, with 1 sites of its own."]
    assert stdout(empty_cells, "site", "add", "six.example", "--cell", "c") == [
        "Added site 78 at six.example to the cell c."
    ]
    # A database has one name.
    swapped = CellSet(empty_cells.directory_url, {"a": empty_cells.urls["b"], "b": empty_cells.urls["a"]})
    assert stderr(swapped, "cell", "add", "a") == "The database of the cell a is the cell b."
    assert (
        stderr(swapped, "site", "add", "seven.example", "--cell", "a") == "The database of the cell a is the cell b."
    )


def test_sites_are_placed_where_there_are_fewest(cells: CellSet) -> None:
    for number in range(6):
        stdout(cells, "site", "add", f"{number}.example")
    assert count_sites(cells) == [2, 2, 2]
    assert stdout(cells, "cell", "drain", "a") == [
        "No new sites are placed in the cell a. 2 sites remain.",
        "kalends site move 0.example --to CELL",
        "kalends site move 3.example --to CELL",
    ]
    for number in range(6, 8):
        stdout(cells, "site", "add", f"{number}.example")
    assert count_sites(cells) == [2, 3, 3]
    version = newest_revision()
    assert stdout(cells, "cell", "list") == [
        f"a 2 sites drained schema {version}",
        f"b 3 sites accepts new sites schema {version}",
        f"c 3 sites accepts new sites schema {version}",
    ]
    assert stdout(cells, "cell", "fill", "a") == ["New sites are placed in the cell a."]
    stdout(cells, "site", "add", "8.example")
    assert count_sites(cells) == [3, 3, 3]
    for cell in "abc":
        stdout(cells, "cell", "drain", cell)
    assert stderr(cells, "site", "add", "9.example").startswith("No cell accepts new sites")
    assert stderr(cells, "cell", "drain", "x") == "There is no cell x in the directory."
    # Named, a cell takes a site nevertheless.
    assert stdout(cells, "site", "add", "9.example", "--cell", "b") == ["Added site 10 at 9.example to the cell b."]


def test_commands_find_the_cell_of_their_site(cells: CellSet) -> None:
    for cell in "abc":
        stdout(cells, "site", "add", f"{cell}.example", "--name", f"Town {cell}", "--cell", cell)
    assert stdout(cells, "site", "list") == ["1 a Town a a.example", "2 b Town b b.example", "3 c Town c c.example"]
    assert "id 2" in stdout(cells, "site", "show", "--site", "b.example")
    assert stdout(cells, "site", "set", "accent", "#112233", "--site", "3") == ["accent is now '#112233'."]
    assert cells.sql("c", "SELECT accent FROM sites") == [("#112233",)]
    assert stdout(cells, "user", "add", "anna", "--role", "editor", "--site", "b.example")[0].startswith("Added anna")
    assert cells.sql("b", "SELECT site_id FROM users") == [(2,)]
    assert "Created 30 events" in stdout(cells, "seed", "--events", "30", "--site", "c.example")[0]
    assert cells.sql("c", "SELECT DISTINCT site_id FROM events") == [(3,)]
    assert stdout(cells, "job", "list", "--cell", "a") == ["0 waiting; no worker seen"]
    assert stdout(cells, "series", "extend") == ["0 dates created."]
    shown = stdout(cells, "status")
    assert [line for line in shown if line.startswith("Cell")] == ["Cell a", "Cell b", "Cell c"]
    assert any("Town c (c.example): 30 events" in line for line in shown)
    checked = cells.run("check").stdout
    assert "3 sites in 3 cells." in checked
    assert "Cell c: " in checked
    removed = stdout(cells, "site", "remove", "b.example", "--yes")
    assert removed[0].startswith("Removed site 2.")
    assert cells.sql("b", "SELECT count(*) FROM sites") == [(0,)]
    assert stdout(cells, "cell", "check") == ["All cells agree with the directory."]
    assert stdout(cells, "site", "add", "d.example", "--cell", "b") == ["Added site 4 at d.example to the cell b."]


@pytest.mark.quick("arguments0-Choose one with -", "arguments12-From 5,000 events")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["job", "list"], "Choose one with --cell: a, b, c."),
        (["worker"], "Choose one with --cell: a, b, c."),
        (["worker", "--cell", "x"], "There is no cell x in KALENDS_CELLS: a, b, c."),
        (["cell", "add", "x"], "There is no cell x in KALENDS_CELLS: a, b, c."),
        (["serve", "--with-worker"], "--with-worker is for one database."),
        (["site", "add", "new.example", "--cell", "x"], "There is no cell x in the directory: run"),
        (["site", "add", "one.example"], "The host name one.example belongs to site 1."),
        (["site", "add", "new.example", "--first-host", "x"], "--first-host is for a database without a directory."),
        (["site", "remove", "no.example", "--yes"], "There is no site no.example."),
        (["site", "add-host", "x.example"], "There are several sites: choose one with --site."),
        (["site", "show", "--site", "no.example"], "There is no such site. Choose one with --site;"),
        (["user", "list"], "There is no such site. Choose one with --site;"),
        (["seed", "--events", "6000", "--site", "one.example"], "From 5,000 events on, indexes are built again"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(cells: CellSet, arguments: Sequence[str], message: str) -> None:
    for host in ("one.example", "two.example"):
        stdout(cells, "site", "add", host, "--cell", "a")
    assert stderr(cells, *arguments).startswith(message)


def test_commands_of_cells_need_a_directory(database_url: str) -> None:
    for arguments in (["cell", "list"], ["cell", "add", "a"], ["cell", "check"], ["cell", "drain", "a"]):
        result = run_command(database_url, *arguments)
        assert result.stderr == "There is no directory: set KALENDS_DIRECTORY_URL and KALENDS_CELLS.\n"
    for arguments in (["job", "list", "--cell", "a"], ["migrate", "--cell", "a"], ["worker", "--cell", "a"],
                      ["site", "add", "x.example", "--cell", "a"]):  # fmt: skip
        result = run_command(database_url, *arguments)
        assert result.stderr == "--cell needs KALENDS_DIRECTORY_URL and KALENDS_CELLS.\n"


def test_sites_of_a_cell_change_through_the_directory_only(cells: CellSet, tmp_path: Path) -> None:
    """Otherwise a command without the directory would give out an ID that another cell has, or may get."""
    site = cells.add_site("one.example", "a")
    archive = tmp_path / "one.zip"
    assert cells.run("site", "export", "one.example", "--to", str(archive)).exit_code == 0
    changes = (
        ("site", "add", "two.example"),
        ("site", "add-host", "two.example", "--site", "one.example"),
        ("site", "import", str(archive), "--host", "two.example"),
    )
    for command in changes:
        result = run_command(cells.urls["a"], *command)
        assert result.exit_code == 1
        assert "This database is the cell a of a directory." in " ".join(result.stderr.split())
    assert cells.sql("a", "SELECT host, site_id FROM site_hosts") == [("one.example", site.id)]
    assert cells.run("cell", "check").exit_code == 0


def test_hosts_move_and_leave_only_on_request(cells: CellSet) -> None:
    cells.add_site("one.example", "a")
    cells.add_site("two.example", "b")
    stdout(cells, "site", "add-host", "more.example", "--site", "one.example")
    taken = ["add-host", "more.example", "--site", "two.example"]
    assert stderr(cells, "site", *taken) == ("The host name more.example belongs to site 1. To move it, pass --move.")
    stdout(cells, "site", *taken, "--move")
    assert stdout(cells, "site", "list") == ["1 a Calendar of one.example one.example",
                                             "2 b Calendar of two.example more.example, two.example"]  # fmt: skip
    assert stdout(cells, "site", "remove-host", "More.example") == ["more.example no longer belongs to site 2."]
    assert stderr(cells, "site", "remove-host", "two.example").startswith("two.example is the last host name of")
    assert stderr(cells, "site", "remove-host", "more.example") == "No site has the host name more.example."
    assert cells.run("cell", "check").exit_code == 0


def test_site_that_is_being_moved_keeps_its_hosts(cells: CellSet) -> None:
    site = cells.add_site("one.example", "a")
    cells.begin_move(site.id, "b")
    changes = (
        ["add-host", "x.example", "--site", "one.example"],
        ["remove-host", "one.example"],
        ["remove", "one.example", "--yes"],
    )
    for arguments in changes:
        assert stderr(cells, "site", *arguments) == ("Site 1 is being moved to the cell b; try again after the move.")
    assert cells.sql("a", "SELECT count(*) FROM sites") == [(1,)]


def test_check_finds_every_difference(cells: CellSet) -> None:
    one, two, three = (cells.add_site(f"{cell}.example", cell) for cell in "abc")
    assert stdout(cells, "cell", "check") == ["All cells agree with the directory."]
    # A restored backup from before the move: the site is in two cells.
    cells.move(one.id, "a", "b", cleans_up=False)
    removal = "To remove that copy: `kalends site remove 1 --cell a`."
    assert find_problems(cells) == [
        f"Site 1: rows are left in the cell a (departed), but no move is under way. {removal}"
    ]
    cells.sql("a", "DELETE FROM unserved_sites")
    assert find_problems(cells) == [f"Site 1 is in several cells: a, b; the directory names the cell b. {removal}"]
    assert stderr(cells, "site", "remove", "1", "--cell", "b", "--yes").startswith(
        "The cell b is the one that the directory names for site 1."
    )
    assert stdout(cells, "site", "remove", "a.example", "--cell", "a", "--yes") == [
        "Removed the copy of site 1 in the cell a."
    ]
    assert stderr(cells, "site", "remove", "1", "--cell", "a", "--yes") == "There is no site 1 in the cell a."
    assert cells.sql("b", "SELECT count(*) FROM sites WHERE id = 1") == [(1,)]
    assert cells.run("cell", "check").exit_code == 0
    # A site in none, a site in another one, a site that the directory does not know.
    cells.sql("", "UPDATE kalends_directory.sites SET cell = 'a' WHERE id = %s", [one.id])
    cells.sql("", "INSERT INTO kalends_directory.sites (id, cell) VALUES (50, 'a')")
    cells.sql("c", "INSERT INTO sites (id) VALUES (60)")
    assert sorted(find_problems(cells)) == [
        "Site 1 is in the cell b; the directory names the cell a.",
        "Site 50 is in no cell; the directory names the cell a.",
        "Site 60 is in the cell c, but not in the directory. `kalends cell add c` adds it. "
        "To remove that copy: `kalends site remove 60 --cell c`.",
    ]
    cells.sql("", "UPDATE kalends_directory.sites SET cell = 'b' WHERE id = %s", [one.id])
    stdout(cells, "site", "remove", "60", "--cell", "c", "--yes")
    assert stdout(cells, "site", "remove", "50", "--yes")[0].startswith("Removed site 50.")
    # Hosts.
    cells.sql("c", "INSERT INTO site_hosts VALUES ('more.example', %s)", [three.id])
    cells.sql("b", "DELETE FROM site_hosts WHERE site_id = %s", [two.id])
    assert sorted(find_problems(cells)) == [
        "Site 2: the cell b has the hosts none, the directory has b.example.",
        "Site 3: the cell c has the hosts c.example, more.example, the directory has c.example.",
    ]
    for arguments in (["b.example", "--site", "2"], ["more.example", "--site", "3"]):
        stdout(cells, "site", "add-host", *arguments)
    assert cells.run("cell", "check").exit_code == 0
    # A cell that cannot be read, and one that is not in the settings.
    broken = CellSet(cells.directory_url, {"a": cells.urls["a"], "b": "postgresql://postgres@127.0.0.1:1/x"})
    result = broken.run("cell", "check")
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 2)
    assert "The cell c is not in KALENDS_CELLS." in result.stdout
    assert "The cell b cannot be checked. Cannot reach PostgreSQL" in result.stdout
    listed = broken.run("cell", "list")
    assert listed.exit_code == 0
    assert "unreachable: Cannot reach PostgreSQL at 127.0.0.1:1" in listed.stdout


def test_interrupted_moves_are_reported_with_the_command_that_resumes_them(cells: CellSet, tmp_path: Path) -> None:
    site = cells.add_site("one.example", "a")
    settings = {"KALENDS_MEDIA_DIR": str(tmp_path)}

    def list_findings() -> list[tuple[str, str, str]]:
        result = run_command("postgresql:///unused", "check", "--json", settings={**cells.environment, **settings})
        found = json.loads(result.stdout)
        return [(row["level"], row["text"], row["cure"]) for row in found if row["subject"] == "Move"]

    def list_ages() -> dict[str, float]:
        samples = make_server_reader({}, cells.directory_url)()
        return {sample.labels[0]: sample.value for sample in samples if sample.metric is metrics.MOVE_AGE}

    assert list_findings() == []
    assert list_ages() == {"running": 0, "interrupted": 0}
    assert json.loads(cells.run("site", "moves", "--unfinished", "--json").stdout) == []
    cells.begin_move(site.id, "b")
    cells.sql(
        "",
        "INSERT INTO kalends_directory.moves (site_id, source, target, step, started_at) "
        "VALUES (%s, 'a', 'b', 'copy', now() - interval '3 hours')",
        [site.id],
    )
    text = "Site 1 from a to b, started 3 h ago, last step copy"
    resume = "Run `kalends site move 1 --resume`."
    assert list_findings() == [("error", f"{text}: interrupted.", resume)]
    assert list_ages()["interrupted"] == pytest.approx(3 * 3600, abs=60)
    lines = [" ".join(line.split()) for line in find_problems(cells)]
    assert lines == [f"error Move {text}: interrupted.", resume]
    listed = cells.run("site", "moves", "--unfinished", "--json")
    (move,) = json.loads(listed.stdout)
    assert (listed.exit_code, move["site_id"], move["step"], move["has_mover"]) == (1, site.id, "copy", False)
    assert "interrupted" in cells.run("site", "moves", "--site", "one.example").stdout
    # A process that carries it out holds the lock of the source.
    with psycopg.connect(cells.directory_url) as mover:
        mover.execute("SELECT pg_advisory_lock(hashtextextended('kalends.move.a', 0))")
        assert list_findings() == [("ok", f"{text}: running.", "")]
        assert (list_ages()["interrupted"], list_ages()["running"] > 3 * 3500) == (0, True)
        assert cells.run("cell", "check").exit_code == 0
        assert cells.run("site", "moves", "--unfinished").exit_code == 1
    cells.sql("", "UPDATE kalends_directory.moves SET ended_at = now(), outcome = 'aborted'")
    assert cells.run("site", "moves", "--unfinished").exit_code == 0
    assert "aborted" in cells.run("site", "moves").stdout


def test_directory_that_does_not_respond_is_exported() -> None:
    unreachable = f"postgresql://kalends@127.0.0.1:{find_free_port()}/kalends"
    assert make_server_reader({}, unreachable)()[1:] == [metrics.Sample(metrics.DIRECTORY_UP, 0)]


def test_directory_can_be_in_a_cell(empty_cells: CellSet) -> None:
    cells = CellSet(empty_cells.urls["a"], empty_cells.urls)
    stdout(cells, "migrate")
    for cell in "abc":
        stdout(cells, "cell", "add", cell)
    site = cells.add_site("one.example", "b")
    cells.move(site.id, "b", "a")
    assert stdout(cells, "cell", "check") == ["All cells agree with the directory."]
    migrate(cells.urls["a"])
