"""Sites, their hosts and settings; the time zones of their events."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.runtime import SiteOption, load_settings, open_database, run_command, run_in_transaction
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from kalends.operations.tzdata_refresh import ShiftedEvent

group = typer.Typer(no_args_is_help=True, help="Manage sites and their settings.")
timezone = typer.Typer(no_args_is_help=True, help="Maintain time zone data.")


@group.command("show")
def show_site(site: SiteOption = "") -> None:
    """Show the settings of a site."""
    from kalends.operations import sites

    for key, value in run_in_transaction(site, sites.show_site).items():
        typer.echo(f"{key:<18} {value}")


@group.command("set")
def set_site(
    key: Annotated[str, typer.Argument(help="Name of the setting, as listed by site show.")],
    value: Annotated[str, typer.Argument(help="New value.")],
    site: SiteOption = "",
) -> None:
    """Change one setting of a site."""
    from kalends.operations import sites

    run_in_transaction(site, lambda tx: sites.set_site(tx, key, value))


@group.command("add")
def add_site(
    host_name: Annotated[str, typer.Argument(help="Host name of the new site.")],
    name: Annotated[str, typer.Option(help="Name of the site.")] = "Kalends",
) -> None:
    """Add a site with its host name and print its ID. The first site then needs a host name, too."""
    from kalends.store import sites

    typer.echo(asyncio.run(sites.add_site(load_settings().owner_url, host_name, name)))


@group.command("add-host")
def add_host(
    host_name: Annotated[str, typer.Argument(help="Host name to add.")],
    site_id: Annotated[int, typer.Option(help="ID of the site.")] = 1,
) -> None:
    """Add a host name to a site."""
    from kalends.store import sites

    asyncio.run(sites.add_host(load_settings().owner_url, host_name, site_id))


@timezone.command("refresh")
def refresh_zones(site: SiteOption = "") -> None:
    """Recompute UTC times of all events after a tzdata update."""
    from kalends.core import times

    typer.echo(f"tzdata {times.tzdata_version()}")
    shifted = [event for event in run_command(_refresh_zones(site)) if event.new_utc > utc_now()]
    for event in shifted:
        typer.echo(
            f"{event.event_id:>8}  {event.start_local} {event.timezone}: "
            f"{event.old_utc:%Y-%m-%d %H:%M}Z -> {event.new_utc:%Y-%m-%d %H:%M}Z  {event.title}"
        )
    typer.echo(f"{len(shifted)} future events shifted.")


async def _refresh_zones(site: str) -> "list[ShiftedEvent]":
    """Compare without a lock, page by page; write the differences in small transactions."""
    from rich.console import Console
    from rich.progress import Progress

    from kalends.operations import tzdata_refresh

    database = await open_database(load_settings())
    shifted: list[ShiftedEvent] = []
    after: int | None = 0
    try:
        async with database.transaction(site, utc_now(), writing=False) as tx:
            total = await tzdata_refresh.count_events(tx)
        with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as progress:
            task = progress.add_task("events", total=total)
            while after is not None:
                async with database.transaction(site, utc_now(), writing=False) as tx:
                    after, differing = await tzdata_refresh.find_shifted(tx, after)
                for offset in range(0, len(differing), 500):
                    async with database.transaction(site, utc_now(), writing=True) as tx:
                        shifted += await tzdata_refresh.shift_events(tx, differing[offset : offset + 500])
                progress.advance(task, tzdata_refresh.PAGE_SIZE)
    finally:
        await database.close()
    return shifted
