"""Shared by all commands: settings, transactions, progress bars, error messages.

The command modules import everything heavy late, so that `kalends --help` starts fast.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from kalends.cli.errors import fail
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from rich.console import Console

    from kalends.operations.media.library import Library
    from kalends.settings import Settings
    from kalends.store.database import Transaction
    from kalends.store.site_database import SiteDatabase

# Seconds that a command waits for a connection to the database.
CONNECT_TIMEOUT = 10.0
# Seconds between lines of progress if the output is no terminal.
PROGRESS_INTERVAL = 10.0

SiteOption = Annotated[
    str, typer.Option("--site", help="Host name or ID of the site; required if the server has several sites.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Login = Annotated[str, typer.Argument(help="Login of the account.")]


class ProgressReport(Protocol):
    """Updates the bar of a stage; the note has figures that are no share of a total."""

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None: ...


@contextmanager
def show_progress(interval: float = PROGRESS_INTERVAL) -> Iterator[ProgressReport]:
    """Show a progress bar per stage on standard error; yield the function that updates it.

    If that is no terminal, a line every `interval` seconds has the current stage.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    notes = TextColumn("{task.fields[note]}")
    console, lines = Console(stderr=True), ["starting"]
    with Progress(*columns, notes, console=console) as progress, _repeating_line(console, lines, interval):
        stages: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int, note: str = "") -> None:
            if stage not in stages:
                stages[stage] = progress.add_task(stage, total=total, note=note)
            progress.update(stages[stage], completed=done, total=total, note=note)
            lines[0] = f"{stage}: {done:,} of {total:,} {note}".rstrip()

        yield report


@contextmanager
def _repeating_line(console: "Console", lines: list[str], interval: float) -> Iterator[None]:
    """Print the current line at intervals in a thread, because a stage may take long without any progress."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(interval):
            print(lines[0], file=console.file, flush=True)

    thread = threading.Thread(target=repeat, daemon=True)
    if not console.is_terminal:
        thread.start()
    try:
        yield
    finally:
        is_over.set()


def run_in_transaction(site: str, work: Callable[["Transaction"], Awaitable[Any]]) -> Any:
    """Run a command in one write transaction on a site."""

    async def in_transaction() -> Any:
        database = await open_database(load_settings())
        try:
            async with database.transaction(read_site(site), utc_now(), writing=True) as tx:
                return await work(tx)
        finally:
            await database.close()

    return asyncio.run(in_transaction())


def read_site(site: str) -> str | int:
    """Return the ID or the host name that --site contains."""
    return int(site) if site.isdecimal() else site


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless --yes was passed; end the command without an answer."""
    if not yes:
        typer.confirm(question, abort=True)


async def run_with_library(work: Callable[["SiteDatabase", "Library"], Awaitable[Any]]) -> Any:
    """Run a command that uses the database and the media library, with one image worker per processor core."""
    from kalends.bootstrap import open_library

    settings = load_settings()
    database = await open_database(settings)
    try:
        return await work(database, open_library(settings, image_workers=os.cpu_count()))
    finally:
        await database.close()


async def open_database(settings: "Settings") -> "SiteDatabase":
    """Open the database, or all cells. A command waits longer for a connection than a request may."""
    from kalends import bootstrap

    return await bootstrap.open_database(settings, min_pool_timeout=CONNECT_TIMEOUT)


def load_settings() -> "Settings":
    """Read the settings and set up logging; end the command with a message if a setting is wrong."""
    from kalends.bootstrap import configure_logging
    from kalends.settings import InvalidSettings, read_settings

    try:
        settings = read_settings()
    except InvalidSettings as error:
        fail(str(error))
    configure_logging(settings.log_format)
    return settings


def check_extras(settings: "Settings") -> None:
    """End the command with a message if a setting needs an extra that is not installed."""
    from kalends.adapters.tracing import is_installed

    if settings.traces_url and not is_installed():
        fail("KALENDS_TRACES_URL needs OpenTelemetry: install kalends[otel].")
