"""Images."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kalends.cli.runtime import Host, run_command, run_with_library, show_progress
from kalends.core.clock import utc_now
from kalends.operations.media.library import Library
from kalends.store.database import Database

media = typer.Typer(no_args_is_help=True, help="Images.")


@media.command("add")
def add_media(
    directory: Annotated[Path, typer.Argument(help="Directory with images; those below it count too.", exists=True)],
    login: Annotated[str, typer.Option(help="The account that the images will belong to.")],
    host_name: Host = "",
) -> None:
    """Add all images of a directory. Those that are there already are left out, so it can be repeated."""
    from kalends.operations.media import bulk_add

    paths = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    started = time.monotonic()

    async def add(database: Database, library: Library) -> bulk_add.BulkAddResult:
        with show_progress() as on_progress:
            return await bulk_add.add_files(
                database,
                library,
                paths,
                site=host_name,
                login=login,
                on_progress=lambda done: on_progress("images", done, len(paths)),
            )

    result: bulk_add.BulkAddResult = run_command(run_with_library(add))
    for path, reason in result.rejected:
        typer.echo(f"{path}: {reason}", err=True)
    elapsed = time.monotonic() - started
    typer.echo(
        f"Added {result.added:,} images in {elapsed:.1f} s; {result.existing:,} were there already, "
        f"{len(result.rejected):,} are refused."
    )
    if result.rejected:
        raise typer.Exit(1)


@media.command("check")
def check_media(host_name: Host = "") -> None:
    """Compare every file with its name, which is its hash, and make damaged or missing sizes again."""
    from kalends.operations.media import maintenance

    async def check(database: Database, library: Library) -> list[maintenance.ImageCheck]:
        async with database.transaction(host_name, utc_now(), writing=False) as tx:
            total = await maintenance.count_images(tx)
        checks: list[maintenance.ImageCheck] = []
        with show_progress() as on_progress:
            async for entry in maintenance.check_media(database, library, host_name, utc_now()):
                checks.append(entry)
                on_progress("images", len(checks), total)
        return checks

    checks: list[maintenance.ImageCheck] = run_command(run_with_library(check))
    for entry in checks:
        if entry.detail:
            typer.echo(f"image {entry.media_id}: {len(entry.damaged_files)} files wrong, {entry.detail}")
    incomplete = [entry for entry in checks if not entry.is_complete]
    files, damaged = sum(entry.file_count for entry in checks), sum(len(entry.damaged_files) for entry in checks)
    typer.echo(
        f"{len(checks):,} images, {files:,} files, {damaged:,} of them wrong; {len(incomplete):,} images not whole."
    )
    if incomplete:
        raise typer.Exit(1)
