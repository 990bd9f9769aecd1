"""Move sites between cells."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.command_errors import fail
from kalends.cli.runtime import JsonOption, LimitOption, ProgressReport, print_list, read_site, show_progress
from kalends.fleet.commands.cell_commands import load_directory

if TYPE_CHECKING:
    from kalends.fleet.operations.site_move import MoveSetup
    from kalends.fleet.storage.move_source import MoveSurvey
    from kalends.fleet.storage.move_steps import Move

MAX_TABLES = 10  # listed by a dry run


def move_site(
    site: Annotated[str, typer.Argument(help="Host name or ID of the site; with --resume, all sites if empty.")] = "",
    to: Annotated[str, typer.Option("--to", help="Name of the cell that the site moves to.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied and what stands in the way.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Complete a move that was interrupted.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Undo a move that was not switched yet.")] = False,
) -> None:
    """Move a site to another cell while it is being used."""
    from kalends.fleet.operations import site_move

    if [bool(to), resume, abort].count(True) != 1 or (dry_run and not to) or (not site and not resume):
        fail("Pass a site with --to CELL or --abort, or --resume.")
    if dry_run:
        setup = _make_setup(site_move.ignore_progress)
        _print_survey(asyncio.run(site_move.survey_move(setup, read_site(site), to)))
        return
    with show_progress() as report:
        setup = _make_setup(report)
        if to:
            moves = [asyncio.run(site_move.move_site(setup, read_site(site), to))]
        else:
            moves = asyncio.run(_end(setup, site, resume=resume))
    for move in moves:
        _print_outcome(move)
    if not moves:
        typer.echo("There is no unfinished move.")


def list_moves(
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Only moves that have not ended; the exit status is 1 if any.")
    ] = False,
    limit: LimitOption = None,
    as_json: JsonOption = False,
    site: Annotated[str, typer.Option(help="Host name or ID of a site; by default all.")] = "",
) -> None:
    """List site moves between cells, latest first."""
    from kalends.fleet.storage import move_steps

    url = load_directory().directory_url

    async def read() -> "list[Move]":
        site_id = (await move_steps.find_site(url, read_site(site))).site_id if site else None
        return await move_steps.list_moves(url, unfinished, site_id, limit and limit + 1)

    moves = asyncio.run(read())
    print_list(moves, _describe_move, as_json=as_json, limit=limit)
    if unfinished and moves:
        raise typer.Exit(1)


def _describe_move(move: "Move") -> list[object]:
    return [
        f"{move.started_at:%Y-%m-%d %H:%M:%S}",
        f"site {move.site_id}",
        f"{move.source} -> {move.target}",
        move.step,
        move.outcome or "-",
        "ended" if move.ended_at else "running" if move.has_mover else "interrupted",
        f"pause {f'{move.pause_ms:,} ms' if move.pause_ms is not None else '-'}",
    ]


def _make_setup(report: ProgressReport) -> "MoveSetup":
    from kalends.fleet.operations.site_move import MoveSetup

    settings = load_directory()
    return MoveSetup(settings.directory_url, settings.owner_urls, report=report)


async def _end(setup: "MoveSetup", site: str, *, resume: bool) -> "list[Move]":
    """Resume or abort one site's unfinished moves, or all unfinished moves."""
    from kalends.fleet.operations import site_move
    from kalends.fleet.storage.move_steps import find_site, list_moves

    site_id = (await find_site(setup.directory_url, read_site(site))).site_id if site else None
    unfinished = await list_moves(setup.directory_url, unfinished=True, site_id=site_id)
    act = site_move.resume_move if resume else site_move.abort_move
    return [await act(setup, move) for move in unfinished]


def _print_survey(survey: "MoveSurvey") -> None:
    typer.echo(f"{survey.rows:,} rows, {survey.bytes / 2**20:,.1f} MB, {survey.jobs:,} jobs")
    typer.echo(f"hosts: {', '.join(survey.hosts) or 'none'}; schema {survey.schema}")
    for table in survey.tables[:MAX_TABLES]:
        if table.rows:
            typer.echo(f"  {table.name:<28} {table.rows:>12,} rows {table.bytes / 2**20:>10,.1f} MB")
    if survey.problems:
        fail("\n".join(survey.problems))
    typer.echo("Nothing stands in the way.")


def _print_outcome(move: "Move") -> None:
    if move.outcome == "moved":
        pause = f"; writers waited {move.pause_ms:,} ms" if move.pause_ms is not None else ""
        typer.echo(f"Moved site {move.site_id} from {move.source} to {move.target}{pause}.")
    else:
        typer.echo(f"Aborted the move of site {move.site_id}; {move.source} serves it.")
