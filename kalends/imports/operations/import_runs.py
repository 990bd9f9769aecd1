"""Import runs: making a plan, discarding it, and deciding on waiting rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.imports.operations import plan
from kalends.imports.operations.import_rows import HELD, PLACES, list_links
from kalends.imports.operations.plan import FindCandidates, Key, Planner, PlanRow
from kalends.imports.operations.sources import fetch_run, fetch_source
from kalends.imports.rules.import_records import ParsedSource
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import Columns, decode_message, encode, encode_message
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase

ROWS_PER_STATEMENT: Final = 500
# Fetches less than this far apart count as one, so repeating a dry run does not count a missing record twice.
MIN_FETCH_GAP: Final = timedelta(minutes=10)
# If an unfinished run is older than this, it was interrupted.
STALE_AFTER: Final = timedelta(hours=1)
NEW_ACTIONS: Final = ("new", "duplicate")


@dataclass(frozen=True, slots=True)
class Draft:
    rows: Sequence[PlanRow]
    unchanged: int
    warnings: Sequence[Message]
    absent: Sequence[Key] | None  # items missing from the input; None if their absence must not be counted
    question: Message | None = None  # what a person must confirm before the plan can be applied


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
    """Add a run in the planning state. Raise ApiError if another run of the source is in progress."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(user_id)
        await fetch_source(tx, source_id)
        await import_tables.release_stale_runs(tx, source_id, now - STALE_AFTER)
        await require_idle(tx, source_id)
        values: Columns = {"user_id": user_id, "input_hash": input_hash, "options": encode(options or {})}
        return await import_tables.add_run(tx, source_id, values)


async def fill_run(
    database: SiteDatabase,
    site_id: int,
    run_id: int,
    parsed: ParsedSource,
    *,
    now: datetime,
    find_candidates: FindCandidates | None = None,
) -> None:
    try:
        async with database.transaction(site_id, now, writing=False) as tx:
            run = await fetch_run(tx, run_id)
            draft = await _draft_plan(tx, await fetch_source(tx, run["source_id"]), parsed, find_candidates)
        await _store_plan(database, site_id, run_id, draft, now)
    except ApiError as error:
        await fail_run(database, site_id, run_id, error.message, now)
        raise


async def require_idle(tx: Transaction, source_id: int) -> None:
    if await import_lists.find_busy_run(tx, source_id) is not None:
        raise errors.import_busy()


async def fail_run(database: SiteDatabase, site_id: int, run_id: int, reason: Message, now: datetime) -> None:
    async with database.transaction(site_id, now, writing=True) as tx:
        failure = encode(encode_message(reason))
        await import_tables.change_run(tx, run_id, {"state": "failed", "failure": failure, "finished_at": now})


async def discard(tx: Transaction, run: Row) -> None:
    """Discard a plan. Rows that have already been applied stay, and can be undone."""
    if run["state"] not in ("planning", "planned"):
        raise errors.import_state(run["state"])
    state = "applied" if run["first_revision"] is not None else "discarded"
    await import_tables.change_run(tx, run["id"], {"state": state, "finished_at": tx.now})


async def decide_row(tx: Transaction, run_id: int, number: int, *, is_same: bool) -> None:
    """Store a person's decision on a proposed match. Later plans will not propose a rejected match again.

    This also releases events that were waiting only for this venue or organizer.
    """
    run = await fetch_run(tx, run_id)
    rows = await import_tables.list_next_rows(tx, run_id, [number])
    if run["state"] != "planned" or not rows or rows[0]["action"] != "duplicate":
        raise errors.import_state(run["state"])
    row = rows[0]
    decided: Columns = {"action": "linked"}
    if not is_same:
        decided = {"action": "new", "record_id": None, "different_from": [*row["different_from"], row["record_id"]]}
    await import_tables.change_row(tx, row, decided)
    await _release(tx, run_id, row)
    if row["kind"] in PLACES.values():
        for held in await import_tables.list_linking_rows(tx, run_id, row["kind"], row["identity"]):
            await _release(tx, run_id, held)
    await update_counts(tx, run_id)


async def _release(tx: Transaction, run_id: int, row: Row) -> None:
    """Release a row to be applied with the plan, unless it waits for another decision."""
    imported = import_tables.decode(row["imported"]) if row["imported"] is not None else {}
    undecided = await find_undecided(tx, run_id, [row])
    reasons = [entry for entry in import_tables.decode(row["reasons"]) if entry["text"] != HELD]
    reasons += [encode_message(Message(HELD, title=other["title"])) for other in undecided]
    state = "waiting" if undecided or imported.get("question") is not None else "pending"
    await import_tables.change_row(tx, row, {"state": state, "reasons": encode(reasons)})


async def find_undecided(tx: Transaction, run_id: int, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of linked venues and organizers that still need a decision."""
    keys = {
        key
        for row in rows
        if row["imported"] is not None
        for key in list_links(import_tables.decode(row["imported"]))
    }
    return await import_tables.list_undecided_rows(tx, run_id, keys) if keys else []


async def require_decided(tx: Transaction, run_id: int, numbers: Collection[int]) -> None:
    """Raise ApiError if one of the rows first needs a decision about its venue or organizer."""
    chosen = await import_tables.list_next_rows(tx, run_id, numbers)
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
    """Return what a person must confirm before this run's plan can be applied."""
    options = import_tables.decode(run["options"])
    stored = options.get("question")
    return decode_message(stored) if stored is not None and not options.get("confirmed") else None


async def confirm_run(tx: Transaction, run: Row) -> None:
    options = {**import_tables.decode(run["options"]), "confirmed": True}
    await import_tables.change_run(tx, run["id"], {"options": encode(options)})


async def update_counts(tx: Transaction, run_id: int, **further: int) -> dict[str, int]:
    """Store and return the number of rows by action and state. `same` counts unchanged records that have no row."""
    run = await fetch_run(tx, run_id)
    stored: dict[str, int] = import_tables.decode(run["counts"])
    same = further.get("same", stored.get("same", 0))
    actions, states = await import_tables.count_rows(tx, run_id), await import_tables.count_states(tx, run_id)
    counts = {**actions, **{f"rows_{state}": number for state, number in states.items()}, "same": same}
    counts["unchanged"] = actions.get("unchanged", 0) + same
    await import_tables.change_run(tx, run_id, {"counts": encode(counts)})
    return counts


# Planning ------------------------------------------------------------------------------------


async def _draft_plan(
    tx: Transaction, source: Row, parsed: ParsedSource, find_candidates: FindCandidates | None
) -> Draft:
    items = {plan.key_of(item): item for item in await import_tables.list_items(tx, source["id"])}
    own_ids = {item["record_id"] for item in items.values() if item["kind"] == "events"}
    planner = Planner(tx, source, items, find_candidates, own_ids=own_ids)
    for row in await import_tables.list_differences(tx, source["id"]):
        planner.differences.setdefault(plan.key_of(row), set()).update(row["different_from"])
    await planner.plan_records(parsed.records)
    absent = plan.find_absent(parsed, items, planner.seen | planner.moved_from)
    is_new_fetch = source["last_success_at"] is None or tx.now - source["last_success_at"] >= MIN_FETCH_GAP
    counted = [plan.key_of(item) for item in absent] if is_new_fetch and plan.is_complete(parsed) else None
    gone, warnings = await plan.plan_absent(tx, source, parsed, items, absent if counted is not None else [])
    rows = [*(row for _, row in sorted(planner.rows.items())), *gone, *map(plan.reject_input, parsed.rejections)]
    if parsed.unused_columns:
        unused = ", ".join(parsed.unused_columns)
        warnings.append(Message("Columns that are not imported: {columns}", columns=unused))
    return Draft(rows, planner.unchanged, warnings, counted, _find_question(parsed, rows))


def _find_question(parsed: ParsedSource, rows: Iterable[PlanRow]) -> Message | None:
    """Return a question if times were probably lost: a time column is not imported, and new events start at 00:00."""
    columns = [header for header, has_times in parsed.unused_columns.items() if has_times]
    new = [row["imported"]["values"] for row in rows if row["kind"] == "events" and row["action"] in NEW_ACTIONS]
    are_at_midnight = all(str(values.get("start_date", ""))[10:] in ("", " 00:00:00") for values in new)
    if not columns or not new or not are_at_midnight:
        return None
    return Message(
        "All new events start at 00:00, but the column “{column}”, which contains times, is not imported. "
        "Choose what it means, or confirm that the times are right.",
        column=columns[0],
    )


async def store_rows(
    database: SiteDatabase, site_id: int, run_id: int, rows: Sequence[PlanRow], now: datetime
) -> None:
    """Store the rows of a plan in small transactions.

    They replace rows that an interrupted attempt left behind.
    """
    numbered = [{"number": number, **row} for number, row in enumerate(rows, 1)]
    async with database.transaction(site_id, now, writing=True) as tx:
        await import_tables.remove_rows(tx, run_id)
    for start in range(0, len(numbered), ROWS_PER_STATEMENT):
        async with database.transaction(site_id, now, writing=True) as tx:
            await import_tables.add_rows(tx, run_id, numbered[start : start + ROWS_PER_STATEMENT])


async def _store_plan(database: SiteDatabase, site_id: int, run_id: int, draft: Draft, now: datetime) -> None:
    await store_rows(database, site_id, run_id, draft.rows, now)
    async with database.transaction(site_id, now, writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] != "planning":
            return  # discarded during planning
        await import_tables.discard_plans(tx, run["source_id"], run_id)
        if draft.absent is not None:
            await import_tables.note_absences(tx, run["source_id"], draft.absent)
        await import_tables.change_source(
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
            options = {**import_tables.decode(run["options"]), "question": encode_message(draft.question)}
            ended = {**ended, "options": encode(options)}
        await import_tables.change_run(tx, run_id, {"state": state, "planned_at": now, "warnings": warnings, **ended})
        if not is_open:
            await remember_input(tx, run)


async def remember_input(tx: Transaction, run: Row) -> None:
    """Remember a run's input if the run left nothing to do, to skip planning when the same input comes again.

    If a record was missing for the first time or a row failed, the same input must be planned again.
    """
    if run["undoes"] is not None or await import_tables.has_unsettled_rows(tx, run["id"]):
        return
    options = import_tables.decode(run["options"])
    remembered: Columns = {
        "input_hash": run["input_hash"],
        "etag": options.get("etag", ""),
        "last_modified": options.get("last_modified", ""),
    }
    await import_tables.change_source(tx, run["source_id"], remembered)
