"""The command line, with one module per command group."""

from typing import Annotated

import typer

from kalends.accounts import commands as accounts_commands
from kalends.cli.command_errors import CommandGroup
from kalends.commands import check_commands, seed_commands, serve_commands, site_commands, status_commands
from kalends.fleet.commands import archive_commands, cell_commands, move_commands
from kalends.follow import commands as follow_commands
from kalends.imports.commands import import_commands
from kalends.media import commands as media_commands
from kalends.move_in import commands as move_in_commands
from kalends.proposals import commands as proposals_commands
from kalends.series import commands as series_commands

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Importing rich takes longer than the rest of --help.
)
app.add_typer(accounts_commands.user, name="user")
app.add_typer(accounts_commands.app_password, name="app-password")
site_commands.group.command("export")(archive_commands.export_site)
site_commands.group.command("import")(archive_commands.import_site)
site_commands.group.command("move")(move_commands.move_site)
site_commands.group.command("moves")(move_commands.list_moves)
app.add_typer(site_commands.group, name="site")
app.add_typer(cell_commands.group, name="cell")
app.add_typer(status_commands.job, name="job")
app.add_typer(site_commands.timezone, name="timezone")
app.add_typer(media_commands.media, name="media")
app.add_typer(series_commands.series, name="series")
app.add_typer(proposals_commands.proposals, name="proposals")
app.add_typer(follow_commands.follower, name="follower")
import_commands.group.add_typer(move_in_commands.tec, name="tec")
app.add_typer(import_commands.group, name="import")


def main() -> None:
    app()


def _show_version(value: bool) -> None:
    if value:
        from kalends import __version__

        typer.echo(f"Kalends {__version__}")
        raise typer.Exit


@app.callback()
def set_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Kalends, a calendar-events server."""


app.command()(serve_commands.migrate)
app.command()(check_commands.check)
app.command()(status_commands.status)
app.command()(serve_commands.serve)
app.command()(serve_commands.stream)
app.command("seed")(seed_commands.add_demo_records)
app.command()(serve_commands.worker)
app.command()(status_commands.history)
