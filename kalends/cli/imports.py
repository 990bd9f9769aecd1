"""Imports of events from calendars, tables and other sites."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kalends.cli.errors import fail
from kalends.cli.lists import JsonOption, print_json, print_list
from kalends.cli.runtime import SiteOption, YesOption, confirm, load_settings, open_database, read_site
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from kalends.operations.imports.inputs import Tools
    from kalends.store.site_database import SiteDatabase

RUN: str = "run"


class ImportGroup(TyperGroup):
    """The group `kalends import`: anything that is not one of its commands is an address or a file."""

    default_command = RUN

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_command = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_command or not args else [RUN, *args])


group = typer.Typer(
    cls=ImportGroup,
    no_args_is_help=True,
    help="Import events: `kalends import ADDRESS_OR_FILE` shows the plan, with --apply it is applied.",
)

RunArgument = Annotated[int, typer.Argument(help="ID of the run, as listed by import list.")]


@group.command(RUN)
def import_from(
    origin: Annotated[
        str, typer.Argument(help="Address of a calendar or table, or a file (.ics, .csv, .xlsx, .ods).")
    ],
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the plan instead of showing it only.")] = False,
    owner: Annotated[
        str, typer.Option(help="Login of the account whose rights apply; by default the first administrator.")
    ] = "",
    status: Annotated[str, typer.Option(help="Status of new events: draft, pending, publish or private.")] = "draft",
    timezone: Annotated[str, typer.Option(help="Time zone of times without one, such as Europe/Berlin.")] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="Apply the plan although it asks a question.")] = False,
    every: Annotated[
        int, typer.Option(help="Let the worker fetch the address again every so many minutes; 0: do not.")
    ] = 0,
    site: SiteOption = "",
) -> None:
    """Show what an import would change, and apply it with --apply."""
    if status not in ("draft", "pending", "publish", "private"):
        fail("--status must be draft, pending, publish or private.")
    from kalends.cli.import_work import Origin, import_origin

    request = Origin(origin, owner, status, timezone, every)

    async def work(database: "SiteDatabase", tools: "Tools", site_id: int) -> None:
        await import_origin(database, tools, site_id, request, is_applied=apply, is_confirmed=confirm)

    _run(site, work)


@group.command("apply")
def apply_run(
    run: RunArgument,
    rows: Annotated[
        str, typer.Option(help="Numbers of rows, such as 1,4,7-9; by default all that wait for nobody.")
    ] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="Apply the plan although it asks a question.")] = False,
    site: SiteOption = "",
) -> None:
    """Apply a stored plan, in whole or in part, or continue after an interruption."""
    from kalends.cli.import_work import apply_plan, read_numbers

    numbers = read_numbers(rows)

    async def work(database: "SiteDatabase", tools: "Tools", site_id: int) -> None:
        await apply_plan(database, tools, site_id, run, numbers, is_confirmed=confirm)

    _run(site, work)


@group.command("decide")
def decide_row(
    run: RunArgument,
    row: Annotated[int, typer.Argument(help="Number of a row that may be a duplicate.")],
    *,
    same: Annotated[bool, typer.Option("--same/--different", help="Use the existing record, or create a new one.")],
    site: SiteOption = "",
) -> None:
    """Decide whether a row of a plan is a record that exists."""
    from kalends.operations.imports import runs

    async def work(database: "SiteDatabase", _: "Tools", site_id: int) -> None:
        await runs.decide_duplicate(database, site_id, run, row, is_same=same, now=utc_now())
        typer.echo(f"Row {row} {'uses the existing record' if same else 'creates a new record'}.")

    _run(site, work)


@group.command("undo")
def undo_run(run: RunArgument, yes: YesOption = False, site: SiteOption = "") -> None:
    """Show how a run would be undone, and undo it after a confirmation."""
    from kalends.cli.import_work import apply_plan, show_run
    from kalends.operations.imports import runs
    from kalends.operations.imports.undo import plan_undo

    async def work(database: "SiteDatabase", tools: "Tools", site_id: int) -> None:
        undo_id = await plan_undo(database, site_id, run, user_id=None, now=utc_now())
        await show_run(database, site_id, undo_id)
        try:
            confirm("Undo this?", yes=yes)
        except typer.Abort:
            await runs.discard(database, site_id, undo_id, now=utc_now())
            raise
        await apply_plan(database, tools, site_id, undo_id, None)

    _run(site, work)


@group.command("list")
def list_imports(
    source: Annotated[int | None, typer.Option(help="Only the runs of the source with this ID.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of runs.", min=1)] = 20,
    as_json: JsonOption = False,
    site: SiteOption = "",
) -> None:
    """List sources and their last runs."""
    from kalends.cli.import_tables import describe_run, describe_source, encode_run, encode_source
    from kalends.store import import_lists

    async def work(database: "SiteDatabase", _: "Tools", site_id: int) -> None:
        async with database.transaction(site_id, utc_now(), writing=False) as tx:
            sources = await import_lists.list_sources(tx)
            runs = await import_lists.list_runs(tx, source_id=source, limit=limit + 1)
        if as_json:
            encoded = [encode_run(row) for row in runs[:limit]]
            print_json({"sources": [encode_source(row) for row in sources], "runs": encoded})
            return
        if sources:
            typer.echo("Sources: ID, kind, name, minutes, state, last success, failures")
            print_list(sources, describe_source)
        if runs:
            typer.echo("Runs: ID, source, started, state, changes")
            print_list(runs, describe_run, limit=limit)

    _run(site, work)


@group.command("show")
def show_run_command(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="Show all rows instead of the first of each action.")] = False,
    site: SiteOption = "",
) -> None:
    """Show a run: what it changes, and why rows were rejected."""
    from kalends.cli.import_work import show_run

    async def work(database: "SiteDatabase", _: "Tools", site_id: int) -> None:
        await show_run(database, site_id, run, shows_all=every)

    _run(site, work)


def _run(site: str, work: "Callable[[SiteDatabase, Tools, int], Awaitable[None]]") -> None:
    """Run a command with the database, the tools of imports and the ID of the site."""

    async def run() -> None:
        from kalends.bootstrap import open_import_tools, open_library

        settings = load_settings()
        database = await open_database(settings)
        try:
            async with database.transaction(read_site(site), utc_now(), writing=False) as tx:
                site_id = tx.site.id
            await work(database, open_import_tools(settings, open_library(settings)), site_id)
        finally:
            await database.close()

    asyncio.run(run())
