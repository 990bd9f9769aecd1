"""Plans a run: compares the input with the source's items and writes plan rows, but no records."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.operations.duplicates import Candidate
from kalends.calendar.rules.similarity import SAME_SCORE, SIMILAR_SCORE
from kalends.core.errors import ApiError
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import read_params
from kalends.imports.operations import import_rows
from kalends.imports.operations.exports import find_exported
from kalends.imports.operations.import_rows import Fetch, FieldChange, MissingRecord
from kalends.imports.rules.import_places import PlaceIndex
from kalends.imports.rules.import_records import (
    TIME_FIELDS,
    ImportedRecord,
    ParsedSource,
    Rejection,
    compute_fingerprint,
)
from kalends.imports.storage.import_tables import encode_imported, encode_message
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

CHUNK: Final = 500

# Kinds whose records are recognized by the identity that an export gave them.
EXPORTED_KINDS: Final = ("events", "series", "venues", "organizers")

PlanRow = dict[str, Any]
Key = tuple[str, str, str]


FindCandidates = Callable[[Transaction, Mapping[str, Any]], Awaitable[Sequence[Candidate]]]


@dataclass(slots=True)
class Planner:
    """The state of planning: the source's items, and the plan rows by the position of their record in the input."""

    tx: Transaction
    source: Row
    items: Mapping[Key, Row]
    find_candidates: FindCandidates | None = None
    rows: dict[int, PlanRow] = field(default_factory=dict[int, PlanRow])
    seen: set[Key] = field(default_factory=set[Key])
    moved_from: set[Key] = field(default_factory=set[Key])
    unchanged: int = 0
    own_ids: set[int] = field(default_factory=set[int])  # events that came from the source
    linked: dict[Key, ImportedRecord] = field(default_factory=dict[Key, ImportedRecord])  # venues and organizers
    differences: dict[Key, set[int]] = field(default_factory=dict[Key, set[int]])  # declared different
    places: dict[str, PlaceIndex] = field(default_factory=dict[str, PlaceIndex])  # stored venues and organizers

    async def plan_records(self, records: Sequence[ImportedRecord]) -> None:
        known: list[tuple[int, ImportedRecord, Row]] = []
        unknown: list[tuple[int, ImportedRecord]] = []
        self.linked = {record.key: record for record in records if record.kind in import_rows.PLACES.values()}
        for place, imported in enumerate(records):
            item = self.items.get(imported.key)
            if imported.key in self.seen:
                self.rows[place] = reject(imported, Message("The source contains this record twice."))
            elif item is None:
                unknown.append((place, imported))
            elif self._is_same(item, imported):
                self.unchanged += 1
            else:
                known.append((place, imported, item))
            self.seen.add(imported.key)
        moved, new = self._find_moved(unknown)
        for entries in _split(known):
            await self._plan_known(entries, "changed")
        for entries in _split(moved):
            await self._plan_known(entries, "moved")
        for news in _split(new):
            await self._plan_new(news)
        if self.source["kind"] != "tec":
            import_rows.hold_back(self.rows.values())
            for number, row in enumerate(
                await import_rows.list_new_terms(self.tx, self.rows.values()), -import_rows.MAX_TERMS
            ):
                self.rows[number] = row  # these rows precede the events, which are numbered from 0

    def _is_same(self, item: Row, imported: ImportedRecord) -> bool:
        """Return whether a record is unchanged since the last fetch.

        A record counts as changed if it was missing often enough to be removed.
        """
        is_back = item["absences"] >= import_rows.MIN_ABSENCES
        return not is_back and import_rows.read_before(item) == import_rows.normalize_fields(imported)

    # Records that the source has sent before --------------------------------------------------

    def _find_moved(
        self, unknown: Sequence[tuple[int, ImportedRecord]]
    ) -> tuple[list[tuple[int, ImportedRecord, Row]], list[tuple[int, ImportedRecord]]]:
        """Split unknown records into records whose identity has changed and new records.

        Linked venues and organizers are always new, because a venue with another address is a different venue.
        """
        vanished = {item["fingerprint"]: item for key, item in self.items.items() if key not in self.seen}
        moved: list[tuple[int, ImportedRecord, Row]] = []
        new: list[tuple[int, ImportedRecord]] = []
        for place, imported in unknown:
            item = vanished.pop(compute_fingerprint(imported), None) if not imported.is_linked else None
            if item is None or item["kind"] != imported.kind:
                new.append((place, imported))
            else:
                self.moved_from.add(key_of(item))
                moved.append((place, imported, item))
        return moved, new

    async def _plan_known(self, entries: Sequence[tuple[int, ImportedRecord, Row]], action: str) -> None:
        for kind in dict.fromkeys(imported.kind for _, imported, _ in entries):
            chosen = [entry for entry in entries if entry[1].kind == kind]
            ids = [item["record_id"] for _, _, item in chosen]
            if kind not in BY_NAME:
                continue
            rows, items = (
                await import_rows.load_rows(self.tx, BY_NAME[kind], ids),
                await import_rows.load_items(self.tx, kind, ids),
            )
            for place, imported, item in chosen:
                row = rows.get(item["record_id"])
                planned = self._plan_one(imported, item, row, items.get(item["record_id"], []), action)
                self.rows[place] = planned
        await asyncio.sleep(0)  # yield to other tasks between chunks

    def _plan_one(
        self, imported: ImportedRecord, item: Row, row: Row | None, items: Sequence[Row], action: str
    ) -> PlanRow:
        is_back = item["absences"] >= import_rows.MIN_ABSENCES
        if row is None:
            if is_back:
                return describe("new", imported)
            return describe(
                "unchanged", imported, reason=Message("The record was deleted, so it is left out."), state="skipped"
            )
        facts = {"record_id": row["id"], "record_revision": row["revision"]}
        if row.get("status") == "trash":
            if is_back:
                reason = Message("The source has it again, so it is restored from the trash.")
                return describe("changed", imported, reason=reason, **facts)
            reason = Message("The record is in the trash, so it is left as it is.")
            return describe("unchanged", imported, reason=reason, **facts)
        changes = import_rows.compare_with_row(self.source, item, imported, row, items)
        if action == "changed" and not import_rows.list_taken(changes):
            action = "unchanged"
        if action == "moved":
            changes["identity"] = FieldChange(
                item["identity"], item["identity"], imported.identity, import_rows.SOURCE
            )
        return describe(action, imported, changes=changes, **facts)

    # New records ------------------------------------------------------------------------------

    async def _plan_new(self, entries: Sequence[tuple[int, ImportedRecord]]) -> None:
        # Between queries, validate only one chunk, because the database ends transactions that are idle for too long.
        problems = await asyncio.to_thread(lambda: [_find_problem(imported) for _, imported in entries])
        exported = await self._find_exported([imported for _, imported in entries])
        for (place, imported), problem in zip(entries, problems, strict=True):
            if problem is not None:
                self.rows[place] = reject(imported, problem)
            elif self._is_date_of_series(imported):
                self.rows[place] = describe("changed", imported)
            elif imported.key in exported:
                self.rows[place] = _describe_link(imported, exported[imported.key])
            elif imported.is_linked:
                self.rows[place] = await self._plan_place(imported)
            else:
                self.rows[place] = await self._plan_new_one(imported)

    async def _find_exported(self, records: Sequence[ImportedRecord]) -> dict[Key, int]:
        """Return the IDs of imported records that were exported from this site."""
        found: dict[Key, int] = {}
        for kind in EXPORTED_KINDS if self.source["kind"] != "tec" else ():
            identities = [record.identity for record in records if record.kind == kind and not record.recurrence_id]
            ids = await find_exported(self.tx, BY_NAME[kind], identities, self.tx.site.base_url)
            found.update({(kind, identity, ""): record_id for identity, record_id in ids.items()})
        return {key: record_id for key, record_id in found.items() if record_id not in self.own_ids}

    def _is_date_of_series(self, imported: ImportedRecord) -> bool:
        series = ("series", imported.identity, "")
        return bool(imported.recurrence_id) and (series in self.seen or series in self.items)

    async def _plan_new_one(self, imported: ImportedRecord) -> PlanRow:
        candidate = await self._find_candidate(imported)
        different = sorted(self.differences.get(imported.key, ()))
        if candidate is None or candidate.score < SIMILAR_SCORE:
            return describe("new", imported, different_from=different)
        if candidate.score >= SAME_SCORE:
            return _describe_link(imported, candidate.event_id)
        reason = Message("Similar to event {id}. Decide whether it is the same.", id=candidate.event_id)
        return describe(
            "duplicate",
            imported,
            reason=reason,
            record_id=candidate.event_id,
            state="waiting",
            different_from=different,
        )

    async def _plan_place(self, imported: ImportedRecord) -> PlanRow:
        """Plan a new venue or organizer. Use a stored one with the same name; if the match is uncertain, ask."""
        if imported.kind not in self.places:
            self.places[imported.kind] = await import_rows.load_places(self.tx, imported.kind)
        different = sorted(self.differences.get(imported.key, ()))
        found = self.places[imported.kind].find(imported.values, different)
        if found is None:
            return describe("new", imported, different_from=different)
        place, is_certain = found
        facts: dict[str, Any] = {"record_id": place.record_id, "different_from": different}
        if is_certain:
            reason = Message("“{name}” (ID {id}) is used and stays as it is.", name=place.name, id=place.record_id)
            return describe("linked", imported, reason=reason, **facts)
        details = ", ".join(part for part in (place.name, place.address, place.city) if part)
        reason = Message("Similar to “{name}” (ID {id}). Decide whether to use it.", name=details, id=place.record_id)
        return describe("duplicate", imported, reason=reason, state="waiting", **facts)

    async def _find_candidate(self, imported: ImportedRecord) -> Candidate | None:
        if self.find_candidates is None or imported.kind != "events" or self.source["kind"] == "tec":
            return None
        candidates = await self.find_candidates(self.tx, {**imported.values, **self._describe_links(imported)})
        # Two records from the same source are never the same, however similar they are.
        others = self.own_ids | self.differences.get(imported.key, set())
        found = [entry for entry in candidates if entry.event_id not in others]
        return max(found, key=lambda entry: entry.score, default=None)

    def _describe_links(self, imported: ImportedRecord) -> dict[str, Any]:
        """Return linked venues and organizers by parameter: the IDs of known ones, and the values of new ones."""
        links: dict[str, Any] = {}
        for name, kind in import_rows.PLACES.items():
            keys = [(kind, identity, "") for identity in imported.links.get(name, ())]
            known: list[Any] = [self.items[key]["record_id"] for key in keys if key in self.items]
            new = [dict(self.linked[key].values) for key in keys if key not in self.items and key in self.linked]
            if known or new:
                links[name] = known + new
        return links


def describe(
    action: str,
    imported: ImportedRecord,
    *,
    changes: Mapping[str, FieldChange] | None = None,
    reason: Message | None = None,
    **values: Any,
) -> PlanRow:
    """Return a plan row. The row waits for review if its times are questionable."""
    if imported.question is not None and action in ("changed", "moved", "unchanged"):
        has_times = bool(set(TIME_FIELDS) & import_rows.list_taken(changes or {}))
        imported = imported if has_times else replace(imported, question=None)
    questions = [imported.question] if imported.question is not None else []
    if questions:
        values.setdefault("state", "waiting")
    reasons = [*imported.warnings, *questions, *([reason] if reason is not None else [])]
    return {
        "action": action,
        "kind": imported.kind,
        "identity": imported.identity,
        "recurrence_id": imported.recurrence_id,
        "title": imported.title[:500],
        "imported": encode_imported(imported),
        "changes": {name: change.to_json() for name, change in (changes or {}).items()},
        "reasons": [encode_message(message) for message in reasons],
        "line": imported.line,
        **values,
    }


def _describe_link(imported: ImportedRecord, record_id: int) -> PlanRow:
    reason = Message("The same as record {id}, which now comes from this source as well.", id=record_id)
    if imported.kind == "events":
        reason = Message("The same as event {id}, which now comes from this source as well.", id=record_id)
    return describe("linked", imported, reason=reason, record_id=record_id)


def reject(imported: ImportedRecord, reason: Message) -> PlanRow:
    return {**describe("rejected", imported, reason=reason, state="skipped"), "imported": None}


def reject_input(rejection: Rejection) -> PlanRow:
    return {
        "action": "rejected",
        "kind": "events",
        "identity": rejection.identity,
        "recurrence_id": rejection.recurrence_id,
        "title": rejection.title[:500],
        "reasons": [encode_message(rejection.reason)],
        "line": rejection.line,
        "state": "skipped",
    }


def key_of(item: Row) -> Key:
    return item["kind"], item["identity"], item["recurrence_id"]


def _find_problem(imported: ImportedRecord) -> Message | None:
    """Validate a new record's values as the API does. Return the reason for a rejection, or None."""
    if imported.kind not in BY_NAME:
        return None
    try:
        read_params(BY_NAME[imported.kind].fields, imported.values)
    except ApiError as error:
        return error.message
    return None


def _split[T](entries: Sequence[T]) -> Iterable[Sequence[T]]:
    return (entries[start : start + CHUNK] for start in range(0, len(entries), CHUNK))


# Items that the input does not contain ------------------------------------------------------------

# Venues, organizers and terms stay, because other events may use them.
REMOVED_KINDS: Final = ("events", "series")
STATES: Final = {import_rows.REMOVE: "pending", import_rows.ASK: "waiting", import_rows.WAIT: "skipped"}
REVERTED: Final = N_("The source no longer changes this date, so it follows its series again.")
MASS_DELETION: Final = N_(
    "{count} records are missing in the source at once. They are removed only if a person confirms it."
)
# Used as the end of an endless series.
LAST: Final = datetime(9000, 1, 1, tzinfo=UTC)


def find_absent(parsed: ParsedSource, items: Mapping[Key, Row], present: set[Key]) -> list[Row]:
    """Return the items that are not in the input, not even as rejected records."""
    rejected = {rejection.identity for rejection in parsed.rejections}
    return [item for key, item in items.items() if key not in present and item["identity"] not in rejected]


def is_complete(parsed: ParsedSource) -> bool:
    """Return whether absent records are really missing: there are records, and all rejections have an identity."""
    return bool(parsed.records) and all(rejection.identity for rejection in parsed.rejections)


async def plan_absent(
    tx: Transaction, source: Row, parsed: ParsedSource, items: Mapping[Key, Row], absent: Sequence[Row]
) -> tuple[list[PlanRow], list[Message]]:
    """Return the rows for absent items, and warnings that a person must review."""
    present = {record.key for record in parsed.records}
    reverted = [item for item in absent if item["recurrence_id"] and ("series", item["identity"], "") in present]
    rows = [_describe_absent(item, "changed", Message(REVERTED)) for item in reverted]
    others = [item for item in absent if item["kind"] in REMOVED_KINDS and item not in reverted]
    times = await _load_times(tx, source, others)
    missing = [
        (item, times[item["kind"], item["record_id"]])
        for item in others
        if (item["kind"], item["record_id"]) in times
    ]
    total = sum(key[0] in REMOVED_KINDS for key in items)
    fetch = Fetch(tx.now, is_complete(parsed), parsed.span, total, source["allow_mass_deletion"])
    records = [MissingRecord(row["start_utc"], row["end_utc"] or LAST, item["absences"] + 1) for item, row in missing]
    decisions = import_rows.decide(fetch, records)
    for (item, row), record, decision in zip(missing, records, decisions, strict=True):
        if decision != import_rows.KEEP:
            gone = _describe_absent(item, "gone", import_rows.explain(decision, record))
            facts = {"title": row["title"], "record_revision": row["revision"], "state": STATES[decision]}
            rows.append({**gone, **facts})
    count = decisions.count(import_rows.ASK)
    return rows, [Message(MASS_DELETION, count=count)] if count else []


def _describe_absent(item: Row, action: str, reason: Message) -> PlanRow:
    kind, identity, recurrence_id = key_of(item)
    return {
        "action": action,
        "kind": kind,
        "identity": identity,
        "recurrence_id": recurrence_id,
        "record_id": item["record_id"],
        "reasons": [encode_message(reason)],
    }


async def _load_times(tx: Transaction, source: Row, items: Sequence[Row]) -> dict[tuple[str, int], Row]:
    """Return the title, revision, start and end of records that are neither in the trash nor in another source."""
    found: dict[tuple[str, int], Row] = {}
    for kind, select in SELECTS.items():
        ids = [item["record_id"] for item in items if item["kind"] == kind]
        rows = await tx.fetch_all(
            select
            + Sql("WHERE r.site_id = ? AND r.id = ANY(?) AND r.status <> 'trash'", tx.site.id, ids)
            + Sql("AND NOT EXISTS (SELECT FROM import_items o WHERE o.site_id = r.site_id AND o.kind = ?", kind)
            + Sql("AND o.record_id = r.id AND o.source_id <> ? AND o.absences = 0)", source["id"])
        )
        found.update({(kind, row["id"]): row for row in rows})
    return found


SELECTS: Final = {
    "events": Sql("SELECT r.id, r.title, r.revision, r.start_utc, r.end_utc FROM events r"),
    "series": Sql(
        """SELECT r.id, r.title, r.revision, d.start_utc,
                CASE WHEN r.created_until IS NULL THEN d.end_utc END AS end_utc
            FROM series r JOIN LATERAL (SELECT min(e.start_utc) AS start_utc, max(e.end_utc) AS end_utc FROM events e
                WHERE e.site_id = r.site_id AND e.series_id = r.id AND e.status <> 'trash') d
                ON d.start_utc IS NOT NULL"""
    ),
}
