"""Implements the import commands: plans, progress, and tables in the terminal."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kalends.accounts.storage import user_tables
from kalends.calendar.rules.record_types import SCHEDULED
from kalends.cli.command_errors import fail
from kalends.cli.runtime import confirm, format_time, print_json, print_list, show_progress
from kalends.core.errors import InvalidValue
from kalends.core.times import utc_now
from kalends.imports import jobs as imports_jobs
from kalends.imports.operations import apply, import_runs
from kalends.imports.operations.import_runs import confirm_run, read_question
from kalends.imports.operations.requests import serialize_event
from kalends.imports.operations.sources import MAX_BYTES, Tools, choose_kind, fetch_run, read_source_url
from kalends.imports.operations.undo import plan_undo
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import decode_message
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase

ACTIONS: Final = ("new", "changed", "moved", "linked", "duplicate", "gone", "rejected", "unchanged")
STYLES: Final = {"new": "green", "changed": "yellow", "gone": "red", "rejected": "red", "duplicate": "magenta"}
MAX_VALUE: Final = 60
MAX_ROWS: Final = 20  # rows to show per action
# Source and run columns in the JSON output.
SOURCE_KEYS: Final = (
    *("id", "kind", "name", "url", "owner_login", "interval_minutes", "state"),
    *("last_success_at", "next_run_at", "failures"),
)
RUN_KEYS: Final = (
    *("id", "source_id", "source_name", "user_login", "state"),
    *("started_at", "planned_at", "finished_at", "undoes", "undone_by"),
)


@dataclass(frozen=True, slots=True)
class Origin:
    """An address or a file, and the options for the source created from it."""

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


@dataclass(frozen=True, slots=True)
class Terminal:
    database: SiteDatabase
    tools: Tools
    site_id: int

    async def import_origin(self, origin: Origin, *, is_applied: bool, is_confirmed: bool) -> None:
        source_id = await self._prepare_source(origin)
        options = {"input": "url" if origin.is_address else "file", "by_command": True}
        with show_progress() as report:
            report("reading", 0, 1)
            run_id = await imports_jobs.fetch_and_plan(
                self.database, self.tools, self.site_id, source_id, user_id=None, options=options
            )
            report("reading", 1, 1)
        run = await self.show_run(run_id)
        if run["state"] == "failed":
            raise typer.Exit(1)
        if run["state"] != "planned":
            typer.echo("Nothing to do.")
        elif is_applied:
            await self.apply_plan(run_id, None, is_confirmed=is_confirmed)
        else:
            typer.echo(f"Nothing was changed. Apply this plan with `kalends import apply {run_id}`.")

    async def apply_plan(self, run_id: int, numbers: list[int] | None, *, is_confirmed: bool = False) -> None:
        async with self.database.transaction(self.site_id, utc_now(), writing=is_confirmed) as tx:
            run = await fetch_run(tx, run_id)
            if is_confirmed:
                await confirm_run(tx, run)
        if not is_confirmed and (question := read_question(run)) is not None:
            fail(f"{question} To apply the plan as it is, use `kalends import apply {run_id} --confirm`.")
        with show_progress() as report:
            counts = await apply.apply(
                self.database,
                self.site_id,
                run_id,
                numbers=numbers,
                library=self.tools.library,
                progress=lambda done, total: report("applying", done, total),
            )
        applied, failed = counts.get("rows_applied", 0), counts.get("rows_failed", 0)
        waiting = counts.get("rows_waiting", 0) + counts.get("rows_pending", 0)
        typer.echo(f"Run {run_id}: {applied:,} rows applied, {failed:,} failed, {waiting:,} waiting.")
        if failed:
            typer.echo(f"See the reasons with `kalends import show {run_id}`.")
            raise typer.Exit(1)

    async def decide_row(self, run_id: int, number: int, *, is_same: bool) -> None:
        async with self.database.transaction(self.site_id, utc_now(), writing=True) as tx:
            await import_runs.decide_row(tx, run_id, number, is_same=is_same)
        typer.echo(f"Row {number} {'uses the existing record' if is_same else 'creates a new record'}.")

    async def undo_run(self, run_id: int, *, is_confirmed: bool) -> None:
        undo_id = await plan_undo(self.database, self.site_id, run_id, user_id=None, now=utc_now())
        await self.show_run(undo_id)
        try:
            confirm("Undo this?", yes=is_confirmed)
        except typer.Abort:
            async with self.database.transaction(self.site_id, utc_now(), writing=True) as tx:
                await import_runs.discard(tx, await fetch_run(tx, undo_id))
            raise
        await self.apply_plan(undo_id, None)

    async def list_imports(self, source_id: int | None, limit: int, *, as_json: bool) -> None:
        async with self.database.transaction(self.site_id, utc_now(), writing=False) as tx:
            sources = await import_lists.list_sources(tx)
            runs = await import_lists.list_runs(tx, source_id=source_id, limit=limit + 1)
        if as_json:
            encoded = [
                {**{key: row[key] for key in RUN_KEYS}, "counts": import_tables.decode(row["counts"])}
                for row in runs[:limit]
            ]
            print_json({"sources": [{key: row[key] for key in SOURCE_KEYS} for row in sources], "runs": encoded})
            return
        if sources:
            typer.echo("Sources: ID, kind, name, minutes, state, last success, failures")
            print_list(sources, describe_source)
        if runs:
            typer.echo("Runs: ID, source, started, state, changes")
            print_list(runs, describe_run, limit=limit)

    async def show_run(self, run_id: int, *, shows_all: bool = False) -> Row:
        async with self.database.transaction(self.site_id, utc_now(), writing=False) as tx:
            run = await fetch_run(tx, run_id)
            groups = [
                (
                    await import_lists.list_rows(
                        tx, run_id, actions=[action], limit=count if shows_all else MAX_ROWS
                    ),
                    count,
                )
                for action, count in sorted((await import_tables.count_rows(tx, run_id)).items())
            ]
        print_counts(run)
        if run["failure"] is not None:
            typer.echo(str(decode_message(import_tables.decode(run["failure"]))), err=True)
        for warning in import_tables.decode(run["warnings"]):
            typer.echo(f"Attention: {decode_message(warning)}")
        if (question := read_question(run)) is not None:
            typer.echo(f"Please check: {question}")
        for rows, count in groups:
            print_rows(rows, count, run_id)
        return run

    async def _prepare_source(self, origin: Origin) -> int:
        """Find or add the source for an address or a file, and store the file."""
        content = None if origin.is_address else _read_file(Path(origin.text))
        try:
            url = read_source_url(origin.text) if origin.is_address else ""
        except InvalidValue as error:
            fail(f"{origin.text}: {error.text}")
        if origin.minutes and not (url and 15 <= origin.minutes <= 10080):
            fail("--every needs an address, and a number of minutes from 15 to 10080.")
        async with self.database.transaction(self.site_id, utc_now(), writing=True) as tx:
            await tx.lock_site(None)
            source_id = await import_tables.find_source_by_origin(tx, url, origin.name)
            if source_id is None:
                source_id = await _add_source(tx, origin, url)
            if origin.minutes:
                next_run = tx.now + timedelta(minutes=origin.minutes)
                await import_tables.change_source(
                    tx, source_id, {"interval_minutes": origin.minutes, "state": "active", "next_run_at": next_run}
                )
            if content is not None:
                await import_lists.save_file(tx, source_id, origin.name, content)
        return source_id


def _read_file(path: Path) -> bytes:
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
    return await import_tables.add_source(tx, values)


async def _find_owner(tx: Transaction, login: str) -> int:
    if login:
        account = await user_tables.find_account(tx, login)
        if account is None:
            fail(f"There is no active account {login}.")
        return int(account["id"])
    rows = [
        row for row in await user_tables.list_users(tx) if row["role"] == "administrator" and not row["disabled_at"]
    ]
    if not rows:
        fail("There is no administrator. Name the account whose rights apply with --owner.")
    return min(int(row["id"]) for row in rows)


def describe_source(row: Row) -> list[object]:
    minutes, success = row["interval_minutes"] or "-", format_time(row["last_success_at"])
    return [row["id"], row["kind"], row["name"], minutes, row["state"], success, row["failures"]]


def describe_run(row: Row) -> list[object]:
    state = row["state"] if row["undoes"] is None else f"{row['state']} (undoes {row['undoes']})"
    return [row["id"], row["source_name"], format_time(row["started_at"]), state, _summarize(row)]


def print_counts(run: Row) -> None:
    what = f" (undoes run {run['undoes']})" if run["undoes"] is not None else ""
    _console().print(Text(f"Run {run['id']}{what}: {run['state']}. {_summarize(run)}"))


def print_rows(rows: Sequence[Row], count: int, run_id: int) -> None:
    """Print an action's first rows. `count` is the number of rows with this action."""
    table = Table(title_justify="left", show_edge=False, pad_edge=False)
    for column in ("Row", "Action", "Kind", "Title", "Line", "State", "Details"):
        table.add_column(column, justify="right" if column in ("Row", "Line") else "left")
    for row in rows:
        action = Text(row["action"], style=STYLES.get(row["action"], ""))
        cells = (row["number"], row["kind"], row["title"], row["line"] or "", row["state"])
        number, *others = [Text(_printable(str(cell))) for cell in cells]  # imported text is not markup
        table.add_row(number, action, *others, _describe(row))
    _console().print(table)
    if count > len(rows):
        _console().print(Text(f"… and {count - len(rows):,} more; `kalends import show {run_id} --all` lists them."))


def _describe(row: Row) -> Text:
    event = serialize_event(row)
    lines = [_describe_event(event)] if event is not None else []
    lines += [str(decode_message(reason)) for reason in import_tables.decode(row["reasons"])]
    for name, change in import_tables.decode(row["changes"]).items():
        kept = "" if change["decision"] == "source" else f" (kept: {change['decision']})"
        lines.append(f"{name}: {_shorten(change['stored'])} → {_shorten(change['now'])}{kept}")
    return Text(_printable("\n".join(lines)))


def _describe_event(event: Mapping[str, Any]) -> str:
    """Return an event's start, its status unless it is scheduled, and the number of dates if it is a series."""
    parts = [str(event["start_date"]), "all day" if event["all_day"] else ""]
    parts.append(event["event_status"] if event["event_status"] != SCHEDULED else "")
    parts.append("no end" if event["dates"] is None else f"{event['dates']:,} dates" if event["dates"] != 1 else "")
    return ", ".join(filter(None, parts))


def _shorten(value: Any) -> str:
    text = "-" if value in (None, "") else str(value).replace("\n", " ")
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _summarize(run: Row) -> str:
    counts = import_tables.decode(run["counts"])
    return ", ".join(f"{counts[name]:,} {name}" for name in ACTIONS if counts.get(name)) or "no records"


def _printable(text: str) -> str:
    """Remove control characters, because they could manipulate the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def _console() -> Console:
    console = Console()
    # A pipe has no width; a wide console keeps lines from wrapping.
    return console if console.is_terminal else Console(width=200)


def read_numbers(text: str) -> list[int] | None:
    """Parse row numbers such as 1,4,7-9. Return None if the text is empty."""
    numbers: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None:
            fail("--rows must be numbers such as 1,4,7-9.")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return numbers or None
