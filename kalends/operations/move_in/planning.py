"""Plans of a move-in: compares a snapshot with what was imported before, and writes no record."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.imports.fields import list_fields
from kalends.core.imports.records import ImportedRecord
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.core.tec.exchanges import Exchanges
from kalends.core.tec.move_in import KINDS, MoveIn, MoveInWarning
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.operations.imports.stored_fields import read_stored_fields
from kalends.operations.move_in.normal_form import FILE_HASH, normalize
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Rows of a plan that are stored in one transaction.
BATCH: Final = 100
# The brake: no more records vanish at once unless a person agrees.
MAX_GONE: Final = 10
MAX_GONE_SHARE: Final = 0.2
# A record must be missing in so many runs before it goes to the trash.
MIN_ABSENCES: Final = 2
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
    """What a run does with one record."""

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
    counts: bool = True  # whether the input is another one than that of the last plan

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
    """Store the plan of a run and return its number. It is `unchanged` if there is nothing to do."""
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        source = await require_source(tx, source_id)
        items = {(row["kind"], row["identity"]): row for row in await imports.list_items(tx, source_id)}
        facts = orjson.loads(source["facts"])
        keep_ids = await choose_ids(tx, items, map_ids=bool(options.get("map_ids") or facts.get("map_ids")))
        stored = await _load_rows(tx, items)
        secret, is_new_input = tx.site.secret, source["input_hash"] != input_hash
    # Only commands plan a move-in, so nothing else waits while this computes.
    records = normalize(move_in, exchanges, secret, keep_ids=keep_ids)
    made = compare(
        records, move_in, items, stored, allow_deletions=source["allow_mass_deletion"], counts=is_new_input
    )
    options = {**options, "keep_ids": keep_ids, "kinds": made.count_by_kind()}
    return await _store_plan(database, site_id, source_id, made, options=options, input_hash=input_hash)


async def require_source(tx: Transaction, source_id: int) -> Row:
    source = await imports.find_source(tx, source_id)
    if source is None or source["kind"] != "tec":
        raise InvalidValue("There is no move-in {number}.", number=source_id)
    if source["state"] == "closed":
        raise InvalidValue("The move-in from {url} is over: `switch` has closed it.", url=source["url"])
    return source


async def choose_ids(tx: Transaction, items: Mapping[Key, Row], *, map_ids: bool) -> bool:
    """Return whether records keep their IDs; raise InvalidValue if the site has others and no consent is given."""
    if map_ids:
        return False
    own = {(kind, row["record_id"]) for (kind, _), row in items.items()}
    for table in TABLES:
        rows = await tx.fetch_all(Sql("SELECT id FROM " + table + " WHERE site_id = ? LIMIT 100", tx.site.id))
        if any((table, row["id"]) not in own for row in rows) and not tx.site.former_last_id:
            raise InvalidValue(
                "The site has records already, so those of the old site cannot keep their IDs. Use an empty site, or "
                "pass --map-ids to give them new ones."
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
    """Compare records with the items of earlier runs. `counts`: this input counts as another run without a record."""
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
    """Return the kind of a rejected record: only images have an address."""
    return "media" if identity in move_in.image_urls or identity.startswith("file-") else "events"


def _compare_record(record: ImportedRecord, item: Row | None) -> PlannedRow | None:
    """Return what to do with a record; None: nothing."""
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
    # JSON has no tuples; what was stored is compared with what would be stored.
    now = orjson.loads(imports.encode(now))
    return {
        name: {"stored": stored.get(name), "before": before.get(name), "now": now.get(name), "decision": "source"}
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name)
    }


def _find_problem(record: ImportedRecord) -> Message | None:
    """Return why a record cannot be stored, by the rules of the API."""
    kind = MEDIA if record.kind == "media" else BY_NAME.get(record.kind)
    if record.kind == "media" and record.columns.get(FILE_HASH) == EMPTY_HASH:
        return Message("The file of the image is missing in the snapshot.")
    if kind is None:
        return None
    try:
        read_params(kind.fields, _read_values(kind, record))
    except ApiError as error:
        return error.message
    return None


EMPTY_HASH: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def _read_values(kind: Kind, record: ImportedRecord) -> dict[str, Any]:
    names = {param.name for param in kind.fields}
    return {name: value for name, value in record.values.items() if name in names and value is not None}


def _is_edited(item: Row, stored: Mapping[str, Any] | None) -> bool:
    """Return whether a person has changed a field of the record since the last run."""
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
    """Return the stored fields of the records of all items; None for a record that was deleted here."""
    found: dict[Key, Mapping[str, Any] | None] = {}
    for kind in BY_NAME.values():
        own = {key: item for key, item in items.items() if key[0] == kind.name}
        ids = [item["record_id"] for item in own.values()]
        where = Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, ids)
        rows = {row["id"]: row for row in await tx.fetch_all(kind.select(where))} if ids else {}
        for key, item in own.items():
            row = rows.get(item["record_id"])
            names = [*orjson.loads(item["stored_values"]), "columns.status"]
            found[key] = None if row is None else read_stored_fields(kind, row, names)
    return found


async def _store_plan(
    database: SiteDatabase,
    site_id: int,
    source_id: int,
    made: Plan,
    *,
    options: Mapping[str, Any],
    input_hash: bytes,
) -> int:
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        run_id = await imports.add_run(
            tx,
            source_id,
            {
                "options": imports.encode(options),
                "warnings": imports.encode([_encode_warning(warning) for warning in made.warnings]),
                "counts": imports.encode(made.count()),
                "input_hash": input_hash,
            },
        )
        await imports.discard_plans(tx, source_id, run_id)
        if made.counts:
            await imports.note_absences(tx, source_id, [(*key, "") for key in made.absent])
            await imports.change_source(tx, source_id, {"input_hash": input_hash})
    numbered = list(enumerate(made.rows, 1))
    for begin in range(0, len(numbered), BATCH):
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await imports.add_rows(tx, run_id, [_encode_row(*entry) for entry in numbered[begin : begin + BATCH]])
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        state = "planned" if made.rows else "unchanged"
        await imports.change_run(tx, run_id, {"state": state, "planned_at": tx.now})
    return run_id


def _encode_warning(warning: MoveInWarning) -> dict[str, Any]:
    return {**imports.encode_message(warning.cause), "records": [list(entry) for entry in warning.records]}


def _encode_row(number: int, row: PlannedRow) -> dict[str, Any]:
    imported = orjson.loads(imports.encode_imported(row.record)) if row.record else None
    return {
        "number": number,
        "action": row.action,
        "kind": row.kind,
        "identity": row.identity,
        "title": row.title[:500],
        "record_id": row.record_id,
        "imported": imported,
        "changes": row.changes,
        "reasons": [imports.encode_message(reason) for reason in row.reasons],
        "state": "skipped" if row.action == "rejected" else row.state,
    }


def list_reasons(row: Row) -> Iterable[Message]:
    return [imports.decode_message(entry) for entry in orjson.loads(row["reasons"])]
