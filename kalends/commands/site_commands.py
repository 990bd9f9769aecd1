"""Commands for sites: host names, settings, and time zone updates."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kalends.cli import runtime
from kalends.cli.command_errors import fail
from kalends.cli.runtime import JsonOption, LimitOption, NewSiteCellOption, SearchOption, SiteOption, YesOption
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.calendar.jobs import ShiftedEvent

MAX_SHOWN = 200  # maximum characters of a value that `site set` prints

group = typer.Typer(no_args_is_help=True, help="Manage sites and their settings.")
timezone = typer.Typer(no_args_is_help=True, help="Maintain time zone data.")


@group.command("show")
def show_site(site: SiteOption = "") -> None:
    """Show a site's host names and settings."""
    from kalends.calendar.operations import site_options

    for key, value in runtime.run_in_transaction(site, site_options.show_site).items():
        typer.echo(f"{key:<18} {value}")


@group.command("list")
def list_sites(search: SearchOption = "", limit: LimitOption = None, as_json: JsonOption = False) -> None:
    """List sites: ID, name, host names and, if there are several, the cell. --search matches names and host names."""
    from kalends.store import sites

    found: list[dict[str, Any]] = []
    for cell, member in runtime.load_settings().members.items():
        entries = asyncio.run(sites.list_sites(member.owner_url, search, limit and limit + 1))
        found += [{"id": entry.id, "cell": cell, "name": entry.name, "hosts": entry.hosts} for entry in entries]
    is_only = len(found) == 1 and not search
    runtime.print_list(
        found, lambda entry: runtime.describe_site(entry, is_only=is_only), as_json=as_json, limit=limit
    )


@group.command("set")
def set_site(
    key: Annotated[str, typer.Argument(help="Name of the setting, as listed by site show.")],
    value: Annotated[str, typer.Argument(help="New value.")],
    site: SiteOption = "",
) -> None:
    """Change a site setting."""
    from kalends.calendar.operations import site_options

    stored = runtime.run_in_transaction(site, lambda tx: site_options.set_site(tx, key, value))
    shown = repr(stored) if len(stored) <= MAX_SHOWN else f"a text of {len(stored):,} characters"
    typer.echo(f"{key} is now {shown}." if stored else f"{key} is now empty.")


@group.command("add")
def add_site(
    host_name: Annotated[str, typer.Argument(help="Host name of the new site.")],
    name: Annotated[str, typer.Option(help="Name of the site.")] = "Kalends",
    first_host: Annotated[
        str, typer.Option(help="Host name for the existing site, if it has none; a server with several needs it.")
    ] = "",
    cell: NewSiteCellOption = "",
) -> None:
    """Add a site with a host name, and list the first sites in the same database."""
    from kalends.fleet.storage import directory as directory_changes
    from kalends.store import sites

    settings = runtime.load_settings()
    if settings.directory_url:
        if first_host:
            fail("--first-host is for a database without a directory.")
        added = asyncio.run(
            directory_changes.add_site(settings.directory_url, settings.owner_urls, host_name, name, cell)
        )
        typer.echo(f"Added site {added.site_id} at {host_name.lower()} to the cell {added.cell}.")
        return
    runtime.refuse_cell(cell)
    url = settings.owner_url
    site_id = asyncio.run(sites.add_site(url, host_name, name, first_host))
    typer.echo(f"Added site {site_id} at {host_name.lower()}.")
    runtime.print_first_sites(url)


@group.command("add-host")
def add_host(
    host_name: Annotated[str, typer.Argument(help="Host name to add.")],
    move: Annotated[
        bool, typer.Option("--move", help="Take the host name from the site that has it, instead of refusing.")
    ] = False,
    site: SiteOption = "",
) -> None:
    """Add a host name to a site, and list the first sites in the same database."""
    from kalends.fleet.storage import directory as directory_changes
    from kalends.store import sites

    settings = runtime.load_settings()
    url = settings.owner_url
    if settings.directory_url:
        change = directory_changes.add_host(
            settings.directory_url, settings.owner_urls, host_name, runtime.read_site(site.lower()), move=move
        )
        changed = asyncio.run(change)
        typer.echo(f"{host_name.lower()} belongs to site {changed.site_id} in the cell {changed.cell}.")
        return
    found = runtime.find_site(asyncio.run(sites.list_sites(url)), site)
    asyncio.run(sites.add_host(url, host_name, found.id, move=move))
    typer.echo(f"{host_name.lower()} belongs to site {found.id}.")
    runtime.print_first_sites(url)


@group.command("remove-host")
def remove_host(host_name: Annotated[str, typer.Argument(help="Host name to remove.")]) -> None:
    """Remove a host name from its site, unless the site would become unreachable."""
    from kalends.fleet.storage import directory as directory_changes
    from kalends.store import sites

    settings = runtime.load_settings()
    if settings.directory_url:
        change = directory_changes.remove_host(settings.directory_url, settings.owner_urls, host_name)
    else:
        change = sites.remove_host(settings.owner_url, host_name)
    typer.echo(f"{host_name.lower()} no longer belongs to site {asyncio.run(change)}.")


@group.command("remove")
def remove_site(
    site: Annotated[str, typer.Argument(help="Host name or ID of the site.")],
    cell: Annotated[
        str, typer.Option(help="Remove only the copy in this cell, which the directory does not name for the site.")
    ] = "",
    yes: YesOption = False,
) -> None:
    """Remove a site with all its records, accounts and settings."""
    from kalends.fleet.storage import directory as directory_changes
    from kalends.store import sites

    if cell:
        _remove_copy(site, cell, yes=yes)
        return
    settings = runtime.load_settings()
    directory = settings.directory_url
    url = runtime.load_site_cell(site).owner_url
    if directory:
        # If an earlier addition or removal failed halfway, the site may exist only in the directory.
        site_id = asyncio.run(directory_changes.find_site(directory, runtime.read_site(site.lower()))).site_id
        name = site
    else:
        found = runtime.find_site(asyncio.run(sites.list_sites(url)), site)
        site_id, name = found.id, found.name
    count = asyncio.run(sites.count_records(url, site_id))
    runtime.confirm(f"Remove site {site_id} ({name}) with {count:,} events, venues, organizers and images?", yes=yes)
    if directory:
        asyncio.run(directory_changes.remove_site(directory, settings.owner_urls, site_id))
    else:
        asyncio.run(sites.remove_site(url, site_id))
    typer.echo(f"Removed site {site_id}. Its image files remain in the directory {site_id} of the media storage.")


def _remove_copy(site: str, cell: str, *, yes: bool) -> None:
    from kalends.fleet.storage import directory as directory_changes
    from kalends.store import sites

    key, url = runtime.read_site(site.lower()), runtime.load_cell(cell).owner_url
    settings = runtime.load_settings()
    if isinstance(key, str):
        key = asyncio.run(directory_changes.find_site(settings.directory_url, key)).site_id
    count = asyncio.run(sites.count_records(url, key))
    runtime.confirm(
        f"Remove {count:,} events, venues, organizers and images of site {key} from the cell {cell}?", yes=yes
    )
    asyncio.run(directory_changes.remove_copy(settings.directory_url, settings.owner_urls, key, cell))
    typer.echo(f"Removed the copy of site {key} in the cell {cell}.")


@timezone.command("refresh")
def refresh_zones(site: SiteOption = "") -> None:
    """Recompute the UTC times of all events after a tzdata update."""
    from kalends.core.zones import tzdata_version

    typer.echo(f"tzdata {tzdata_version()}")
    shifted = [event for event in asyncio.run(_refresh_zones(site)) if event.new_utc > utc_now()]
    for event in shifted:
        typer.echo(
            f"{event.event_id:>8}  {event.start_local} {event.timezone}: "
            f"{event.old_utc:%Y-%m-%d %H:%M}Z -> {event.new_utc:%Y-%m-%d %H:%M}Z  {event.title}"
        )
    typer.echo(f"{len(shifted)} future events shifted.")


async def _refresh_zones(site: str) -> "list[ShiftedEvent]":
    """Find outdated UTC times page by page without a lock, and correct them in small transactions."""
    from rich.console import Console
    from rich.progress import Progress

    from kalends.calendar import jobs as calendar_jobs

    database = await runtime.open_database(runtime.load_settings())
    shifted: list[ShiftedEvent] = []
    after: int | None = 0
    try:
        async with database.transaction(runtime.read_site(site), utc_now(), writing=False) as tx:
            total = await calendar_jobs.count_events(tx)
        with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as progress:
            task = progress.add_task("events", total=total)
            while after is not None:
                async with database.transaction(runtime.read_site(site), utc_now(), writing=False) as tx:
                    after, differing = await calendar_jobs.find_shifted(tx, after)
                for offset in range(0, len(differing), 500):
                    async with database.transaction(runtime.read_site(site), utc_now(), writing=True) as tx:
                        shifted += await calendar_jobs.shift_events(tx, differing[offset : offset + 500])
                progress.advance(task, calendar_jobs.PAGE_SIZE)
    finally:
        await database.close()
    return shifted
