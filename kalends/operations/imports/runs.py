"""Runs of imports: making a plan, discarding it, and deciding on rows that wait for a person."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.imports.records import ParsedSource
from kalends.core.messages import Message
from kalends.operations.imports import absences
from kalends.operations.imports.linked_rows import HELD, PLACES, list_links
from kalends.operations.imports.planning import FindCandidates, Key, Planner, PlanRow, key_of, reject_input
from kalends.operations.imports.sources import fetch_run, fetch_source
from kalends.store import Row, import_lists, imports
from kalends.store.database import Transaction
from kalends.store.imports import Columns, decode_message, encode, encode_message
from kalends.store.site_database import SiteDatabase

ROWS_PER_STATEMENT: Final = 500
# Fetches that follow each other faster count as one, so that repeating a dry run removes nothing.
MIN_FETCH_GAP: Final = timedelta(minutes=10)
# A run that began earlier and has not finished was interrupted.
STALE_AFTER: Final = timedelta(hours=1)
NEW_ACTIONS: Final = ("new", "duplicate")


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan before it is stored."""

    rows: Sequence[PlanRow]
    unchanged: int
    warnings: Sequence[Message]
    absent: Sequence[Key] | None  # the items that are not in the input; None: nothing is known about them
    question: Message | None = None  # what a person has to confirm before the plan is applied


async def plan(
    database: SiteDatabase,
    site_id: int,
    source_id: int,
    parsed: ParsedSource,
    *,
    user_id: int | None,
    now: datetime,
    input_hash: bytes | None = None,
    options: Mapping[str, Any] | None = None,
    find_candidates: FindCandidates | None = None,
) -> int:
    """Compare the input with what is stored, and store the plan; return the ID of the run."""
    run_id = await begin_run(
        database, site_id, source_id, now=now, user_id=user_id, input_hash=input_hash, options=options
    )
    await fill_run(database, site_id, run_id, parsed, now=now, find_candidates=find_candidates)
    return run_id


async def begin_run(
    database: SiteDatabase,
    site_id: int,
    source_id: int,
    *,
    now: datetime,
    user_id: int | None,
    input_hash: bytes | None = None,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Add a run that is being planned. Raise ApiError if another run of the source is under way."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(user_id)
        await fetch_source(tx, source_id)
        await imports.release_stale_runs(tx, source_id, now - STALE_AFTER)
        if await import_lists.find_busy_run(tx, source_id) is not None:
            raise errors.import_busy()
        values: Columns = {"user_id": user_id, "input_hash": input_hash, "options": encode(options or {})}
        return await imports.add_run(tx, source_id, values)


async def fill_run(
    database: SiteDatabase,
    site_id: int,
    run_id: int,
    parsed: ParsedSource,
    *,
    now: datetime,
    find_candidates: FindCandidates | None = None,
) -> None:
    """Make and store the plan of a run that has begun."""
    try:
        async with database.transaction(site_id, now, writing=False) as tx:
            run = await fetch_run(tx, run_id)
            draft = await _draft_plan(tx, await fetch_source(tx, run["source_id"]), parsed, find_candidates)
        await _store_plan(database, site_id, run_id, draft, now)
    except ApiError as error:
        await fail_run(database, site_id, run_id, error.message, now)
        raise


async def fail_run(database: SiteDatabase, site_id: int, run_id: int, reason: Message, now: datetime) -> None:
    """End a run with the cause of its failure."""
    async with database.transaction(site_id, now, writing=True) as tx:
        failure = encode(encode_message(reason))
        await imports.change_run(tx, run_id, {"state": "failed", "failure": failure, "finished_at": now})


async def discard(database: SiteDatabase, site_id: int, run_id: int, *, now: datetime) -> None:
    """Discard a plan. Rows that have been applied stay as they are."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        run = await fetch_run(tx, run_id)
        if run["state"] not in ("planning", "planned"):
            raise errors.import_state(run["state"])
        applied = (await imports.count_rows_by_state(tx, run_id)).get("applied", 0)
        await imports.change_run(tx, run_id, {"state": "applied" if applied else "discarded", "finished_at": now})


async def decide_duplicate(
    database: SiteDatabase, site_id: int, run_id: int, number: int, *, is_same: bool, now: datetime
) -> None:
    """Decide whether a record is the same as the event that the plan proposes, or a new one."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await decide_row(tx, run_id, number, is_same=is_same)


async def decide_row(tx: Transaction, run_id: int, number: int, *, is_same: bool) -> None:
    """Decide on a possible duplicate in a transaction. A difference is remembered, also by later plans.

    Events that wait only for the decision on their venue or organizer are applied with the plan.
    """
    run = await fetch_run(tx, run_id)
    rows = await imports.list_chosen_rows(tx, run_id, [number], 1)
    if run["state"] != "planned" or not rows or rows[0]["action"] != "duplicate":
        raise errors.import_state(run["state"])
    row = rows[0]
    decided: Columns = {"action": "linked"}
    if not is_same:
        decided = {"action": "new", "record_id": None, "different_from": [*row["different_from"], row["record_id"]]}
    await imports.change_row(tx, run_id, number, decided)
    await _release(tx, run_id, row)
    if row["kind"] in PLACES.values():
        for held in await imports.list_linking_rows(tx, run_id, row["kind"], row["identity"]):
            await _release(tx, run_id, held)
    await update_counts(tx, run_id)


async def _release(tx: Transaction, run_id: int, row: Row) -> None:
    """Let a row be applied with the plan, unless it waits for another decision."""
    imported = imports.decode(row["imported"]) if row["imported"] is not None else {}
    undecided = await find_undecided(tx, run_id, [row])
    reasons = [entry for entry in imports.decode(row["reasons"]) if entry["text"] != HELD]
    reasons += [encode_message(Message(HELD, title=other["title"])) for other in undecided]
    state = "waiting" if undecided or imported.get("question") is not None else "pending"
    await imports.change_row(tx, run_id, row["number"], {"state": state, "reasons": encode(reasons)})


async def find_undecided(tx: Transaction, run_id: int, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of venues and organizers that rows link to and about which a person has to decide."""
    keys = {key for row in rows if row["imported"] is not None for key in list_links(imports.decode(row["imported"]))}
    return await imports.list_undecided_rows(tx, run_id, keys) if keys else []


async def require_decided(tx: Transaction, run_id: int, numbers: Collection[int]) -> None:
    """Raise ApiError if one of the rows needs a decision on its venue or organizer first."""
    chosen = await imports.list_chosen_rows(tx, run_id, numbers, len(numbers))
    undecided = await find_undecided(tx, run_id, [row for row in chosen if row["action"] != "duplicate"])
    if undecided:
        row = undecided[0]
        raise errors.invalid(
            "rows",
            "decide first whether row {row}, “{title}”, uses the existing record.",
            row=row["number"],
            title=row["title"],
        )


def read_question(run: Row) -> Message | None:
    """Return what a person has to confirm before the plan of a run is applied."""
    options = imports.decode(run["options"])
    stored = options.get("question")
    return decode_message(stored) if stored is not None and not options.get("confirmed") else None


async def confirm(tx: Transaction, run: Row) -> None:
    """Remember that a person has confirmed the plan."""
    options = {**imports.decode(run["options"]), "confirmed": True}
    await imports.change_run(tx, run["id"], {"options": encode(options)})


async def update_counts(tx: Transaction, run_id: int, **further: int) -> dict[str, int]:
    """Store the number of rows by action and by state, and return them. Unchanged records have no rows."""
    run = await fetch_run(tx, run_id)
    stored: dict[str, int] = imports.decode(run["counts"])
    same = further.get("same", stored.get("same", 0))
    actions, states = await imports.count_rows(tx, run_id), await imports.count_rows_by_state(tx, run_id)
    counts = {**actions, **{f"rows_{state}": number for state, number in states.items()}, "same": same}
    counts["unchanged"] = actions.get("unchanged", 0) + same
    await imports.change_run(tx, run_id, {"counts": encode(counts)})
    return counts


# Planning ------------------------------------------------------------------------------------


async def _draft_plan(
    tx: Transaction, source: Row, parsed: ParsedSource, find_candidates: FindCandidates | None
) -> Draft:
    items = {key_of(item): item for item in await imports.list_items(tx, source["id"])}
    own_ids = {item["record_id"] for item in items.values() if item["kind"] == "events"}
    planner = Planner(tx, source, items, find_candidates, own_ids=own_ids)
    for row in await imports.list_differences(tx, source["id"]):
        planner.differences.setdefault(key_of(row), set()).update(row["different_from"])
    await planner.plan_records(parsed.records)
    absent = absences.find_absent(parsed, items, planner.seen | planner.moved_from)
    is_new_fetch = source["last_success_at"] is None or tx.now - source["last_success_at"] >= MIN_FETCH_GAP
    counted = [key_of(item) for item in absent] if is_new_fetch and absences.is_complete(parsed) else None
    gone, warnings = await absences.plan_absent(tx, source, parsed, items, absent if counted is not None else [])
    rows = [*(row for _, row in sorted(planner.rows.items())), *gone, *map(reject_input, parsed.rejections)]
    if parsed.unused_columns:
        unused = ", ".join(parsed.unused_columns)
        warnings.append(Message("Columns that are not imported: {columns}", columns=unused))
    return Draft(rows, planner.unchanged, warnings, counted, _find_question(parsed, rows))


def _find_question(parsed: ParsedSource, rows: Iterable[PlanRow]) -> Message | None:
    """Return what to ask if times were probably lost: a column of times is unused, and new events start at 00:00."""
    columns = [header for header, has_times in parsed.unused_columns.items() if has_times]
    new = [row["imported"]["values"] for row in rows if row["kind"] == "events" and row["action"] in NEW_ACTIONS]
    if not columns or not new or not all(_starts_at_midnight(values) for values in new):
        return None
    return Message(
        "All new events start at 00:00, but the column “{column}”, which contains times, is not imported. "
        "Choose what it means, or confirm that the times are right.",
        column=columns[0],
    )


def _starts_at_midnight(values: Mapping[str, Any]) -> bool:
    return str(values.get("start_date", ""))[10:] in ("", " 00:00:00")


async def store_rows(
    database: SiteDatabase, site_id: int, run_id: int, rows: Sequence[PlanRow], now: datetime
) -> None:
    """Store the rows of a plan in small transactions, in place of those of an attempt that was interrupted."""
    numbered = [{"number": number, **row} for number, row in enumerate(rows, 1)]
    async with database.transaction(site_id, now, writing=True) as tx:
        await imports.remove_rows(tx, run_id)
    for start in range(0, len(numbered), ROWS_PER_STATEMENT):
        async with database.transaction(site_id, now, writing=True) as tx:
            await imports.add_rows(tx, run_id, numbered[start : start + ROWS_PER_STATEMENT])


async def _store_plan(database: SiteDatabase, site_id: int, run_id: int, draft: Draft, now: datetime) -> None:
    """Store the rows; the last transaction completes the plan."""
    await store_rows(database, site_id, run_id, draft.rows, now)
    async with database.transaction(site_id, now, writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] != "planning":
            return  # It was discarded meanwhile.
        await imports.discard_plans(tx, run["source_id"], run_id)
        if draft.absent is not None:
            await imports.note_absences(tx, run["source_id"], draft.absent)
        await imports.change_source(
            tx,
            run["source_id"],
            {"last_success_at": now, "failures": 0, "input_hash": None, "etag": "", "last_modified": ""},
        )
        counts = await update_counts(tx, run_id, same=draft.unchanged)
        is_open = any(counts.get(f"rows_{state}") for state in ("pending", "waiting"))
        state = "planned" if is_open else "unchanged"
        ended: Columns = {} if is_open else {"finished_at": now}
        warnings = encode([encode_message(message) for message in draft.warnings])
        if draft.question is not None:
            options = {**imports.decode(run["options"]), "question": encode_message(draft.question)}
            ended = {**ended, "options": encode(options)}
        await imports.change_run(tx, run_id, {"state": state, "planned_at": now, "warnings": warnings, **ended})
        if not is_open:
            await remember_input(tx, run)


async def remember_input(tx: Transaction, run: Row) -> None:
    """Remember the input of a run that left nothing to do, so that the same input needs no plan.

    A record that is missing for the first time needs another look at the same input, and so does a failed row.
    """
    if run["undoes"] is not None or await imports.has_unsettled_rows(tx, run["id"]):
        return
    options = imports.decode(run["options"])
    remembered: Columns = {
        "input_hash": run["input_hash"],
        "etag": options.get("etag", ""),
        "last_modified": options.get("last_modified", ""),
    }
    await imports.change_source(tx, run["source_id"], remembered)
