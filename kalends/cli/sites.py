"""Sites, their hosts and settings; the time zones of their events."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from kalends.bootstrap import database_options
from kalends.cli.runtime import Host, load_settings, run_command, run_in_transaction
from kalends.core import times
from kalends.core.clock import utc_now
from kalends.operations import accounts, tzdata_refresh
from kalends.store import sites
from kalends.store.database import Database

site = typer.Typer(no_args_is_help=True, help="Settings of the site.")
zones = typer.Typer(no_args_is_help=True, help="The zone database.")


@site.command("show")
def show_site(host_name: Host = "") -> None:
    """Show the settings of the site."""
    for key, value in run_in_transaction(host_name, accounts.show_site).items():
        typer.echo(f"{key:<18} {value}")


@site.command("set")
def set_site(key: str, value: str, host_name: Host = "") -> None:
    """Change one setting of the site."""
    run_in_transaction(host_name, lambda tx: accounts.set_site(tx, key, value))


@site.command("add")
def add_site(host_name: str, name: Annotated[str, typer.Option(help="Name of the site.")] = "Kalends") -> None:
    """Add a site that answers to a host, and print its ID. The first site needs a host then, too."""
    typer.echo(asyncio.run(sites.add_site(load_settings().owner_url, host_name, name)))


@site.command("host")
def add_host(new_host: str, site_id: Annotated[int, typer.Option(help="ID of the site.")] = 1) -> None:
    """Let a site answer to one more host."""
    asyncio.run(sites.add_host(load_settings().owner_url, new_host, site_id))


@zones.command("refresh")
def refresh_zones(host_name: Host = "") -> None:
    """Derive the instants of all events again, after an update of the zone database."""
    typer.echo(f"tzdata {times.tzdata_version()}")
    shifted = [event for event in run_command(_refresh_zones(host_name)) if event.new_utc > utc_now()]
    for event in shifted:
        typer.echo(
            f"{event.event_id:>8}  {event.start_local} {event.timezone}: "
            f"{event.old_utc:%Y-%m-%d %H:%M}Z -> {event.new_utc:%Y-%m-%d %H:%M}Z  {event.title}"
        )
    typer.echo(f"{len(shifted)} future events moved.")


async def _refresh_zones(host_name: str) -> list[tzdata_refresh.ShiftedEvent]:
    """Looks without a lock, page by page; writes what differs in small transactions."""
    database = await Database.open(database_options(load_settings()))
    shifted: list[tzdata_refresh.ShiftedEvent] = []
    after: int | None = 0
    try:
        async with database.transaction(host_name, utc_now(), writing=False) as tx:
            total = await tzdata_refresh.count_events(tx)
        with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as progress:
            task = progress.add_task("events", total=total)
            while after is not None:
                async with database.transaction(host_name, utc_now(), writing=False) as tx:
                    after, differing = await tzdata_refresh.find_shifted(tx, after)
                for offset in range(0, len(differing), 500):
                    async with database.transaction(host_name, utc_now(), writing=True) as tx:
                        shifted += await tzdata_refresh.shift_events(tx, differing[offset : offset + 500])
                progress.advance(task, tzdata_refresh.PAGE_SIZE)
    finally:
        await database.close()
    return shifted
