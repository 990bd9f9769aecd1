"""Shared command code: settings, transactions, progress bars, and lists as text or JSON.

Command modules import heavy dependencies late to keep `kalends --help` fast.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import typer

from kalends.cli.command_errors import fail
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from rich.console import Console

    from kalends.accounts.operations.sign_in_methods import Purpose
    from kalends.media.adapters.library import Library
    from kalends.settings import Settings
    from kalends.store.database import Transaction
    from kalends.store.site_database import SiteDatabase
    from kalends.store.sites import HostedSite


# Seconds to wait for a database connection.
CONNECT_TIMEOUT = 10.0
# Seconds between progress lines if the output is not a terminal.
PROGRESS_INTERVAL = 10.0
LOCAL_URL = "http://localhost:8000"

SiteOption = Annotated[
    str, typer.Option("--site", help="Host name or ID of the site; required if the server has several sites.")
]
CellOption = Annotated[str, typer.Option("--cell", help="Name of the cell, if there is a directory of several.")]
NewSiteCellOption = Annotated[
    str,
    typer.Option(
        "--cell", help="Cell of the new site; without it, the one with the fewest sites that accepts new ones."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Login = Annotated[str, typer.Argument(help="Login of the account.")]


class ProgressReport(Protocol):
    """Updates a stage's progress bar; `note` holds figures that are not part of a total."""

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None: ...


@contextmanager
def show_progress(interval: float = PROGRESS_INTERVAL) -> Iterator[ProgressReport]:
    """Show a progress bar per stage on standard error; yield the function that updates it.

    If standard error is not a terminal, print the current stage every `interval` seconds.
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
    """Print the current line at intervals from a thread, because a stage can run for a long time without progress."""
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
    async def in_transaction() -> Any:
        database = await open_database(load_settings())
        try:
            async with database.transaction(read_site(site), utc_now(), writing=True) as tx:
                return await work(tx)
        finally:
            await database.close()

    return asyncio.run(in_transaction())


def read_site(site: str) -> str | int:
    """Return the ID or host name passed as --site."""
    return int(site) if site.isdecimal() else site


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless --yes was passed; end the command if the answer is no."""
    if not yes:
        typer.confirm(question, abort=True)


async def run_with_library(work: Callable[["SiteDatabase", "Library"], Awaitable[Any]]) -> Any:
    """Run work with the database and the media library, using one image worker per CPU core."""
    from kalends.bootstrap import open_library

    settings = load_settings()
    database = await open_database(settings)
    try:
        return await work(database, open_library(settings, image_workers=os.cpu_count()))
    finally:
        await database.close()


async def open_database(settings: "Settings") -> "SiteDatabase":
    """Open the database, or all cells. Commands wait longer for a connection than requests do."""
    from kalends import bootstrap

    return await bootstrap.open_database(settings, min_pool_timeout=CONNECT_TIMEOUT)


def load_settings() -> "Settings":
    """Read the settings and set up logging; exit with a message if a setting is invalid."""
    from kalends.bootstrap import configure_logging
    from kalends.settings import InvalidSettings, read_settings

    try:
        settings = read_settings()
    except InvalidSettings as error:
        fail(str(error))
    configure_logging(settings.log_format)
    return settings


def check_extras(settings: "Settings") -> None:
    """Exit with a message if a setting needs an extra that is not installed."""
    from kalends.adapters.tracing import is_installed

    if settings.traces_url and not is_installed():
        fail("KALENDS_TRACES_URL needs OpenTelemetry: install kalends[otel].")


def refuse_cell(cell: str) -> None:
    """Exit with a message if --cell was passed but there is no directory."""
    if cell:
        fail("--cell needs KALENDS_DIRECTORY_URL and KALENDS_CELLS.")


def load_cell(cell: str) -> "Settings":
    """Return a cell's settings, or the settings for the only database if there is no directory."""
    settings = load_settings()
    if not settings.directory_url:
        refuse_cell(cell)
        return settings
    if cell not in settings.cells:
        names = ", ".join(settings.cells)
        fail(f"There is no cell {cell} in KALENDS_CELLS: {names}." if cell else f"Choose one with --cell: {names}.")
    return settings.for_cell(cell)


def load_site_cell(site: str) -> "Settings":
    """Return the settings for a site's cell, or for the only database if there is no directory."""
    from kalends.fleet.storage import directory

    settings = load_settings()
    if not settings.directory_url:
        return settings
    location = asyncio.run(directory.find_site(settings.directory_url, read_site(site.lower())))
    if location.cell not in settings.cells:
        fail(f"The directory names the cell {location.cell}, which is not in KALENDS_CELLS.")
    return settings.for_cell(location.cell)


def find_site(existing: "list[HostedSite]", site: str) -> "HostedSite":
    """Return the site with this ID or host name, or the only site if `site` is empty."""
    key = read_site(site.lower())
    found = [entry for entry in existing if key == entry.id or key in entry.hosts]
    if not site and len(existing) == 1:
        found = existing
    if not found:
        fail(f"There is no site {site}." if site else "There are several sites: choose one with --site.")
    return found[0]


async def create_link(tx: "Transaction", user_id: int, purpose: "Purpose") -> str:
    """Create a one-time link under the site's base URL, else the server's, else a local URL."""
    from kalends.accounts.operations import sign_in_methods

    base_url = tx.site.base_url or load_settings().base_url or LOCAL_URL
    return await sign_in_methods.create_link(tx, user_id, purpose, base_url)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Maximum number of entries; by default all.", min=1)]
SearchOption = Annotated[str, typer.Option("--search", help="Only entries that contain this text.")]
MAX_SITES = 20  # maximum sites to list after a change


def print_list[Entry](
    entries: Sequence[Entry],
    describe: Callable[[Entry], Sequence[object]],
    *,
    as_json: bool = False,
    limit: int | None = None,
) -> None:
    """Print entries as JSON, or as aligned lines with the cells that `describe` returns.

    If `entries` is longer than the limit, a message on standard error reports that there are more.
    """
    shown = entries[:limit]
    if as_json:
        print_json([to_dict(entry) for entry in shown])
    else:
        print_columns([describe(entry) for entry in shown])
    if len(shown) < len(entries):
        typer.echo(f"There are more than {limit:,} entries; a higher --limit shows them.", err=True)


def print_columns(lines: Sequence[Sequence[object]]) -> None:
    """Print lines of cells in aligned columns; numbers are right-aligned."""
    texts = [[_remove_controls(str(cell)) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for line, cells in zip(lines, texts, strict=True):
        padded = [
            text.rjust(width) if isinstance(cell, int) else text.ljust(width)
            for cell, text, width in zip(line, cells, widths, strict=True)
        ]
        typer.echo("  ".join(padded).rstrip())


def print_json(value: object) -> None:
    """Print a value as JSON with times in UTC, such as 2026-11-18T10:30:00Z."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS
    typer.echo(orjson.dumps(value, option=options, default=str).decode())


def to_dict(entry: object) -> dict[str, Any]:
    if is_dataclass(entry) and not isinstance(entry, type):
        return asdict(entry)
    return dict(cast("Mapping[str, Any]", entry))


def format_time(value: datetime | None, otherwise: str = "-") -> str:
    """Format a UTC time for a table, to the minute."""
    return f"{value:%Y-%m-%d %H:%M}" if value is not None else otherwise


def _remove_controls(text: str) -> str:
    """Replace control characters, which a terminal could interpret."""
    return "".join(character if character.isprintable() else " " for character in text)


def print_first_sites(owner_url: str) -> None:
    from kalends.store import sites

    found = asyncio.run(sites.list_sites(owner_url))
    entries = [{"id": entry.id, "cell": "", "name": entry.name, "hosts": entry.hosts} for entry in found[:MAX_SITES]]
    print_columns([describe_site(entry, is_only=len(found) == 1) for entry in entries])
    if len(found) > MAX_SITES:
        typer.echo(f"… and {len(found) - MAX_SITES:,} more; `kalends site list` shows them.")


def describe_site(entry: Mapping[str, Any], *, is_only: bool) -> list[object]:
    hosts = ", ".join(entry["hosts"]) or ("any host name" if is_only else "no host name")
    return [entry["id"], *([entry["cell"]] if entry["cell"] else []), entry["name"], hosts]


def format_age(seconds: float) -> str:
    """Format a duration in its largest unit, such as "31 min"."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
