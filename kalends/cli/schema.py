"""The database schema: migrations."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.cells import CellOption, load_cell
from kalends.cli.errors import describe, fail
from kalends.cli.runtime import load_settings

if TYPE_CHECKING:
    from kalends.settings import Settings


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with status 1 if the schema is not up to date.")
    ] = False,
    cell: CellOption = "",
) -> None:
    """Upgrade the database schema. Safe to run concurrently."""
    settings = load_settings()
    if not settings.directory_url or cell:
        _migrate_database(load_cell(cell), check=check)
        return
    from kalends.store import directory_changes

    if not check:
        asyncio.run(directory_changes.apply_schema(settings.directory_url))
        typer.echo("The directory is up to date.")
    # The first cell shows whether the migration works; after a failure the others keep their schema.
    for name, member in settings.members.items():
        started = time.monotonic()
        try:
            _migrate_database(member, check=check, prefix=f"{name}: ")
        except Exception as error:
            fail(f"{name}: {describe(error)}")
        if not check:
            typer.echo(f"{name}: done in {time.monotonic() - started:.1f} s.")


def _migrate_database(settings: "Settings", *, check: bool, prefix: str = "") -> None:
    from kalends.store import problems
    from kalends.store.migrations import list_revisions, newest_revision
    from kalends.store.migrations import migrate as run_migrations

    # Also explains why the database cannot be reached, before anything else is tried.
    found = asyncio.run(problems.read_schema_version(settings.owner_url))
    if check:
        pending = len([revision for revision in list_revisions() if revision > found.number])
        if problem := problems.compare_schema(found, newest_revision()):
            typer.echo(f"{prefix}{problem.detail} Pending migrations: {pending}.")
            raise typer.Exit(1)
        state = problems.describe_newer(found, newest_revision()) or f"up to date ({found.number})"
        typer.echo(f"{prefix}The schema is {state}.")
        return
    try:
        run_migrations(
            settings.owner_url,
            server_url=settings.database_url,
            queue_url=settings.queue_url,
            report=lambda line: typer.echo(prefix + line),
        )
    except Exception as error:
        if problem := problems.explain_migration(error):
            raise problems.DatabaseUnavailable(problem) from error
        raise
