"""Commands for images."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli import runtime
from kalends.cli.runtime import JsonOption, LimitOption, SearchOption, SiteOption
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.media.adapters.library import Library
    from kalends.store.site_database import SiteDatabase

media = typer.Typer(no_args_is_help=True, help="Manage images.")


@media.command("add")
def add_media(
    directory: Annotated[
        Path, typer.Argument(help="Directory with images; subdirectories are included.", exists=True)
    ],
    login: Annotated[str, typer.Option(help="Login of the account that will own the images.")],
    site: SiteOption = "",
) -> None:
    """Add all images in a directory, skipping images that already exist."""
    from kalends.media import operations as media_operations

    paths = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    started = time.monotonic()

    async def add(database: "SiteDatabase", library: "Library") -> media_operations.BulkAddResult:
        with runtime.show_progress() as on_progress:
            return await media_operations.add_files(
                database,
                library,
                paths,
                site=runtime.read_site(site),
                login=login,
                on_progress=lambda done: on_progress("images", done, len(paths)),
            )

    result: media_operations.BulkAddResult = asyncio.run(runtime.run_with_library(add))
    for path, reason in result.rejected:
        typer.echo(f"{path}: {reason}", err=True)
    elapsed = time.monotonic() - started
    typer.echo(
        f"Added {result.added:,} images in {elapsed:.1f} s; skipped {result.existing:,} existing ones, "
        f"rejected {len(result.rejected):,}."
    )
    if result.rejected:
        raise typer.Exit(1)


@media.command("list")
def list_media(
    search: SearchOption = "",
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Only images without generated sizes.")] = False,
    limit: LimitOption = None,
    as_json: JsonOption = False,
    site: SiteOption = "",
) -> None:
    """List images: ID, date, width, height, bytes, file, title. --search matches titles and files."""
    from kalends.media import storage as media_storage

    runtime.print_list(
        runtime.run_in_transaction(
            site, lambda tx: media_storage.list_images(tx, search, limit and limit + 1, incomplete=incomplete)
        ),
        lambda row: [
            row["id"],
            runtime.format_time(row["added_at"]),
            row["width"],
            row["height"],
            row["filesize"],
            row["url"],
            row["title"],
        ],
        as_json=as_json,
        limit=limit,
    )


@media.command("check")
def check_media(site: SiteOption = "") -> None:
    """Verify file hashes; regenerate damaged or missing sizes, and find missing hues."""
    from kalends.media import jobs as media_jobs, storage as media_storage

    async def check(database: "SiteDatabase", library: "Library") -> list[media_jobs.ImageCheck]:
        async with database.transaction(runtime.read_site(site), utc_now(), writing=False) as tx:
            total = await media_storage.count_media(tx)
        checks: list[media_jobs.ImageCheck] = []
        with runtime.show_progress() as on_progress:
            async for entry in media_jobs.check_media(database, library, runtime.read_site(site), utc_now()):
                checks.append(entry)
                on_progress("images", len(checks), total)
        return checks

    checks: list[media_jobs.ImageCheck] = asyncio.run(runtime.run_with_library(check))
    for entry in checks:
        if entry.detail:
            typer.echo(f"image {entry.media_id}: {len(entry.damaged_files)} damaged or missing files; {entry.detail}")
    incomplete = [entry for entry in checks if not entry.is_complete]
    files, damaged = sum(entry.file_count for entry in checks), sum(len(entry.damaged_files) for entry in checks)
    typer.echo(
        f"{len(checks):,} images, {files:,} files, {damaged:,} of them damaged or missing; "
        f"{len(incomplete):,} images incomplete."
    )
    if incomplete:
        raise typer.Exit(1)
