"""Commands for cells, the databases that share one directory's sites."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.command_errors import Finding, fail
from kalends.cli.runtime import JsonOption, format_age, load_settings, print_list
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.fleet.storage.directory import CellEntry
    from kalends.fleet.storage.move_steps import Move
    from kalends.settings import Settings

group = typer.Typer(no_args_is_help=True, help="Manage cells, the databases that share the sites of a directory.")

CellName = Annotated[str, typer.Argument(help="Name of the cell, as in KALENDS_CELLS.")]


def load_directory() -> "Settings":
    """Return the settings; exit if there is no directory."""
    settings = load_settings()
    if not settings.directory_url:
        fail("There is no directory: set KALENDS_DIRECTORY_URL and KALENDS_CELLS.")
    return settings


@group.command("add")
def add_cell(name: CellName) -> None:
    """Add a database to the directory as a cell, with the sites and host names that the database already has."""
    from kalends.fleet.storage import directory
    from kalends.store import problems
    from kalends.store.migrations import newest_revision

    settings = load_directory()
    if name not in settings.cells:
        fail(f"There is no cell {name} in KALENDS_CELLS: {', '.join(settings.cells)}.")
    owner_url = settings.owner_urls[name]
    found = asyncio.run(problems.read_schema_version(owner_url))
    if problem := problems.compare_schema(found, newest_revision()):
        raise problems.DatabaseUnavailable(problem)
    sites = asyncio.run(directory.add_cell(settings.directory_url, owner_url, name))
    typer.echo(f"The cell {name} is in the directory, with {len(sites)} sites of its own.")


@group.command("list")
def list_cells(as_json: JsonOption = False) -> None:
    """List all cells: name, sites, whether new sites are placed there, schema version."""
    from kalends.fleet.storage import directory

    settings = load_directory()
    entries = asyncio.run(directory.list_cells(settings.directory_url))
    states = asyncio.run(_read_states(settings, entries))
    print_list(
        [{**asdict(entry), "state": states[entry.name]} for entry in entries],
        lambda entry: [
            entry["name"],
            entry["sites"],
            "sites",
            "accepts new sites" if entry["accepts_new"] else "drained",
            entry["state"],
        ],
        as_json=as_json,
    )
    for name in sorted(settings.cells.keys() - {entry.name for entry in entries}):
        typer.echo(f"{name} is not in the directory: run `kalends cell add {name}`.", err=as_json)


async def _read_states(settings: "Settings", entries: "list[CellEntry]") -> dict[str, str]:
    from kalends.store import problems

    async def read(name: str) -> str:
        if name not in settings.cells:
            return "not in KALENDS_CELLS"
        try:
            return f"schema {(await problems.read_schema_version(settings.cells[name])).number or 'none'}"
        except problems.DatabaseUnavailable as error:
            return f"unreachable: {error.detail}"

    states = await asyncio.gather(*[read(entry.name) for entry in entries])
    return dict(zip([entry.name for entry in entries], states, strict=True))


@group.command("drain")
def drain_cell(name: CellName) -> None:
    """Stop placing new sites in a cell, and print the commands that move the cell's sites to other cells."""
    from kalends.fleet.storage import directory

    url = load_directory().directory_url
    asyncio.run(directory.set_accepts_new(url, name, accepts_new=False))
    remaining = asyncio.run(directory.list_sites(url, name))
    typer.echo(f"No new sites are placed in the cell {name}. {len(remaining)} sites remain.")
    for site in remaining:
        typer.echo(f"kalends site move {site.hosts[0] if site.hosts else site.location.site_id} --to CELL")


@group.command("fill")
def fill_cell(name: CellName) -> None:
    """Place new sites in a cell again."""
    from kalends.fleet.storage import directory

    asyncio.run(directory.set_accepts_new(load_directory().directory_url, name, accepts_new=True))
    typer.echo(f"New sites are placed in the cell {name}.")


@group.command("check")
def check_cells() -> None:
    """Compare all cells with the directory; exit with status 1 if they differ, or if a move was interrupted."""
    from kalends.cli.command_errors import print_findings

    settings = load_directory()
    findings = asyncio.run(_find_differences(settings))
    moves = asyncio.run(check_moves(settings.directory_url))
    for finding in findings:
        typer.echo(finding)
    print_findings(moves)
    if findings or any(move.level == "error" for move in moves):
        raise typer.Exit(1)
    typer.echo("All cells agree with the directory.")


async def _find_differences(settings: "Settings") -> list[str]:
    from kalends.fleet.storage import cells, directory, move_steps
    from kalends.store import problems

    url = settings.directory_url
    names = [entry.name for entry in await directory.list_cells(url)]
    findings = [f"The cell {name} is not in KALENDS_CELLS." for name in names if name not in settings.cells]
    contents: dict[str, cells.CellContents] = {}
    for name in names:
        try:
            if name in settings.cells:
                contents[name] = await cells.read_contents(settings.owner_urls[name])
        except problems.DatabaseUnavailable as error:
            findings.append(f"The cell {name} cannot be checked. {error.detail}")
    sites = await directory.list_sites(url)
    moving = {move.site_id for move in await move_steps.list_moves(url, unfinished=True)}
    return [*findings, *cells.compare(sites, contents, moving, set(names) - contents.keys())]


async def check_moves(directory_url: str) -> list[Finding]:
    """Return a finding for each unfinished move, or none if the directory cannot be read."""
    from kalends.fleet.storage import move_steps
    from kalends.store import problems

    try:
        moves = await move_steps.list_moves(directory_url, unfinished=True)
    except (problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
        return []
    return [judge_move(move, utc_now()) for move in moves]


def judge_move(move: "Move", now: datetime) -> Finding:
    age = format_age((now - move.started_at).total_seconds())
    text = f"Site {move.site_id} from {move.source} to {move.target}, started {age} ago, last step {move.step}"
    if move.has_mover:
        return Finding("Move", "ok", f"{text}: running.")
    return Finding("Move", "error", f"{text}: interrupted.", f"Run `kalends site move {move.site_id} --resume`.")
