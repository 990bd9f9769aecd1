"""Export a site to a file, and import an exported file as a new site."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli import runtime
from kalends.cli.command_errors import fail
from kalends.cli.runtime import NewSiteCellOption
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.fleet.operations.site_archive import FindPlace
    from kalends.settings import Settings


def export_site(
    site: Annotated[str, typer.Argument(help="Host name or ID of the site.")],
    to: Annotated[Path, typer.Option("--to", help="File to write, such as calendar.zip; it must not exist.")],
    accounts: Annotated[
        bool, typer.Option("--accounts", help="Include accounts, without passwords, and their drafts and filters.")
    ] = False,
) -> None:
    """Write all of a site's records, history and images to a file."""
    from kalends.bootstrap import open_library
    from kalends.fleet.operations import site_archive
    from kalends.store import sites

    settings, started = runtime.load_site_cell(site), time.monotonic()
    found = runtime.find_site(asyncio.run(sites.list_sites(settings.owner_url)), site)
    with runtime.show_progress() as on_progress:
        result = asyncio.run(
            site_archive.export_site(
                settings.owner_url,
                open_library(settings),
                found.id,
                to,
                accounts=accounts,
                now=utc_now(),
                on_progress=on_progress,
            )
        )
    elapsed, size = time.monotonic() - started, to.stat().st_size
    typer.echo(
        f"Exported site {found.id} ({found.name}) to {to}: {result.rows:,} rows and {result.files:,} image files, "
        f"{size:,} bytes, in {elapsed:.1f} s."
    )
    if result.missing_files:
        typer.echo(f"{len(result.missing_files):,} image files are missing; see `kalends media check`.", err=True)
        raise typer.Exit(1)


def import_site(
    file: Annotated[Path, typer.Argument(help="File that `site export` has written.", exists=True, dir_okay=False)],
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="Host name of the new site, also several; by default those of the archive."),
    ] = None,
    first_host: Annotated[
        str, typer.Option(help="Host name for the existing site, if it has none; a server with several needs it.")
    ] = "",
    sanitize: Annotated[
        bool,
        typer.Option("--sanitize", help="Sanitize texts that this version would not store, instead of refusing."),
    ] = False,
    cell: NewSiteCellOption = "",
) -> None:
    """Import an archive as a new site. Without cells, also list the first sites in the database."""
    from kalends.bootstrap import open_library
    from kalends.fleet.adapters import ArchiveRefused
    from kalends.fleet.operations import site_archive
    from kalends.fleet.storage.archive_tables import RowsRefused

    settings, started = runtime.load_settings(), time.monotonic()
    options = site_archive.ImportOptions(tuple(host or ()), first_host, sanitize)
    try:
        with runtime.show_progress() as on_progress:
            library = open_library(settings, image_workers=os.cpu_count())
            result = asyncio.run(
                site_archive.import_site(_choose_place(settings, cell), library, file, options, on_progress)
            )
    except (ArchiveRefused, RowsRefused) as error:
        fail(f"{file}: {error.text}")
    typer.echo(
        f"Imported site {result.site_id} ({result.name}) at {', '.join(result.hosts)}: {sum(result.rows.values()):,} "
        f"rows and {result.files:,} image files, in {time.monotonic() - started:.1f} s."
    )
    accounts = result.rows["users"]
    typer.echo(
        f"{accounts:,} accounts have no password. `kalends user list` shows them."
        if result.accounts
        else f"{accounts:,} authors cannot sign in. Add an administrator with `kalends user add`."
    )
    if result.missing_files:
        typer.echo(f"{result.missing_files:,} image files were missing in the archive.", err=True)
    if not settings.directory_url:
        runtime.print_first_sites(settings.owner_url)


def _choose_place(settings: "Settings", cell: str) -> "FindPlace":
    """Return the function that chooses a new site's database: the only database, or a cell."""
    from kalends.fleet.storage import directory
    from kalends.fleet.storage.archive_tables import SitePlace

    if not settings.directory_url:
        runtime.refuse_cell(cell)
        return lambda hosts: nullcontext(SitePlace(settings.owner_url))

    @asynccontextmanager
    async def place_in_cell(hosts: Sequence[str]) -> AsyncIterator[SitePlace]:
        urls = settings.owner_urls
        async with directory.place_site(settings.directory_url, urls, hosts, cell) as place:
            yield SitePlace(urls[place.cell], place.site_id)

    return place_in_cell
