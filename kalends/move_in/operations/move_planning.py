"""Plans a move-in by comparing a snapshot with earlier imports. Planning writes no records."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.core.times import utc_now
from kalends.imports.operations.import_rows import load_rows, read_stored_fields
from kalends.imports.operations.import_runs import store_rows
from kalends.imports.rules.import_records import ImportedRecord, list_fields
from kalends.imports.storage import import_tables
from kalends.imports.storage.import_tables import encode_message
from kalends.move_in.operations.old_snapshot import FILE_HASH, normalize
from kalends.move_in.rules.exchanges import Exchanges
from kalends.move_in.rules.old_records import KINDS, MoveIn, MoveInWarning
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Safety limit: if more records disappear at once, a person must confirm the deletions.
MAX_GONE: Final = 10
MAX_GONE_SHARE: Final = 0.2
# A record moves to the trash once it has been missing in this many runs.
MIN_ABSENCES: Final = 2
EMPTY_HASH: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
POST_KINDS: Final = ("venues", "organizers", "events")
TABLES: Final = ("events", "series", "venues", "organizers", "media", "categories", "tags")
FIRST_ABSENCE: Final = (
    "It was missing for the first time; if it is missing in the next run, too, it goes to the trash."
)
BRAKE: Final = (
    "{number} records are missing at once, so nothing is deleted without consent. Check the old site, then run "
    "`apply` with --accept-deletions."
)
LOCAL_EDIT: Final = "It was edited here since the last run; the fields that change on the old site replace the edit."

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PlannedRow:
    action: str
    record: ImportedRecord | None
    kind: str
    identity: str
    title: str = ""
    record_id: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reasons: Sequence[Message] = ()
    state: str = "pending"


@dataclass(frozen=True, slots=True)
class Plan:
    rows: Sequence[PlannedRow]
    unchanged: Mapping[str, int]
    warnings: Sequence[MoveInWarning]
    absent: Collection[Key] = ()
    counts: bool = True  # whether the input differs from the last plan's input

    def count(self) -> dict[str, int]:
        counts = Counter(row.action for row in self.rows)
        return {**counts, "unchanged": sum(self.unchanged.values())}

    def count_by_kind(self) -> dict[str, dict[str, int]]:
        counts = {kind: Counter({"unchanged": self.unchanged.get(kind, 0)}) for kind in KINDS}
        for row in self.rows:
            counts.setdefault(row.kind, Counter())[row.action] += 1
        return {kind: dict(counter) for kind, counter in counts.items()}


async def plan(
    database: SiteDatabase,
    site_id: int,
    source_id: int,
    move_in: MoveIn,
    exchanges: Exchanges,
    *,
    options: Mapping[str, Any],
    input_hash: bytes,
) -> int:
    """Store a run's plan and return its number. If there is nothing to do, its state is `unchanged`."""
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        source = await require_source(tx, source_id)
        items = {(row["kind"], row["identity"]): row for row in await import_tables.list_items(tx, source_id)}
        facts = orjson.loads(source["facts"])
        keep_ids = await choose_ids(tx, items, map_ids=bool(options.get("map_ids") or facts.get("map_ids")))
        stored = await _load_rows(tx, items)
        secret, is_new_input = tx.site.secret, source["input_hash"] != input_hash
    # Only commands plan a move-in, so this long computation does not block any requests.
    records = normalize(move_in, exchanges, secret, keep_ids=keep_ids)
    made = compare(
        records, move_in, items, stored, allow_deletions=source["allow_mass_deletion"], counts=is_new_input
    )
    options = {**options, "keep_ids": keep_ids, "kinds": made.count_by_kind()}
    return await _store_plan(database, site_id, source_id, made, options=options, input_hash=input_hash)


async def require_source(tx: Transaction, source_id: int) -> Row:
    source = await import_tables.find_source(tx, source_id)
    if source is None or source["kind"] != "tec":
        raise InvalidValue("There is no move-in {number}.", number=source_id)
    if source["state"] == "closed":
        raise InvalidValue("The move-in from {url} is over: `switch` has closed it.", url=source["url"])
    return source


async def choose_ids(tx: Transaction, items: Mapping[Key, Row], *, map_ids: bool) -> bool:
    """Return whether records keep their IDs. Without `map_ids`, raise InvalidValue if the site has other records."""
    if map_ids:
        return False
    own = {(kind, row["record_id"]) for (kind, _), row in items.items()}
    for table in TABLES:
        rows = await tx.fetch_all(Sql("SELECT id FROM " + table + " WHERE site_id = ? LIMIT 100", tx.site.id))
        if any((table, row["id"]) not in own for row in rows) and not tx.site.former_last_id:
            raise InvalidValue(
                "The site has records already, so the old site’s records cannot keep their IDs. Use an empty site, "
                "or pass --map-ids to give them new ones."
            )
    return True


# Comparison -----------------------------------------------------------------------------------


def compare(
    records: Sequence[ImportedRecord],
    move_in: MoveIn,
    items: Mapping[Key, Row],
    stored: Mapping[Key, Mapping[str, Any] | None],
    *,
    allow_deletions: bool = False,
    counts: bool = True,
) -> Plan:
    """Compare records with the items of earlier runs.

    With `counts`, count another absence for each missing record.
    """
    rows: list[PlannedRow] = []
    unchanged: Counter[str] = Counter()
    edited: list[Key] = []
    for record in records:
        key = (record.kind, record.identity)
        item = items.get(key) if stored.get(key, {}) is not None else None
        row = _compare_record(record, item)
        if item is not None and _is_edited(item, stored.get(key)):
            edited.append(key)
        if row is None:
            unchanged[record.kind] += 1
        else:
            rows.append(row)
    rows += [
        PlannedRow(
            "rejected", None, _find_kind(entry.identity, move_in), entry.identity, entry.title, reasons=[entry.reason]
        )
        for entry in move_in.rejections
    ]
    seen = {(record.kind, record.identity) for record in records} | {(row.kind, row.identity) for row in rows}
    absent = [key for key in items if key not in seen]
    gone, warnings = _plan_gone(absent, items, stored, len(items), allow=allow_deletions, counts=counts)
    if edited:
        warnings.append(MoveInWarning(Message(LOCAL_EDIT), edited))
    return Plan([*rows, *gone], unchanged, [*move_in.warnings, *warnings], absent, counts)


def _find_kind(identity: str, move_in: MoveIn) -> str:
    """Return a rejected record's kind.

    An image's identity is in `image_urls` or begins with `file-`; any other identity belongs to an event.
    """
    return "media" if identity in move_in.image_urls or identity.startswith("file-") else "events"


def _compare_record(record: ImportedRecord, item: Row | None) -> PlannedRow | None:
    """Return the action for a record, or None if nothing changes."""
    problem = _find_problem(record)
    common = (record.kind, record.identity, record.title)
    if problem is not None:
        return PlannedRow("rejected", None, *common, reasons=[problem])
    if item is None:
        return PlannedRow("new", record, *common, reasons=record.warnings)
    changes = find_changes(item, list_fields(record))
    if not changes:
        return None
    return PlannedRow("changed", record, *common, item["record_id"], changes, record.warnings)


def find_changes(item: Row, now: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields that have changed at the source since the last run."""
    before, stored = orjson.loads(item["source_values"]), orjson.loads(item["stored_values"])
    # JSON has no tuples, so convert the new values before the comparison with stored values.
    now = orjson.loads(import_tables.encode(now))
    return {
        name: {"stored": stored.get(name), "before": before.get(name), "now": now.get(name), "decision": "source"}
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name)
    }


def _find_problem(record: ImportedRecord) -> Message | None:
    """Return why the API would reject a record, or None if it would accept the record."""
    kind = MEDIA if record.kind == "media" else BY_NAME.get(record.kind)
    if record.kind == "media" and record.columns.get(FILE_HASH) == EMPTY_HASH:
        return Message("The file of the image is missing in the snapshot.")
    if kind is None:
        return None
    try:
        names = {param.name for param in kind.fields}
        read_params(kind.fields, {k: v for k, v in record.values.items() if k in names and v is not None})
    except ApiError as error:
        return error.message
    return None


def _is_edited(item: Row, stored: Mapping[str, Any] | None) -> bool:
    """Return whether a person has edited the record since the last run."""
    before: Mapping[str, Any] = orjson.loads(item["stored_values"])
    ignored = ("columns.modified_utc",)
    now = stored or {}
    return any(now[name] != value for name, value in before.items() if name not in ignored and name in now)


# Records that are gone --------------------------------------------------------------------------


def _plan_gone(
    absent: Sequence[Key],
    items: Mapping[Key, Row],
    stored: Mapping[Key, Mapping[str, Any] | None],
    total: int,
    *,
    allow: bool,
    counts: bool,
) -> tuple[list[PlannedRow], list[MoveInWarning]]:
    posts = [key for key in absent if key[0] in POST_KINDS and _is_present(stored.get(key))]
    others = [key for key in absent if key[0] not in POST_KINDS]
    is_braked = not allow and (len(posts) > MAX_GONE or len(posts) > MAX_GONE_SHARE * total)
    rows: list[PlannedRow] = []
    for key in posts:
        absences = items[key]["absences"] + (1 if counts else 0)
        reasons = [Message(FIRST_ABSENCE)] if absences < MIN_ABSENCES else []
        reasons += [Message(BRAKE, number=len(posts))] if is_braked else []
        title = str(orjson.loads(items[key]["source_values"]).get("title", key[1]))
        state = "waiting" if reasons else "pending"
        rows.append(PlannedRow("gone", None, *key, title, items[key]["record_id"], {}, reasons, state))
    warnings = [MoveInWarning(Message("It is gone on the old site and stays here."), others)] if others else []
    return rows, warnings


def _is_present(stored: Mapping[str, Any] | None) -> bool:
    return stored is not None and stored.get("columns.status") != "trash"


# Rows -------------------------------------------------------------------------------------------


async def _load_rows(tx: Transaction, items: Mapping[Key, Row]) -> dict[Key, Mapping[str, Any] | None]:
    """Return the stored fields of each item's record, or None if the record has been deleted."""
    found: dict[Key, Mapping[str, Any] | None] = {}
    for kind in BY_NAME.values():
        own = {key: item for key, item in items.items() if key[0] == kind.name}
        ids = [item["record_id"] for item in own.values()]
        rows = await load_rows(tx, kind, ids) if ids else {}
        for key, item in own.items():
            row = rows.get(item["record_id"])
            names = [*orjson.loads(item["stored_values"]), "columns.status"]
            found[key] = None if row is None else read_stored_fields(kind, row, names)
    return found


async def _store_plan(
    database: SiteDatabase, site_id: int, source_id: int, made: Plan, *, options: Mapping[str, Any], input_hash: bytes
) -> int:
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        run_id = await import_tables.add_run(
            tx,
            source_id,
            {
                "options": import_tables.encode(options),
                "warnings": import_tables.encode(
                    [{**encode_message(warning.cause), "records": warning.records} for warning in made.warnings]
                ),
                "counts": import_tables.encode(made.count()),
                "input_hash": input_hash,
            },
        )
        await import_tables.discard_plans(tx, source_id, run_id)
        if made.counts:
            await import_tables.note_absences(tx, source_id, [(*key, "") for key in made.absent])
            await import_tables.change_source(tx, source_id, {"input_hash": input_hash})
    await store_rows(database, site_id, run_id, [_encode_row(row) for row in made.rows], utc_now())
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        state = "planned" if made.rows else "unchanged"
        await import_tables.change_run(tx, run_id, {"state": state, "planned_at": tx.now})
    return run_id


def _encode_row(row: PlannedRow) -> dict[str, Any]:
    return {
        "action": row.action,
        "kind": row.kind,
        "identity": row.identity,
        "title": row.title[:500],
        "record_id": row.record_id,
        "imported": import_tables.encode_imported(row.record) if row.record else None,
        "changes": row.changes,
        "reasons": [encode_message(reason) for reason in row.reasons],
        "state": "skipped" if row.action == "rejected" else row.state,
    }
