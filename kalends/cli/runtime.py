"""Shared by all commands: settings, transactions, progress bars, error messages."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from kalends.bootstrap import database_options, open_library
from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.operations.media.library import Library
from kalends.settings import InvalidSettings, Settings, read_settings
from kalends.store.database import Database, Transaction

SiteOption = Annotated[
    str, typer.Option("--site", help="Host name of the site; required if the server has several sites.")
]
Login = Annotated[str, typer.Argument(help="Login of the account.")]


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar per stage on standard error; yield the function that updates it."""
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        stages: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = progress.add_task(stage, total=total)
            progress.update(stages[stage], completed=done)

        yield report


def run_in_transaction(site: str, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
    """Run a command in one write transaction on a site."""

    async def in_transaction() -> Any:
        database = await Database.open(database_options(load_settings()))
        try:
            async with database.transaction(site, utc_now(), writing=True) as tx:
                return await work(tx)
        finally:
            await database.close()

    return run_command(in_transaction())


def run_command(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine; print an expected error as a message instead of a traceback."""
    try:
        return asyncio.run(work)
    except (ApiError, InvalidValue) as error:
        fail(error.text)


async def run_with_library(work: Callable[[Database, Library], Awaitable[Any]]) -> Any:
    settings = load_settings()
    database = await Database.open(database_options(settings))
    try:
        return await work(database, open_library(settings, image_workers=os.cpu_count()))
    finally:
        await database.close()


def load_settings() -> Settings:
    try:
        return read_settings()
    except InvalidSettings as error:
        fail(str(error))


def fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(1)
