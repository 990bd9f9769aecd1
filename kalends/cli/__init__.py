"""The command line: one module per group of commands."""

from typing import Annotated

import typer

from kalends.cli import (
    cells,
    check,
    demo,
    imports,
    jobs,
    media,
    move_in,
    records,
    schema,
    series,
    serve,
    site_archive,
    site_moves,
    sites,
    status,
    users,
)
from kalends.cli.errors import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Importing rich takes longer than everything else that --help does.
)
app.add_typer(users.user, name="user")
app.add_typer(users.app_password, name="app-password")
sites.group.command("export")(site_archive.export_site)
sites.group.command("import")(site_archive.import_site)
sites.group.command("move")(site_moves.move_site)
sites.group.command("moves")(site_moves.list_moves)
app.add_typer(sites.group, name="site")
app.add_typer(cells.group, name="cell")
app.add_typer(jobs.job, name="job")
app.add_typer(sites.timezone, name="timezone")
app.add_typer(media.media, name="media")
app.add_typer(series.series, name="series")
imports.group.add_typer(move_in.tec, name="tec")
app.add_typer(imports.group, name="import")


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


app.command()(schema.migrate)
app.command()(check.check)
app.command()(status.status)
app.command()(serve.serve)
app.command("seed")(demo.add_demo_records)
app.command()(serve.worker)
app.command()(records.history)
