"""Undoing a run as a plan of its own: fields that nobody has changed since get their former values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.core import errors
from kalends.core.messages import Message
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.kinds.series import SERIES
from kalends.kinds.snapshots import INTERNAL_COLUMNS, param_name
from kalends.operations.imports import undo_accounts
from kalends.operations.imports.authority import LOCAL, SOURCE
from kalends.operations.imports.planning import CHUNK
from kalends.operations.imports.runs import store_rows, update_counts
from kalends.operations.imports.sources import fetch_run
from kalends.store import Row, history, imports
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.imports import encode, encode_message
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Columns that follow from others: a difference is no edit by a person.
UNCOMPARED: Final = INTERNAL_COLUMNS | {"slug"}
# The kinds whose changes are undone.
UNDONE_KINDS: Final[Mapping[str, Kind]] = {**BY_NAME, MEDIA.name: MEDIA}
KEPT: Final = Message("People have changed it since, so it stays.")
UNDOABLE_STATES: Final = ("applied", "planned", "failed")


@dataclass(slots=True)
class Undone:
    """What a run has done to one record, in the form of the change log."""

    kind: str
    record_id: int
    is_created: bool = False
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    first_revision: int = 0
    last_revision: int = 0

    @property
    def was_trashed(self) -> bool:
        """Return whether the run created the record in the trash."""
        return bool(self.after.get("status") == "trash")

    def add(self, change: Row) -> None:
        """Add a change that is older than those before."""
        self.is_created = self.is_created or change["action"] == "create"
        self.before.update(_read(change["before"]))
        self.after = {**_read(change["after"]), **self.after}
        self.first_revision = change["revision"]
        self.last_revision = self.last_revision or change["revision"]


async def plan_undo(database: SiteDatabase, site_id: int, run_id: int, *, user_id: int | None, now: datetime) -> int:
    """Plan to undo a run; return the ID of the new run."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(user_id)
        run = await fetch_run(tx, run_id)
        _check(tx, run)
        undo_id = await imports.add_run(tx, run["source_id"], {"user_id": user_id, "undoes": run_id})
    await fill_undo(database, site_id, undo_id, now)
    return undo_id


async def fill_undo(database: SiteDatabase, site_id: int, undo_id: int, now: datetime) -> None:
    """Make and store the plan of a run that undoes another one."""
    async with database.transaction(site_id, now, writing=False) as tx:
        run = await fetch_run(tx, (await fetch_run(tx, undo_id))["undoes"])
        _check(tx, run)
        rows = [*await _draft_rows(tx, run), *await undo_accounts.plan_accounts(tx, run)]
    await store_rows(database, site_id, undo_id, rows, now)
    async with database.transaction(site_id, now, writing=True) as tx:
        await update_counts(tx, undo_id, same=0)
        await imports.change_run(tx, undo_id, {"state": "planned", "planned_at": now})


async def _draft_rows(tx: Transaction, run: Row) -> list[dict[str, Any]]:
    """Return the rows of the plan, the latest change first."""
    changes = await imports.list_run_changes(tx, run["id"])
    undone = collect(changes)
    plan = UndoPlan(
        tx,
        events=[entry["record_id"] for entry in changes if entry["kind"] == EVENTS.name],
        sent=await _read_sent_fields(tx, run["id"]),
        edited=await imports.list_edited_records(tx, run["first_revision"]),
    )
    records = await _load_records(tx, undone)
    rows = [await _plan_row(plan, entry, records.get((entry.kind, entry.record_id))) for entry in undone]
    return [row for row in rows if row is not None]


async def _load_records(tx: Transaction, undone: Sequence[Undone]) -> dict[tuple[str, int], Row]:
    """Load the records with few statements."""
    records: dict[tuple[str, int], Row] = {}
    for kind in dict.fromkeys(entry.kind for entry in undone):
        ids = [entry.record_id for entry in undone if entry.kind == kind]
        for start in range(0, len(ids), CHUNK):
            condition = Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, ids[start : start + CHUNK])
            rows = await tx.fetch_all(UNDONE_KINDS[kind].select(condition))
            records.update({(kind, row["id"]): row for row in rows})
    return records


def _check(tx: Transaction, run: Row) -> None:
    """Raise unless the run can be undone."""
    if run["undoes"] is not None or run["state"] not in UNDOABLE_STATES or run["first_revision"] is None:
        raise errors.import_state(run["state"])
    if run["first_revision"] <= tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)


def collect(changes: Sequence[Row]) -> list[Undone]:
    """Group changes, given newest first, by record. Dates that a change of a series has changed belong to it."""
    records: dict[tuple[str, int], Undone] = {}
    created_dates = {c["record_id"] for c in changes if c["cause"] is not None and c["action"] == "create"}
    for change in changes:
        is_date = change["kind"] == EVENTS.name and (
            change["cause"] is not None or change["record_id"] in created_dates
        )
        if change["kind"] in UNDONE_KINDS and not is_date:
            key = change["kind"], change["record_id"]
            records.setdefault(key, Undone(*key)).add(change)
    return list(records.values())


async def _read_sent_fields(tx: Transaction, run_id: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the fields that rows of the run have changed, by record."""
    sent: dict[tuple[str, int], dict[str, Any]] = {}
    number = 0
    while rows := await imports.list_rows(tx, run_id, after=number, limit=1000):
        for row in rows:
            if row["state"] == "applied" and row["record_id"] is not None:
                sent[row["kind"], row["record_id"]] = orjson.loads(row["changes"])
        number = rows[-1]["number"]
    return sent


# Planning ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What planning an undo needs to know of the run and of the changes since."""

    tx: Transaction
    events: Sequence[int]  # the events of the run
    sent: Mapping[tuple[str, int], dict[str, Any]]  # the fields that rows of the run have changed
    edited: Collection[tuple[str, int]]  # the records that people have changed since


async def _plan_row(plan: UndoPlan, undone: Undone, row: Row | None) -> dict[str, Any] | None:
    """Return the row for a record; None if nothing is left to undo."""
    if row is None or (undone.is_created and row.get("status") == "trash" and not undone.was_trashed):
        return None
    changes, reasons = await _compare(plan, undone, row)
    is_empty = not undone.is_created and not any(change["decision"] == SOURCE for change in changes.values())
    facts = {
        **{name: getattr(undone, name) for name in ("is_created", "before", "after")},
        **{name: getattr(undone, name) for name in ("first_revision", "last_revision")},
        "fields": plan.sent.get((undone.kind, undone.record_id), {}),
    }
    return {
        "action": "gone" if undone.is_created else "changed",
        "kind": undone.kind,
        "title": str(row.get("title") or row.get("name") or "")[:500],
        "record_id": undone.record_id,
        "record_revision": row["revision"],
        "imported": orjson.loads(encode(facts)),
        "changes": changes,
        "reasons": [encode_message(reason) for reason in reasons],
        "state": "skipped" if is_empty or (reasons and undone.is_created) else "pending",
    }


async def _compare(plan: UndoPlan, undone: Undone, row: Row) -> tuple[dict[str, dict[str, Any]], list[Message]]:
    """Return the fields that are restored or kept, and why a record cannot be undone."""
    kind = UNDONE_KINDS[undone.kind]
    if undone.is_created:
        if (undone.kind, undone.record_id) in plan.edited:
            return {}, [KEPT]
        return {}, await find_users(plan.tx, kind, undone.record_id, plan.events)
    if kind is SERIES:
        is_edited = await is_edited_since(plan.tx, undone)
        reason = Message("The series has been changed since. Undo the changes on its page.")
        return {"series": _describe(None, None, None, LOCAL if is_edited else SOURCE)}, [reason] if is_edited else []
    current = encode_row(row)
    kept = find_edited(undone, current)
    changes = {
        param_name(kind, name): _describe(
            current.get(name), undone.after.get(name), value, LOCAL if name in kept else SOURCE
        )
        for name, value in undone.before.items()
        if name not in INTERNAL_COLUMNS
    }
    reason = Message("Fields that people have changed since keep their values.")
    return changes, [reason] if kept else []


def find_edited(undone: Undone, current: Mapping[str, Any]) -> set[str]:
    """Return the columns that have changed since the run."""
    edited = {
        name
        for name, value in undone.after.items()
        if name not in UNCOMPARED and name in current and current[name] != value
    }
    times = {"start_local", "end_local", "timezone", "all_day", "start_fold", "end_fold"}
    return edited | (times if edited & times else set())


def _describe(stored: object, before: object, now: object, decision: str) -> dict[str, Any]:
    return {"stored": stored, "before": before, "now": now, "decision": decision}


async def find_users(tx: Transaction, kind: Kind, record_id: int, undone: Sequence[int] = ()) -> list[Message]:
    """Return the reason to keep a venue, organizer or term that events use, apart from those that are undone."""
    for link in (link for other in KINDS for link in other.links if link.kind == kind.name):
        count: int = await tx.fetch_value(
            Sql(
                "SELECT count(*) FROM "
                + link.table
                + " l JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id"
            )
            + Sql("WHERE l.site_id = ? AND l." + link.column + " = ? AND e.status <> 'trash'", tx.site.id, record_id)
            + Sql("AND NOT e.id = ANY(?)", list(undone))
        )
        if count:
            return [Message("It stays, because {count} events use it.", count=count)]
    return []


async def is_edited_since(tx: Transaction, undone: Undone) -> bool:
    later = await history.list_record_changes(tx, undone.kind, undone.record_id, after=undone.last_revision)
    return bool(later)


def _read(stored: str | None) -> dict[str, Any]:
    return orjson.loads(stored) if stored else {}


def encode_row(row: Row) -> dict[str, Any]:
    current: dict[str, Any] = orjson.loads(encode_columns(dict(row)))
    return current
