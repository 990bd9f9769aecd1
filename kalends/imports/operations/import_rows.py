"""Compares imported records with stored ones and decides on each field, both when planning and when applying."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.record_history import to_public
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.sanitize import clean_name, fold
from kalends.core.slugs import normalize_lookup
from kalends.imports.rules.import_places import PlaceIndex, StoredPlace, describe, make_linked
from kalends.imports.rules.import_records import COLUMN_PREFIX, TIME_FIELDS, ImportedRecord, group_of, list_fields
from kalends.imports.storage import import_tables
from kalends.imports.storage.import_tables import encode, encode_message
from kalends.store import Row
from kalends.store.change_log import encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# The column that stores each time parameter of a series. `add_dates` and `remove_dates` are missing, because stored
# dates can come from people as well as from the source.
SERIES_COLUMNS: Final[Mapping[str, str]] = dict.fromkeys(TIME_FIELDS, "parts")
# Parameters that set the same column as another parameter.
ALIASES: Final[Mapping[str, str]] = {"date": "date_utc"}


def read_stored_fields(kind: Kind, row: Row, names: Iterable[str]) -> dict[str, Any]:
    """Return the stored values of these fields as JSON; omit fields that are not stored."""
    columns: dict[str, Any] = orjson.loads(encode_columns(dict(row)))
    public = _read_series(columns) if kind is SERIES else to_public(kind, columns)
    values = {**public, **{COLUMN_PREFIX + name: value for name, value in columns.items()}}
    return {name: values[ALIASES.get(name, name)] for name in names if ALIASES.get(name, name) in values}


def _read_series(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a series' content by parameter. For each time parameter, the value is the column `parts`."""
    content = to_public(EVENTS, orjson.loads(columns["template"]))
    definition = {name: columns[column] for name, column in SERIES_COLUMNS.items()}
    return {**content, "slug": columns["slug"], **definition}


# Records that events link to --------------------------------------------------------------------

PlanRow = dict[str, Any]

MAX_PLACES: Final = 50_000
MAX_TERMS: Final = 20_000
PLACES: Final[Mapping[str, str]] = {"venue": "venues", "organizer": "organizers"}
# The kind of the records that each parameter refers to by identity.
LINKED_KINDS: Final[Mapping[str, str]] = {
    **PLACES,
    "categories": "categories",
    "tags": "tags",
    "image": "media",
    "parent": "categories",
    "author": "users",
}
TERMS: Final[tuple[LiteralString, ...]] = ("categories", "tags")
# Shown while an event waits for this decision, and removed afterward.
HELD: Final = N_("Decide first whether to use an existing record for “{title}”.")


async def load_places(tx: Transaction, kind: str) -> PlaceIndex:
    """Load the site's venues or organizers, except for trashed ones."""
    columns: LiteralString = "address, city" if kind == "venues" else "'' AS address, '' AS city"
    table: LiteralString = "venues" if kind == "venues" else "organizers"
    rows = await tx.fetch_all(
        Sql("SELECT id, title, status, " + columns + " FROM " + table)
        + Sql("WHERE site_id = ? AND status <> 'trash' ORDER BY id LIMIT ?", tx.site.id, MAX_PLACES)
    )
    return PlaceIndex(
        StoredPlace(row["id"], to_plain_text(row["title"]), row["status"], row["address"], row["city"])
        for row in rows
    )


def hold_back(rows: Iterable[PlanRow]) -> None:
    """Hold back events whose venue or organizer still needs a decision."""
    planned = list(rows)
    places = [row for row in planned if row["action"] == "duplicate" and row["kind"] in PLACES.values()]
    undecided = {(row["kind"], row["identity"]): row["title"] for row in places}
    for row in planned if undecided else ():
        if row["kind"] not in ("events", "series") or row.get("imported") is None:
            continue
        for kind, identity in list_links(row["imported"]):
            if (kind, identity) in undecided and row["action"] not in ("rejected", "unchanged"):
                row["state"] = "waiting"
                row["reasons"].append(encode_message(Message(HELD, title=undecided[kind, identity])))


def list_links(imported: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the kind and identity of each venue and organizer that a record links to."""
    links = imported.get("links", {})
    return [(kind, identity) for name, kind in PLACES.items() for identity in links.get(name, ())]


async def list_new_terms(tx: Transaction, rows: Iterable[PlanRow]) -> list[PlanRow]:
    """Return rows for new categories and tags that events use."""
    planned = [row for row in rows if row["kind"] in ("events", "series") and row.get("imported") is not None]
    found: list[PlanRow] = []
    for kind in TERMS:
        named = dict(pair for row in planned if _writes(row, kind) for pair in list_terms(row["imported"], kind))
        known = await _find_known(tx, kind, named) if named else set[str]()
        found += [_describe(kind, identity, name) for identity, name in named.items() if identity not in known]
    return found[:MAX_TERMS]


def list_terms(imported: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    """Return the identity and name of each term in a record.

    Numbers are omitted, because the API reads them as IDs.
    """
    terms: list[tuple[str, str]] = []
    for entry in imported.get("values", {}).get(kind) or ():
        try:
            name = clean_name(entry) if isinstance(entry, str) and not entry.strip().isdecimal() else ""
        except InvalidValue:
            continue
        if name:
            terms.append((fold(name), name))
    return terms


def _writes(row: PlanRow, field: str) -> bool:
    if row["action"] in ("rejected", "unchanged"):
        return False
    change = row["changes"].get(field)
    return row["action"] not in ("changed", "moved") or (change is not None and change["decision"] == "source")


async def _find_known(tx: Transaction, kind: LiteralString, named: Mapping[str, str]) -> set[str]:
    """Return the identities of existing terms, found by name or slug."""
    slugs: dict[str, list[str]] = {}
    for identity, name in named.items():
        slugs.setdefault(normalize_lookup(name), []).append(identity)
    rows = await tx.fetch_all(
        Sql("SELECT name_folded, slug FROM " + kind)
        + Sql("WHERE site_id = ? AND (name_folded = ANY(?) OR slug = ANY(?))", tx.site.id, [*named], [*slugs])
    )
    return {identity for row in rows for identity in (row["name_folded"], *slugs.get(row["slug"], ()))}


def _describe(kind: str, identity: str, name: str) -> PlanRow:
    imported = {"values": {"name": name}, "columns": {}, "links": {}, "wanted_id": None}
    row = {"action": "new", "kind": kind, "identity": identity, "recurrence_id": "", "title": name[:500]}
    return {**row, "imported": imported, "changes": {}, "reasons": []}


def list_needed(imported: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """Return the kind and identity of each row that must be applied before this record: linked records and terms."""
    linked = [
        (LINKED_KINDS[name], identity)
        for name, identities in imported.get("links", {}).items()
        for identity in identities
    ]
    terms = [(kind, identity) for kind in TERMS for identity, _ in list_terms(imported, kind)]
    return {*linked, *terms}


# Choosing between the stored value and the source's value of each field -------------------------

SOURCE: Final = "source"  # the source's new value is written
LOCAL: Final = "local"  # a person's value is kept
OTHER_SOURCE: Final = "other_source"  # a more trusted source provides the field

# Stored values that count as empty.
EMPTY: Final[tuple[Any, ...]] = (None, "", [], False)

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldChange:
    stored: Any
    before: Any
    now: Any
    decision: str

    def to_json(self) -> dict[str, Any]:
        return {"stored": self.stored, "before": self.before, "now": self.now, "decision": self.decision}


@dataclass(frozen=True, slots=True)
class RecordState:
    """A record as last sent by the source, as sent now, and as stored."""

    before: Fields  # empty if the record is new in the source
    now: Fields
    stored: Fields
    # Values stored by imports, one mapping per source; any other value is an edit by a person.
    written: Sequence[Fields] = ()
    reserved: Collection[str] = ()  # fields that a more trusted source provides


def compare(mode: str, state: RecordState) -> dict[str, FieldChange]:
    """Return the fields that the source has changed, and the decision for each.

    `mode` says which side takes precedence.
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys([*state.now, *state.before]):
        groups.setdefault(group_of(name), []).append(name)
    changes: dict[str, FieldChange] = {}
    for names in groups.values():
        if _is_changed(state, names):
            decision = _decide(mode, state, names)
            for name in names:
                stored, before, now = (side.get(name) for side in (state.stored, state.before, state.now))
                changes[name] = FieldChange(stored, before, now, decision)
    return changes


def list_taken(changes: Mapping[str, FieldChange]) -> set[str]:
    return {name for name, change in changes.items() if change.decision == SOURCE}


def _is_changed(state: RecordState, names: Collection[str]) -> bool:
    if all(state.before.get(name) == state.now.get(name) for name in names):
        return False
    # A person may already have entered the same value.
    return any(name not in state.stored or state.stored[name] != state.now.get(name) for name in names)


def _decide(mode: str, state: RecordState, names: Collection[str]) -> str:
    if any(name in state.reserved for name in names):
        return OTHER_SOURCE
    if mode == "new_only":
        return LOCAL
    if mode == "source" or not any(_is_edited(state, name) for name in names):
        return SOURCE
    return LOCAL


def _is_edited(state: RecordState, name: str) -> bool:
    """Return whether a person has set a field. If no import has stored the field, any non-empty value counts."""
    if name not in state.stored:
        return False
    written = [values[name] for values in state.written if name in values]
    return state.stored[name] not in (written or EMPTY)


def normalize_fields(imported: ImportedRecord) -> dict[str, Any]:
    """Return an imported record's fields in their stored JSON form."""
    fields: dict[str, Any] = orjson.loads(encode(list_fields(imported)))
    return fields


def read_before(item: Row | None) -> dict[str, Any]:
    """Return the fields that the source sent last; empty for a new record.

    Items from earlier table imports contain venue and organizer data instead of links.
    """
    fields: dict[str, Any] = orjson.loads(item["source_values"]) if item is not None else {}
    for name, kind in PLACES.items():
        entries = fields.get(name)
        if isinstance(entries, list):
            fields[name] = {"linked": [make_linked(kind, describe(entry), {}, None).identity for entry in entries]}
    return fields


def compare_with_row(
    source: Row, item: Row | None, imported: ImportedRecord, row: Row, items: Sequence[Row]
) -> dict[str, FieldChange]:
    """Return the changed fields with the decision for each. `items` are the record's items in all sources."""
    now, before = normalize_fields(imported), read_before(item)
    stored = read_stored_fields(BY_NAME[imported.kind], row, [*now, *before])
    written = [orjson.loads(other["stored_values"]) for other in items]
    return compare(source["authority"], RecordState(before, now, stored, written, _find_reserved(source, items)))


def _find_reserved(source: Row, items: Iterable[Row]) -> set[str]:
    """Return the fields that more trusted sources provide."""
    own = (source["trust_rank"], source["id"])
    better = (item for item in items if (item["trust_rank"], item["source_id"]) < own)
    return {name for item in better for name in orjson.loads(item["source_values"])}


async def load_rows(tx: Transaction, kind: Kind, ids: Sequence[int]) -> dict[int, Row]:
    rows = await tx.fetch_all(kind.select(Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, list(ids))))
    return {row["id"]: row for row in rows}


async def load_items(tx: Transaction, kind: str, ids: Sequence[int]) -> Mapping[int, list[Row]]:
    """Return the items in all sources, grouped by record."""
    items: dict[int, list[Row]] = {}
    for item in await import_tables.list_items_of_records(tx, kind, ids):
        items.setdefault(item["record_id"], []).append(item)
    return items


# Records removed because their source no longer has them ---------------------------------------

# Remove a record once it has been missing from this many successful fetches in a row.
MIN_ABSENCES: Final = 2
# If a larger share or number of records is missing at once, a person decides.
MAX_SHARE: Final = 0.2
MAX_NUMBER: Final = 10

REMOVE: Final = "remove"
WAIT: Final = "wait"  # the record may come back
ASK: Final = "ask"  # too many records are missing
KEEP: Final = "keep"  # the event is over or outside the source's time span, or the input is incomplete


@dataclass(frozen=True, slots=True)
class MissingRecord:
    start: datetime
    end: datetime
    absences: int  # number of successful fetches without the record, including this one


@dataclass(frozen=True, slots=True)
class Fetch:
    """Facts about the input, and the number of records imported from the source so far."""

    now: datetime
    is_complete: bool
    span: tuple[datetime, datetime] | None
    total: int
    allows_mass_deletion: bool = False


def decide(fetch: Fetch, missing: Sequence[MissingRecord]) -> list[str]:
    decisions = [_decide_one(fetch, record) for record in missing]
    count = sum(decision != KEEP for decision in decisions)
    is_mass = count > MAX_NUMBER or count > MAX_SHARE * fetch.total
    if is_mass and not fetch.allows_mass_deletion:
        return [ASK if decision == REMOVE else decision for decision in decisions]
    return decisions


def _decide_one(fetch: Fetch, record: MissingRecord) -> str:
    if not fetch.is_complete or fetch.span is None or record.end < fetch.now:
        return KEEP
    if record.end < fetch.span[0] or record.start > fetch.span[1]:
        return KEEP
    return REMOVE if record.absences >= MIN_ABSENCES else WAIT


def explain(decision: str, record: MissingRecord) -> Message:
    if decision == WAIT:
        return Message("Missing in the source for the first time. It is removed if it is still missing next time.")
    if decision == ASK:
        return Message("Missing in the source, like many others. Check the source before you remove it.")
    return Message("Missing in the last {count} fetches of the source.", count=record.absences)
