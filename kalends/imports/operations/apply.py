"""Applies the plans of imports, undo runs and move-ins in small transactions."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol

from kalends.calendar.access.operation_context import OperationContext
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.times import utc_now
from kalends.imports.operations.import_rows import list_needed
from kalends.imports.operations.import_runs import read_question, remember_input, require_decided, update_counts
from kalends.imports.operations.row_writing import Applied, apply_row
from kalends.imports.operations.sources import fetch_run, fetch_source, make_context, make_undo_context
from kalends.imports.operations.undo import apply_undo_row, restore_site
from kalends.imports.storage import import_tables
from kalends.imports.storage.import_tables import Columns, encode, encode_message
from kalends.media.adapters.library import FetchResult, Library
from kalends.media.images import PendingFetch, find_unfetched
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase

# Maximum number of seconds to keep the site locked; a single row can take longer.
MAX_SECONDS: Final = 0.08
# Fetch the images of this many rows together.
WINDOW: Final = 50

Progress = Callable[[int, int], None]
Images = Mapping[str, FetchResult | InvalidValue]
GetNow = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class ImportRun:
    database: SiteDatabase
    site_id: int
    run_id: int
    get_now: GetNow = utc_now
    numbers: Collection[int] | None = None  # selected rows; None means all pending rows

    def open(self, *, writing: bool) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(self.site_id, self.get_now(), writing=writing)


class RowWriter(Protocol):
    """Writes the rows of an import, undo or move-in."""

    async def fetch_images(self, run: ImportRun, rows: Sequence[Row]) -> Images:
        """Fetch images for the rows before the site is locked; return the result for each URL."""
        ...

    async def begin(self, tx: Transaction, run: Row, source: Row) -> OperationContext:
        """Lock the site and return the operation context."""
        ...

    async def write(self, context: OperationContext, source: Row, row: Row) -> Applied:
        """Apply one row. Raise ApiError on failure."""
        ...


async def apply(
    database: SiteDatabase,
    site_id: int,
    run_id: int,
    *,
    numbers: Collection[int] | None = None,
    progress: Progress | None = None,
    library: Library | None = None,
    get_now: GetNow = utc_now,
) -> dict[str, int]:
    """Apply the pending or selected rows of a plan; return the number of rows by action and state."""
    run = ImportRun(database, site_id, run_id, get_now, numbers)
    if numbers is not None:
        async with run.open(writing=False) as tx:
            await require_decided(tx, run_id, numbers)
            run = replace(run, numbers=await _add_linked(tx, run_id, numbers))
    await apply_rows(run, PlanWriter(library, await _begin(run)), progress)
    return await _finish(run)


async def apply_rows(run: ImportRun, writer: RowWriter, progress: Progress | None = None) -> None:
    """Apply a run's rows in transactions of about 0.1 s, so that other requests barely wait.

    After an interruption, the next call continues without repeating the rows already applied.
    """
    total, done = await _begin_progress(run), 0
    while window := await _read_window(run):
        images = await writer.fetch_images(run, window)
        left = [row["number"] for row in window]
        while left:
            applied = await _apply_some(run, writer, left, images)
            left, done = left[applied:], done + applied
            if progress is not None:
                progress(done, max(total, done))
            await asyncio.sleep(0)


async def _begin_progress(run: ImportRun) -> int:
    """Count the rows once, because there can be many. Return how many are left to apply."""
    async with run.open(writing=True) as tx:
        states = await import_tables.count_states(tx, run.run_id)
        settled = states.get("applied", 0) + states.get("failed", 0)
        left = await import_tables.count_next_rows(tx, run.run_id, run.numbers)
        progress = encode({"done": settled, "total": settled + left})
        await import_tables.change_run(tx, run.run_id, {"progress": progress})
        return left


async def _read_window(run: ImportRun) -> list[Row]:
    async with run.open(writing=False) as tx:
        return await import_tables.list_next_rows(tx, run.run_id, run.numbers, WINDOW)


async def _apply_some(run: ImportRun, writer: RowWriter, numbers: Sequence[int], images: Images) -> int:
    """Apply rows in one transaction until its time is up; return how many are done."""
    run_id = run.run_id
    async with run.open(writing=True) as tx:
        stored = await fetch_run(tx, run_id)
        source = await fetch_source(tx, stored["source_id"])
        rows = {row["number"]: row for row in await import_tables.list_next_rows(tx, run_id, numbers)}
        context = replace(await writer.begin(tx, stored, source), fetched_images=images)
        started, first = time.monotonic(), tx.changes.revision
        done = steps = 0
        row_first = first  # the revision before the current row
        while done < len(numbers):
            row = rows.get(numbers[done])
            # If the row is not done, the next step continues with it.
            if row is None or await _apply_one(context, writer, source, row, row_first):
                done, row_first = done + 1, tx.changes.revision
            steps += 1
            # Assume that the next step takes as long as the average so far.
            if (time.monotonic() - started) / steps * (steps + 1) > MAX_SECONDS:
                break
        stored_progress = import_tables.decode(stored["progress"])
        values: dict[Any, object] = {"progress": encode({**stored_progress, "done": stored_progress["done"] + done})}
        if tx.changes.revision > first:
            values["first_revision"] = stored["first_revision"] or first + 1
            values["last_revision"] = tx.changes.revision
        await import_tables.change_run(tx, run_id, values)
        return done


async def _apply_one(context: OperationContext, writer: RowWriter, source: Row, row: Row, first: int) -> bool:
    """Apply one row in a savepoint; a failure does not affect the others. Return whether the row is done.

    `first` is the revision before the row.
    """
    tx = context.transaction
    tx.changes.new_records = 0  # the limit per request applies to each row, even though rows share a transaction
    try:
        async with tx.savepoint():
            applied = await writer.write(context, source, row)
    except ApiError as error:
        values: Columns = {"state": "failed", "reasons": _add_reasons(row, [error.message])}
        await import_tables.change_row(tx, row, values)
        return True
    await import_tables.change_row(tx, row, _describe_applied(row, applied, first, tx))
    return applied.is_done


def _describe_applied(row: Row, applied: Applied, first: int, tx: Transaction) -> Columns:
    state = "applied" if applied.is_done else "pending"
    values: dict[Any, object] = {"state": state, "record_id": applied.record_id}
    if tx.changes.revision > first:
        values.update({"first_revision": row["first_revision"] or first + 1, "revision": tx.changes.revision})
    warnings = list(applied.warnings)
    if applied.changes is not None:
        warnings.append(Message("The record had changed since the plan, so it was compared again."))
        values["changes"] = encode({name: change.to_json() for name, change in applied.changes.items()})
    if warnings:
        values["reasons"] = _add_reasons(row, warnings)
    return values


def _add_reasons(row: Row, messages: Sequence[Message]) -> str:
    return encode([*import_tables.decode(row["reasons"]), *map(encode_message, messages)])


# Imports and undo ----------------------------------------------------------------------------


async def _begin(run: ImportRun) -> bool:
    """Mark the run as being applied. Return whether it undoes another run."""
    async with run.open(writing=True) as tx:
        stored = await fetch_run(tx, run.run_id)
        if stored["state"] not in ("planned", "applying"):
            raise errors.import_state(stored["state"])
        if (question := read_question(stored)) is not None:
            raise errors.import_unconfirmed(question)
        source = await fetch_source(tx, stored["source_id"])
        is_undo = stored["undoes"] is not None
        if source["kind"] == "tec" and not is_undo:  # a move-in needs its snapshot; undoing it does not
            raise ApiError(
                409,
                "rest-import-run-not-open",
                Message("Run {id} belongs to a move-in: use `kalends import tec apply {id}`.", id=run.run_id),
            )
        await import_tables.change_run(tx, run.run_id, {"state": "applying"})
        return is_undo


async def _add_linked(tx: Transaction, run_id: int, numbers: Collection[int]) -> set[int]:
    """Add the pending rows that the selected rows link to; otherwise, an event could lose its venue."""
    chosen, new = set(numbers), set(numbers)
    while new:
        rows = await import_tables.list_next_rows(tx, run_id, new)
        needed = [list_needed(import_tables.decode(row["imported"])) for row in rows if row["imported"]]
        keys = {key for entry in needed for key in entry}
        new = await import_tables.find_needed_rows(tx, run_id, keys) - chosen
        chosen |= new
    return chosen


async def _finish(run: ImportRun) -> dict[str, int]:
    async with run.open(writing=True) as tx:
        counts = await update_counts(tx, run.run_id)
        is_open = any(counts.get(f"rows_{state}") for state in ("pending", "waiting"))
        values: dict[Any, object] = {"state": "planned"} if is_open else {"state": "applied", "finished_at": tx.now}
        await import_tables.change_run(tx, run.run_id, values)
        if not is_open:
            stored = await fetch_run(tx, run.run_id)
            await remember_input(tx, stored)
            if stored["undoes"] is not None:
                await restore_site(tx, await fetch_run(tx, stored["undoes"]))
        return counts


@dataclass(frozen=True, slots=True)
class PlanWriter:
    library: Library | None
    is_undo: bool

    async def fetch_images(self, run: ImportRun, rows: Sequence[Row]) -> Images:
        library = self.library
        urls = [url for row in rows if isinstance(url := _find_image(row), str) and url.lower().startswith("http")]
        if library is None or not urls:
            return {}
        async with run.open(writing=False) as tx:
            pending = await find_unfetched(tx, urls)
        results = await asyncio.gather(*[_fetch_image(library, run.site_id, entry) for entry in pending])
        return {entry.url: result for entry, result in zip(pending, results, strict=True)}

    async def begin(self, tx: Transaction, run: Row, source: Row) -> OperationContext:
        context = await (make_undo_context if self.is_undo else make_context)(tx, source, self.library)
        await tx.lock_site(run["user_id"] or source["owner_id"])
        return context

    async def write(self, context: OperationContext, source: Row, row: Row) -> Applied:
        return await (apply_undo_row if self.is_undo else apply_row)(context, source, row)


def _find_image(row: Row) -> object:
    return import_tables.decode(row["imported"]).get("values", {}).get("image") if row["imported"] else None


async def _fetch_image(library: Library, site_id: int, pending: PendingFetch) -> FetchResult | InvalidValue:
    try:
        async with library.limiter.slot((site_id, "import")):
            return await library.fetch(site_id, pending.url, etag=pending.etag, last_modified=pending.last_modified)
    except InvalidValue as error:
        return error
    except ApiError as error:
        return InvalidValue("{reason}", reason=error.message)
