"""The database schema: migrations."""

import asyncio
from typing import Annotated

import typer

from kalends.cli.runtime import load_settings


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with status 1 if the schema is not up to date.")
    ] = False,
) -> None:
    """Upgrade the database schema. Safe to run concurrently."""
    settings = load_settings()
    from kalends.store import problems
    from kalends.store.migrations import list_revisions, newest_revision
    from kalends.store.migrations import migrate as run_migrations

    # Also explains why the database cannot be reached, before anything else is tried.
    found = asyncio.run(problems.read_schema_version(settings.owner_url))
    if check:
        pending = len([revision for revision in list_revisions() if revision > found.number])
        if problem := problems.compare_schema(found, newest_revision()):
            typer.echo(f"{problem.detail} Pending migrations: {pending}.")
            raise typer.Exit(1)
        state = problems.describe_newer(found, newest_revision()) or f"up to date ({found.number})"
        typer.echo(f"The schema is {state}.")
        return
    try:
        run_migrations(
            settings.owner_url, server_url=settings.database_url, queue_url=settings.queue_url, report=typer.echo
        )
    except Exception as error:
        if problem := problems.explain_migration(error):
            raise problems.DatabaseUnavailable(problem) from error
        raise
