"""Cells: the databases that share the sites of one directory."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.errors import fail
from kalends.cli.lists import JsonOption, print_list
from kalends.cli.runtime import load_settings

if TYPE_CHECKING:
    from kalends.settings import Settings
    from kalends.store.directory_changes import CellEntry

group = typer.Typer(no_args_is_help=True, help="Manage cells, the databases that share the sites of a directory.")

CellOption = Annotated[str, typer.Option("--cell", help="Name of the cell, if there is a directory of several.")]
NewSiteCellOption = Annotated[
    str,
    typer.Option(
        "--cell", help="Cell of the new site; without it, the one with the fewest sites that accepts new ones."
    ),
]
CellName = Annotated[str, typer.Argument(help="Name of the cell, as in KALENDS_CELLS.")]


def refuse_cell(cell: str) -> None:
    """End a command that has --cell although there is no directory."""
    if cell:
        fail("--cell needs KALENDS_DIRECTORY_URL and KALENDS_CELLS.")


def load_cell(cell: str) -> "Settings":
    """Return the settings of one cell; without a directory, those of the only database."""
    settings = load_settings()
    if not settings.directory_url:
        refuse_cell(cell)
        return settings
    if cell not in settings.cells:
        names = ", ".join(settings.cells)
        fail(f"There is no cell {cell} in KALENDS_CELLS: {names}." if cell else f"Choose one with --cell: {names}.")
    return settings.for_cell(cell)


def load_site_cell(site: str) -> "Settings":
    """Return the settings of the cell that has a site; without a directory, those of the only database."""
    from kalends.cli.runtime import read_site
    from kalends.store import directory_changes

    settings = load_settings()
    if not settings.directory_url:
        return settings
    location = asyncio.run(directory_changes.find_site(settings.directory_url, read_site(site.lower())))
    if location.cell not in settings.cells:
        fail(f"The directory names the cell {location.cell}, which is not in KALENDS_CELLS.")
    return settings.for_cell(location.cell)


def load_directory() -> "Settings":
    """Return the settings; end the command if there is no directory."""
    settings = load_settings()
    if not settings.directory_url:
        fail("There is no directory: set KALENDS_DIRECTORY_URL and KALENDS_CELLS.")
    return settings


@group.command("add")
def add_cell(name: CellName) -> None:
    """Add a database to the directory as a cell, with the sites and host names that it has."""
    from kalends.store import directory_changes, problems
    from kalends.store.migrations import newest_revision

    settings = load_directory()
    if name not in settings.cells:
        fail(f"There is no cell {name} in KALENDS_CELLS: {', '.join(settings.cells)}.")
    owner_url = settings.owner_urls[name]
    found = asyncio.run(problems.read_schema_version(owner_url))
    if problem := problems.compare_schema(found, newest_revision()):
        raise problems.DatabaseUnavailable(problem)
    sites = asyncio.run(directory_changes.add_cell(settings.directory_url, owner_url, name))
    typer.echo(f"The cell {name} is in the directory, with {len(sites)} sites of its own.")


@group.command("list")
def list_cells(as_json: JsonOption = False) -> None:
    """List all cells: name, sites, whether new sites are placed there, schema version."""
    from kalends.store import directory_changes

    settings = load_directory()
    entries = asyncio.run(directory_changes.list_cells(settings.directory_url))
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
    """Place no more new sites in a cell, and print the commands that move its sites away."""
    from kalends.store import directory_changes

    url = load_directory().directory_url
    asyncio.run(directory_changes.set_accepts_new(url, name, accepts_new=False))
    remaining = asyncio.run(directory_changes.list_sites(url, name))
    typer.echo(f"No new sites are placed in the cell {name}. {len(remaining)} sites remain.")
    for site in remaining:
        typer.echo(f"kalends site move {site.hosts[0] if site.hosts else site.location.site_id} --to CELL")


@group.command("fill")
def fill_cell(name: CellName) -> None:
    """Place new sites in a cell again."""
    from kalends.store import directory_changes

    asyncio.run(directory_changes.set_accepts_new(load_directory().directory_url, name, accepts_new=True))
    typer.echo(f"New sites are placed in the cell {name}.")


@group.command("check")
def check_cells() -> None:
    """Compare all cells with the directory; exit with status 1 if they differ, or if a move was interrupted."""
    from kalends.cli.check import check_moves
    from kalends.cli.findings import print_findings

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
    from kalends.store import cell_check, directory_changes, problems, site_moves

    url = settings.directory_url
    names = [entry.name for entry in await directory_changes.list_cells(url)]
    findings = [f"The cell {name} is not in KALENDS_CELLS." for name in names if name not in settings.cells]
    contents: dict[str, cell_check.CellContents] = {}
    for name in names:
        try:
            if name in settings.cells:
                contents[name] = await cell_check.read_contents(settings.owner_urls[name])
        except problems.DatabaseUnavailable as error:
            findings.append(f"The cell {name} cannot be checked. {error.detail}")
    sites = await directory_changes.list_sites(url)
    moving = {move.site_id for move in await site_moves.list_moves(url, unfinished=True)}
    return [*findings, *cell_check.compare(sites, contents, moving, set(names) - contents.keys())]
