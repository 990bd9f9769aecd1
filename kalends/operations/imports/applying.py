"""Applying a plan in transactions of about 0.1 s, so that readers and other writers hardly notice."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.operations.imports.linked_rows import list_needed
from kalends.operations.imports.row_writing import Applied, apply_row
from kalends.operations.imports.runs import read_question, remember_input, require_decided, update_counts
from kalends.operations.imports.sources import fetch_run, fetch_source, make_context, make_undo_context
from kalends.operations.imports.undo_accounts import restore_site
from kalends.operations.imports.undo_writing import apply_undo_row
from kalends.operations.media.images import PendingFetch, find_unfetched
from kalends.operations.media.library import FetchResult, Library
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.imports import encode, encode_message
from kalends.store.site_database import SiteDatabase

# The site is locked for about this long; one row alone may take longer.
MAX_SECONDS: Final = 0.08
# Rows whose images are fetched together.
WINDOW: Final = 50

Progress = Callable[[int, int], None]
Images = Mapping[str, FetchResult | InvalidValue]
GetNow = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Application:
    """A run that is being applied."""

    database: SiteDatabase
    site_id: int
    run_id: int
    numbers: Collection[int] | None  # the chosen rows; None: all that are pending
    library: Library | None
    get_now: GetNow

    def open(self, *, writing: bool) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(self.site_id, self.get_now(), writing=writing)


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
    """Apply the pending rows of a plan, or the chosen ones; return the number of rows by action and state.

    An interrupted call is continued by the next one: rows that have been applied are not repeated.
    """
    application = Application(database, site_id, run_id, numbers, library, get_now)
    if numbers is not None:
        async with application.open(writing=False) as tx:
            await require_decided(tx, run_id, numbers)
        application = replace(application, numbers=await _add_linked(application, numbers))
    total, done = await _begin(application), 0
    while window := await _read_window(application):
        images = await _fetch_images(application, window)
        left = [row["number"] for row in window]
        while left:
            applied = await _apply_some(application, left, images)
            left, done = left[applied:], done + applied
            if progress is not None:
                progress(done, max(total, done))
            await asyncio.sleep(0)
    return await _finish(application)


async def _begin(application: Application) -> int:
    """Mark the run and return the number of rows to apply."""
    run_id = application.run_id
    async with application.open(writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] not in ("planned", "applying"):
            raise errors.import_state(run["state"])
        if (question := read_question(run)) is not None:
            raise errors.import_unconfirmed(question)
        await _refuse_move_in(tx, run)
        await imports.change_run(tx, run_id, {"state": "applying"})
        if application.numbers is not None:
            return len(set(application.numbers))
        return (await imports.count_rows_by_state(tx, run_id)).get("pending", 0)


async def _add_linked(application: Application, numbers: Collection[int]) -> set[int]:
    """Return the chosen rows and those of the new records that they link to: an event would lose its venue."""
    chosen, new = set(numbers), set(numbers)
    async with application.open(writing=False) as tx:
        while new:
            rows = await imports.list_chosen_rows(tx, application.run_id, new, len(new))
            needed = [list_needed(imports.decode(row["imported"])) for row in rows if row["imported"]]
            keys = {key for entry in needed for key in entry}
            new = await imports.find_needed_rows(tx, application.run_id, keys) - chosen
            chosen |= new
    return chosen


async def _refuse_move_in(tx: Transaction, run: Row) -> None:
    """Refuse the plan of a move-in, which needs its snapshot; undoing one does not."""
    source = await fetch_source(tx, run["source_id"])
    if source["kind"] == "tec" and run["undoes"] is None:
        raise ApiError(
            409,
            "rest-import-run-not-open",
            Message("Run {id} belongs to a move-in: use `kalends import tec apply {id}`.", id=run["id"]),
        )


async def _read_window(application: Application) -> list[Row]:
    """Return the next rows to apply."""
    async with application.open(writing=False) as tx:
        if application.numbers is None:
            return await imports.list_pending_rows(tx, application.run_id, WINDOW)
        return await imports.list_chosen_rows(tx, application.run_id, application.numbers, WINDOW)


async def _finish(application: Application) -> dict[str, int]:
    """End the run, unless rows are left."""
    async with application.open(writing=True) as tx:
        counts = await update_counts(tx, application.run_id)
        is_open = any(counts.get(f"rows_{state}") for state in ("pending", "waiting"))
        values: dict[Any, object] = {"state": "planned"} if is_open else {"state": "applied", "finished_at": tx.now}
        await imports.change_run(tx, application.run_id, values)
        if not is_open:
            run = await fetch_run(tx, application.run_id)
            await remember_input(tx, run)
            if run["undoes"] is not None:
                await restore_site(tx, await fetch_run(tx, run["undoes"]))
        return counts


# Images --------------------------------------------------------------------------------------


async def _fetch_images(application: Application, rows: Sequence[Row]) -> Images:
    """Fetch the images of rows before the site is locked."""
    library, site_id = application.library, application.site_id
    urls = [url for row in rows if isinstance(url := _find_image(row), str) and url.lower().startswith("http")]
    if library is None or not urls:
        return {}
    async with application.open(writing=False) as tx:
        pending = await find_unfetched(tx, urls)
    results = await asyncio.gather(*[_fetch_image(library, site_id, entry) for entry in pending])
    return {entry.url: result for entry, result in zip(pending, results, strict=True)}


def _find_image(row: Row) -> object:
    return imports.decode(row["imported"]).get("values", {}).get("image") if row["imported"] else None


async def _fetch_image(library: Library, site_id: int, pending: PendingFetch) -> FetchResult | InvalidValue:
    try:
        async with library.limiter.slot((site_id, "import")):
            return await library.fetch(site_id, pending.url, etag=pending.etag, last_modified=pending.last_modified)
    except InvalidValue as error:
        return error
    except ApiError as error:
        return InvalidValue("{reason}", reason=error.message)


# Rows ----------------------------------------------------------------------------------------


async def _apply_some(application: Application, numbers: Sequence[int], images: Images) -> int:
    """Apply rows in one transaction until its time is over; return how many are done."""
    run_id = application.run_id
    async with application.open(writing=True) as tx:
        run = await fetch_run(tx, run_id)
        source = await fetch_source(tx, run["source_id"])
        make = make_context if run["undoes"] is None else make_undo_context
        context = replace(await make(tx, source, application.library), fetched_images=images)
        rows = {row["number"]: row for row in await imports.list_chosen_rows(tx, run_id, numbers, len(numbers))}
        await tx.lock_site(run["user_id"] or source["owner_id"])
        started, first = time.monotonic(), tx.changes.revision
        done = steps = 0
        row_first = first  # the revision before the current row
        while done < len(numbers):
            row = rows.get(numbers[done])
            # A row that is not done goes on with its next portion.
            if row is None or await _apply_one(context, source, run, row, row_first):
                done, row_first = done + 1, tx.changes.revision
            steps += 1
            # The next step will take about as long as the ones before.
            if (time.monotonic() - started) / steps * (steps + 1) > MAX_SECONDS:
                break
        await _note_progress(tx, run, first)
        return done


async def _apply_one(context: Any, source: Row, run: Row, row: Row, first: int) -> bool:
    """Apply a row, alone: if it fails, the others go on. Return whether it is done.

    `first` is the revision before the row.
    """
    tx: Transaction = context.transaction
    apply_this = apply_row if run["undoes"] is None else apply_undo_row
    try:
        async with tx.savepoint():
            applied = await apply_this(context, source, row)
    except ApiError as error:
        reasons = encode([*imports.decode(row["reasons"]), encode_message(error.message)])
        await imports.change_row(tx, run["id"], row["number"], {"state": "failed", "reasons": reasons})
        return True
    await imports.change_row(tx, run["id"], row["number"], _describe_applied(row, applied, first, tx))
    return applied.is_done


def _describe_applied(row: Row, applied: Applied, first: int, tx: Transaction) -> dict[Any, object]:
    state = "applied" if applied.is_done else "pending"
    values: dict[Any, object] = {"state": state, "record_id": applied.record_id}
    if tx.changes.revision > first:
        values.update({"first_revision": row["first_revision"] or first + 1, "revision": tx.changes.revision})
    warnings = list(applied.warnings)
    if applied.changes is not None:
        warnings.append(Message("The record had changed since the plan, so it was compared again."))
        values["changes"] = encode({name: change.to_json() for name, change in applied.changes.items()})
    if warnings:
        values["reasons"] = encode([*imports.decode(row["reasons"]), *map(encode_message, warnings)])
    return values


async def _note_progress(tx: Transaction, run: Row, first: int) -> None:
    states = await imports.count_rows_by_state(tx, run["id"])
    done = states.get("applied", 0) + states.get("failed", 0)
    progress = {"done": done, "total": done + states.get("pending", 0)}
    values: dict[Any, object] = {"progress": encode(progress)}
    if tx.changes.revision > first:
        values["first_revision"] = run["first_revision"] or first + 1
        values["last_revision"] = tx.changes.revision
    await imports.change_run(tx, run["id"], values)
