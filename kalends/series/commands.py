"""Commands for event series."""

import asyncio

import typer

from kalends.cli.runtime import load_settings, open_database
from kalends.core.times import utc_now

series = typer.Typer(no_args_is_help=True, help="Maintain series of recurring events.")


@series.callback()
def group() -> None:
    """Maintain series of recurring events."""


@series.command("extend")
def extend_series() -> None:
    """Create the next dates for all series, as the worker does every night."""
    typer.echo(f"{asyncio.run(_extend_series())} dates created.")


async def _extend_series() -> int:
    from kalends.series.jobs import extend_all

    database = await open_database(load_settings())
    try:
        return sum([await extend_all(member, utc_now()) for member in database.by_cell.values()])
    finally:
        await database.close()
