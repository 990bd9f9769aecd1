"""The commands that move sites, show moves, resume and abort them."""

import asyncio
from collections.abc import Iterator

import pytest

from kalends.fleet.operations import site_move
from tests.cells.cell_set import CellSet
from tests.cells.move_fixtures import CELLS, Stage, make_cell, make_directory, open_stage
from tests.conftest import replace_database, temporary_database
from tools.postgres import Server

HOST = "a.example"


class Interruption(Exception):
    """Ends a mover between two steps, as if it had been killed."""


@pytest.fixture
def stage(cluster: tuple[Server, str]) -> Iterator[Stage]:
    with open_stage(*cluster) as opened:
        opened.add_to_directory(1, "a", [HOST])
        opened.fetch("a", "INSERT INTO site_hosts VALUES (%s, 1)", HOST)
        yield opened


def run(stage: Stage, *arguments: str, status: int = 0) -> tuple[str, str]:
    """Run `kalends site …`; return its output and its errors in one line each."""
    result = CellSet(stage.directory_url, stage.cells).run("site", *arguments)
    assert result.exit_code == status, result.output
    return " ".join(result.stdout.split()), " ".join(result.stderr.split())


def interrupt_move(stage: Stage, point: str) -> None:
    def stop(event: str) -> None:
        if event == point:
            raise Interruption

    with pytest.raises(Interruption):
        asyncio.run(site_move.move_site(stage.make_setup(watch=stop), 1, "b"))


def test_site_is_moved_after_a_dry_run(stage: Stage) -> None:
    shown, _ = run(stage, "move", HOST, "--to", "b", "--dry-run")
    assert "1 rows, 0.0 MB, 0 jobs" in shown
    assert shown.endswith("Nothing stands in the way.")
    assert stage.find_owners(1) == ["a"]
    moved, _ = run(stage, "move", HOST, "--to", "b")
    assert moved.startswith("Moved site 1 from a to b; writers waited ")
    assert stage.find_owners(1) == ["b"]
    listed, _ = run(stage, "moves")
    assert "site 1 a -> b clean moved ended pause" in listed
    assert run(stage, "moves", "--unfinished") == ("", "")
    assert run(stage, "move", "--resume")[0] == "There is no unfinished move."


def test_interrupted_move_is_resumed(stage: Stage) -> None:
    interrupt_move(stage, "departed")
    assert "interrupted" in run(stage, "moves", "--unfinished", status=1)[0]
    _, error = run(stage, "move", HOST, "--abort", status=1)
    assert error.endswith("Site 1 was switched to the cell b already. Run `kalends site move --resume`.")
    assert run(stage, "move", "--resume")[0].startswith("Moved site 1 from a to b")
    assert stage.find_owners(1) == ["b"]


def test_interrupted_move_is_aborted(stage: Stage) -> None:
    interrupt_move(stage, "after copy")
    _, error = run(stage, "move", HOST, "--to", "b", status=1)
    assert "Site 1 has an unfinished move." in error
    assert run(stage, "move", HOST, "--abort")[0] == "Aborted the move of site 1; a serves it."
    assert stage.find_leftovers("b", 1) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((HOST,), "Pass a site with --to CELL or --abort, or --resume."),
        ((HOST, "--to", "b", "--abort"), "Pass a site with --to CELL or --abort, or --resume."),
        (("--abort",), "Pass a site with --to CELL or --abort, or --resume."),
        ((HOST, "--resume", "--dry-run"), "Pass a site with --to CELL or --abort, or --resume."),
        (("unknown.example", "--to", "b"), "There is no site unknown.example in the directory."),
        ((HOST, "--to", "a"), "Site 1 is in the cell a already."),
        ((HOST, "--to", "z"), "There is no cell z in the directory."),
    ],
)
def test_wrong_arguments_are_explained(stage: Stage, arguments: tuple[str, ...], message: str) -> None:
    assert run(stage, "move", *arguments, status=1)[1].endswith(message)


@pytest.mark.parametrize(
    ("database", "change", "message"),
    [
        ("directory", "UPDATE kalends_directory.cells SET accepts_new = false WHERE name = 'b'", "is being drained"),
        ("b", "UPDATE alembic_version SET version_num = '0024'", "that of b is 0024."),
        ("b", "UPDATE cell SET name = 'c'", "b: the database is the cell c. Check KALENDS_CELL_OWNERS."),
        ("a", "DELETE FROM cell", "a: the database is no cell. Check KALENDS_CELL_OWNERS."),
        ("b", "INSERT INTO sites (id) VALUES (1)", "b: there are rows of site 1 already, in the tables sites."),
        ("a", "CREATE TABLE notes (site_id bigint, id bigint PRIMARY KEY)", "The table notes cannot be copied"),
        ("a", "CREATE UNLOGGED TABLE notes (site_id bigint PRIMARY KEY)", "The table notes cannot be copied"),
        ("a", "INSERT INTO unserved_sites VALUES (1, 'departed', gen_random_uuid())", "a: site 1 is departed there."),
        ("a", "DELETE FROM sites", "a: there is no site 1."),
    ],
)  # fmt: skip
def test_missing_prerequisites_are_named(stage: Stage, database: str, change: str, message: str) -> None:
    stage.fetch(database, change)
    for options in ((), ("--dry-run",)):
        assert message in run(stage, "move", HOST, "--to", "b", *options, status=1)[1]
    assert stage.list_objects() == []


def test_cluster_without_logical_log_is_named(postgres_url: str, template_database: str) -> None:
    """The server of the other tests has the default wal_level, and its login here is not a superuser."""
    with (
        temporary_database(postgres_url) as directory,
        temporary_database(postgres_url, template=template_database) as a,
        temporary_database(postgres_url, template=template_database) as b,
    ):
        urls = {name: replace_database(postgres_url, url) for name, url in zip(CELLS, (a, b), strict=True)}
        stage = Stage(replace_database(postgres_url, directory), urls)
        make_directory(stage.directory_url)
        make_cell(urls["a"], "a", is_empty=False)
        make_cell(urls["b"], "b", is_empty=True)
        stage.add_to_directory(1, "a", [HOST])
        _, error = run(stage, "move", HOST, "--to", "b", status=1)
        assert "a: set wal_level = logical (now replica) and restart PostgreSQL." in error
        stage.fetch("a", "CREATE ROLE mover LOGIN IN ROLE pg_read_all_data")
        limited = Stage(stage.directory_url, {**urls, "a": urls["a"].replace("postgres@", "mover@")})
        try:
            _, error = run(limited, "move", HOST, "--to", "b", status=1)
        finally:
            stage.fetch("a", "DROP ROLE mover")
        assert "a: the login must be a superuser. Check KALENDS_CELL_OWNERS." in error
