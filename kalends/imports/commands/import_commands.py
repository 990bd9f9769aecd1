"""Commands that import events from calendars, tables and other sites."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kalends.cli.command_errors import fail
from kalends.cli.runtime import JsonOption, SiteOption, YesOption, load_settings, open_database, read_site
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.imports.commands.import_terminal import Terminal

RUN: str = "run"


class ImportGroup(TyperGroup):
    """The group `kalends import`. It treats any argument that is not a command as an address or a file."""

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

    async def work(terminal: "Terminal") -> None:
        from kalends.imports.commands.import_terminal import Origin

        request = Origin(origin, owner, status, timezone, every)
        await terminal.import_origin(request, is_applied=apply, is_confirmed=confirm)

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
    """Apply a stored plan, in whole or in part, or continue an interrupted one."""

    async def work(terminal: "Terminal") -> None:
        from kalends.imports.commands.import_terminal import read_numbers

        await terminal.apply_plan(run, read_numbers(rows), is_confirmed=confirm)

    _run(site, work)


@group.command("decide")
def decide_row(
    run: RunArgument,
    row: Annotated[int, typer.Argument(help="Number of a row that may be a duplicate.")],
    *,
    same: Annotated[bool, typer.Option("--same/--different", help="Use the existing record, or create a new one.")],
    site: SiteOption = "",
) -> None:
    """Decide whether a row of a plan is an existing record."""
    _run(site, lambda terminal: terminal.decide_row(run, row, is_same=same))


@group.command("undo")
def undo_run(run: RunArgument, yes: YesOption = False, site: SiteOption = "") -> None:
    """Show how a run would be undone, and undo it after confirmation."""
    _run(site, lambda terminal: terminal.undo_run(run, is_confirmed=yes))


@group.command("list")
def list_imports(
    source: Annotated[int | None, typer.Option(help="Only the runs of the source with this ID.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of runs.", min=1)] = 20,
    as_json: JsonOption = False,
    site: SiteOption = "",
) -> None:
    """List sources and their last runs."""
    _run(site, lambda terminal: terminal.list_imports(source, limit, as_json=as_json))


@group.command("show")
def show_run_command(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="Show all rows instead of the first of each action.")] = False,
    site: SiteOption = "",
) -> None:
    """Show a run: what it changes, and why it rejects rows."""
    _run(site, lambda terminal: terminal.show_run(run, shows_all=every))


def _run(site: str, work: "Callable[[Terminal], Awaitable[object]]") -> None:
    async def run() -> None:
        from kalends.bootstrap import open_import_tools, open_library
        from kalends.imports.commands.import_terminal import Terminal

        settings = load_settings()
        database = await open_database(settings)
        try:
            async with database.transaction(read_site(site), utc_now(), writing=False) as tx:
                site_id = tx.site.id
            await work(Terminal(database, open_import_tools(settings, open_library(settings)), site_id))
        finally:
            await database.close()

    asyncio.run(run())
