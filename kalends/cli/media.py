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
    began = time.monotonic()

    async def add(database: Database, library: Library) -> bulk_add.Added:
        with show_progress() as told:
            return await bulk_add.add_files(
                database,
                library,
                paths,
                site=host_name,
                login=login,
                told=lambda done: told("images", done, len(paths)),
            )

    added: bulk_add.Added = run_command(run_with_library(add))
    for path, why in added.refused:
        typer.echo(f"{path}: {why}", err=True)
    took = time.monotonic() - began
    typer.echo(
        f"Added {added.added:,} images in {took:.1f} s; {added.known:,} were there already, "
        f"{len(added.refused):,} are refused."
    )
    if added.refused:
        raise typer.Exit(1)


@media.command("check")
def check_media(host_name: Host = "") -> None:
    """Compare every file with its name, which is its hash, and make damaged or missing sizes again."""
    from kalends.operations.media import maintenance

    async def check(database: Database, library: Library) -> list[maintenance.Checked]:
        async with database.transaction(host_name, utc_now(), writing=False) as tx:
            total = await maintenance.count_images(tx)
        found: list[maintenance.Checked] = []
        with show_progress() as told:
            async for entry in maintenance.check_media(database, library, host_name, utc_now()):
                found.append(entry)
                told("images", len(found), total)
        return found

    found: list[maintenance.Checked] = run_command(run_with_library(check))
    for entry in found:
        if entry.why:
            typer.echo(f"image {entry.media_id}: {len(entry.wrong)} files wrong, {entry.why}")
    lost = [entry for entry in found if not entry.whole]
    files, wrong = sum(entry.files for entry in found), sum(len(entry.wrong) for entry in found)
    typer.echo(f"{len(found):,} images, {files:,} files, {wrong:,} of them wrong; {len(lost):,} images not whole.")
    if lost:
        raise typer.Exit(1)
