"""The work of the commands of imports: sources by address or file, plans, and progress."""

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer

from kalends.cli.errors import fail
from kalends.cli.import_tables import print_counts, print_rows
from kalends.cli.runtime import show_progress
from kalends.core.clock import utc_now
from kalends.core.errors import InvalidValue
from kalends.operations.imports import applying, jobs
from kalends.operations.imports.fetching import read_source_url
from kalends.operations.imports.inputs import Tools, choose_kind
from kalends.operations.imports.runs import confirm, read_question
from kalends.operations.imports.sources import fetch_run
from kalends.store import Row, import_lists, imports, users
from kalends.store.database import Transaction
from kalends.store.imports import decode_message
from kalends.store.site_database import SiteDatabase

MAX_ROWS = 20  # of each action


@dataclass(frozen=True, slots=True)
class Origin:
    """An address or a file, and the options of its source."""

    text: str
    owner: str
    status: str
    timezone: str
    minutes: int

    @property
    def is_address(self) -> bool:
        return bool(re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", self.text))

    @property
    def name(self) -> str:
        return self.text[:200] if self.is_address else Path(self.text).name[:200]


async def import_origin(
    database: SiteDatabase, tools: Tools, site_id: int, origin: Origin, *, is_applied: bool, is_confirmed: bool
) -> None:
    """Plan an import and show the plan; apply it if requested."""
    source_id = await _prepare_source(database, site_id, origin)
    with show_progress() as report:
        report("reading", 0, 1)
        run_id = await jobs.fetch_and_plan(
            database,
            tools,
            site_id,
            source_id,
            user_id=None,
            options={"input": "url" if origin.is_address else "file", "by_command": True},
        )
        report("reading", 1, 1)
    await show_run(database, site_id, run_id)
    run = await _fetch_run(database, site_id, run_id)
    if run["state"] == "failed":
        raise typer.Exit(1)
    if run["state"] != "planned":
        typer.echo("Nothing to do.")
    elif is_applied:
        await apply_plan(database, tools, site_id, run_id, None, is_confirmed=is_confirmed)
    else:
        typer.echo(f"Nothing was changed. Apply this plan with `kalends import apply {run_id}`.")


async def apply_plan(
    database: SiteDatabase,
    tools: Tools,
    site_id: int,
    run_id: int,
    numbers: list[int] | None,
    *,
    is_confirmed: bool = False,
) -> None:
    """Apply a plan with a progress bar, and print the result."""
    run = await _fetch_run(database, site_id, run_id)
    if is_confirmed:
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await confirm(tx, run)
    elif (question := read_question(run)) is not None:
        fail(f"{question} To apply the plan as it is, use `kalends import apply {run_id} --confirm`.")
    with show_progress() as report:
        counts = await applying.apply(
            database,
            site_id,
            run_id,
            numbers=numbers,
            library=tools.library,
            progress=lambda done, total: report("applying", done, total),
        )
    applied, failed = counts.get("rows_applied", 0), counts.get("rows_failed", 0)
    waiting = counts.get("rows_waiting", 0) + counts.get("rows_pending", 0)
    typer.echo(f"Run {run_id}: {applied:,} rows applied, {failed:,} failed, {waiting:,} waiting.")
    if failed:
        typer.echo(f"See the reasons with `kalends import show {run_id}`.")
        raise typer.Exit(1)


async def show_run(database: SiteDatabase, site_id: int, run_id: int, *, shows_all: bool = False) -> None:
    """Print a run with its counts and rows."""
    run = await _fetch_run(database, site_id, run_id)
    print_counts(run)
    if run["failure"] is not None:
        typer.echo(str(decode_message(imports.decode(run["failure"]))), err=True)
    for warning in imports.decode(run["warnings"]):
        typer.echo(f"Attention: {decode_message(warning)}")
    if (question := read_question(run)) is not None:
        typer.echo(f"Please check: {question}")
    print_rows(await _list_rows(database, site_id, run_id, shows_all=shows_all), run_id)


async def _list_rows(
    database: SiteDatabase, site_id: int, run_id: int, *, shows_all: bool
) -> list[tuple[list[Row], int]]:
    """Return the rows by action, and their number."""
    groups: list[tuple[list[Row], int]] = []
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        for action, count in sorted((await imports.count_rows(tx, run_id)).items()):
            limit = count if shows_all else MAX_ROWS
            groups.append((await imports.list_rows(tx, run_id, actions=[action], limit=limit), count))
    return groups


async def _fetch_run(database: SiteDatabase, site_id: int, run_id: int) -> Row:
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        return await fetch_run(tx, run_id)


def read_numbers(text: str) -> list[int] | None:
    """Parse numbers of rows such as 1,4,7-9; None if there are none."""
    numbers: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None:
            fail("--rows must be numbers such as 1,4,7-9.")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return numbers or None


# Sources -------------------------------------------------------------------------------------


async def _prepare_source(database: SiteDatabase, site_id: int, origin: Origin) -> int:
    """Find the source of an address or file, or add it; store the file."""
    content = None if origin.is_address else _read_file(Path(origin.text))
    try:
        url = read_source_url(origin.text) if origin.is_address else ""
    except InvalidValue as error:
        fail(f"{origin.text}: {error.text}")
    if origin.minutes and not (url and 15 <= origin.minutes <= 10080):
        fail("--every needs an address, and a number of minutes from 15 to 10080.")
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        source_id = await imports.find_source_by_origin(tx, url, origin.name)
        if source_id is None:
            source_id = await _add_source(tx, origin, url)
        if origin.minutes:
            next_run = tx.now + timedelta(minutes=origin.minutes)
            await imports.change_source(
                tx, source_id, {"interval_minutes": origin.minutes, "state": "active", "next_run_at": next_run}
            )
        if content is not None:
            await import_lists.save_file(tx, source_id, origin.name, content)
    return source_id


def _read_file(path: Path) -> bytes:
    from kalends.operations.imports.fetching import MAX_BYTES

    if not path.is_file():
        fail(f"There is no file {path}.")
    if path.stat().st_size > MAX_BYTES:
        fail(f"{path} exceeds {MAX_BYTES:,} bytes.")
    return path.read_bytes()


async def _add_source(tx: Transaction, origin: Origin, url: str) -> int:
    values: dict[Any, object] = {
        "kind": choose_kind(origin.text),
        "name": origin.name,
        "url": url,
        "owner_id": await _find_owner(tx, origin.owner),
        "default_status": origin.status,
        "timezone": origin.timezone,
    }
    return await imports.add_source(tx, values)


async def _find_owner(tx: Transaction, login: str) -> int:
    if login:
        account = await users.find_account(tx, login)
        if account is None:
            fail(f"There is no active account {login}.")
        return int(account["id"])
    rows = [row for row in await users.list_users(tx) if row["role"] == "administrator" and not row["disabled_at"]]
    if not rows:
        fail("There is no administrator. Name the account whose rights apply with --owner.")
    return min(int(row["id"]) for row in rows)
