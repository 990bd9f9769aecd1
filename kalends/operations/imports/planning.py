"""Planning a run: compares the input with the items of its source and writes rows, but no records."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import orjson

from kalends.core.errors import ApiError
from kalends.core.imports.fields import TIME_FIELDS, compute_fingerprint
from kalends.core.imports.places import PlaceIndex
from kalends.core.imports.records import ImportedRecord, Rejection
from kalends.core.imports.similarity import SAME_SCORE, SIMILAR_SCORE
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.kinds import BY_NAME
from kalends.operations.exports import find_exported
from kalends.operations.imports import comparison
from kalends.operations.imports.authority import SOURCE, FieldChange, list_taken
from kalends.operations.imports.deletions import MIN_ABSENCES
from kalends.operations.imports.linked_rows import MAX_TERMS, PLACES, hold_back, list_new_terms, load_places
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.imports import encode_imported, encode_message

CHUNK: Final = 500

# Kinds that are recognized by the identity that an export has given them.
EXPORTED_KINDS: Final = ("events", "series", "venues", "organizers")

PlanRow = dict[str, Any]
Key = tuple[str, str, str]


class Candidate(Protocol):
    """A stored event that may be the same as an imported one."""

    @property
    def event_id(self) -> int: ...

    @property
    def score(self) -> float: ...


FindCandidates = Callable[[Transaction, Mapping[str, Any]], Awaitable[Sequence[Candidate]]]


@dataclass(slots=True)
class Planner:
    """The state of planning: what the source knows, and the rows by the place of their record in the input."""

    tx: Transaction
    source: Row
    items: Mapping[Key, Row]
    find_candidates: FindCandidates | None = None
    rows: dict[int, PlanRow] = field(default_factory=dict[int, PlanRow])
    seen: set[Key] = field(default_factory=set[Key])
    moved_from: set[Key] = field(default_factory=set[Key])
    unchanged: int = 0
    own_ids: set[int] = field(default_factory=set[int])  # the events that came from the source
    linked: dict[Key, ImportedRecord] = field(default_factory=dict[Key, ImportedRecord])  # venues and organizers
    differences: dict[Key, set[int]] = field(default_factory=dict[Key, set[int]])  # the records that one is not
    places: dict[str, PlaceIndex] = field(default_factory=dict[str, PlaceIndex])  # stored venues and organizers

    async def plan_records(self, records: Sequence[ImportedRecord]) -> None:
        """Plan all records of the input."""
        known: list[tuple[int, ImportedRecord, Row]] = []
        unknown: list[tuple[int, ImportedRecord]] = []
        self.linked = {record.key: record for record in records if record.kind in PLACES.values()}
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
            hold_back(self.rows.values())
            for number, row in enumerate(await list_new_terms(self.tx, self.rows.values()), -MAX_TERMS):
                self.rows[number] = row  # before the events, which are numbered from 0

    def _is_same(self, item: Row, imported: ImportedRecord) -> bool:
        """Return whether the source sends the same as last time. A record that comes back needs another look."""
        is_back = item["absences"] >= MIN_ABSENCES
        return not is_back and comparison.read_before(item) == comparison.normalize_fields(imported)

    # Records that the source has sent before --------------------------------------------------

    def _find_moved(
        self, unknown: Sequence[tuple[int, ImportedRecord]]
    ) -> tuple[list[tuple[int, ImportedRecord, Row]], list[tuple[int, ImportedRecord]]]:
        """Divide unknown records into those whose identity has changed and new ones.

        A venue with another address is another one, however similar it is.
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
                await comparison.load_rows(self.tx, kind, ids),
                await comparison.load_items(self.tx, kind, ids),
            )
            for place, imported, item in chosen:
                row = rows.get(item["record_id"])
                planned = self._plan_one(imported, item, row, items.get(item["record_id"], []), action)
                self.rows[place] = planned
        await asyncio.sleep(0)  # Lets other tasks run between two chunks.

    def _plan_one(
        self, imported: ImportedRecord, item: Row, row: Row | None, items: Sequence[Row], action: str
    ) -> PlanRow:
        is_back = item["absences"] >= MIN_ABSENCES
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
        changes = comparison.compare_with_row(self.source, item, imported, row, items)
        if action == "changed" and not list_taken(changes):
            action = "unchanged"
        if action == "moved":
            changes["identity"] = FieldChange(item["identity"], item["identity"], imported.identity, SOURCE)
        return describe(action, imported, changes=changes, **facts)

    # New records ------------------------------------------------------------------------------

    async def _plan_new(self, entries: Sequence[tuple[int, ImportedRecord]]) -> None:
        problems = await asyncio.to_thread(_find_problems, [imported for _, imported in entries])
        # The server ends a transaction that is idle for too long.
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
        """Return the IDs of records that have been exported here, and that come back."""
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
        """Plan a new venue or organizer: use a stored one with the same name, or ask if that may be meant."""
        if imported.kind not in self.places:
            self.places[imported.kind] = await load_places(self.tx, imported.kind)
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
        # Two records of one source are not the same, however similar they are.
        others = self.own_ids | self.differences.get(imported.key, set())
        found = [entry for entry in candidates if entry.event_id not in others]
        return max(found, key=lambda entry: entry.score, default=None)

    def _describe_links(self, imported: ImportedRecord) -> dict[str, Any]:
        """Return linked venues and organizers by parameter: the IDs of known ones, the values of new ones."""
        links: dict[str, Any] = {}
        for name, kind in PLACES.items():
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
    """Return a row of the plan. A record with a question about its times waits if they are written."""
    if imported.question is not None and action in ("changed", "moved", "unchanged"):
        has_times = bool(set(TIME_FIELDS) & list_taken(changes or {}))
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
        "imported": orjson.loads(encode_imported(imported)),
        "changes": {name: change.to_json() for name, change in (changes or {}).items()},
        "reasons": [encode_message(message) for message in reasons],
        "line": imported.line,
        **values,
    }


def _describe_link(imported: ImportedRecord, record_id: int) -> PlanRow:
    if imported.kind == "events":
        reason = Message("The same as event {id}, which now comes from this source as well.", id=record_id)
    else:
        reason = Message("The same as record {id}, which now comes from this source as well.", id=record_id)
    return describe("linked", imported, reason=reason, record_id=record_id)


def reject(imported: ImportedRecord, reason: Message) -> PlanRow:
    """Return the row of a record that cannot be written."""
    return {**describe("rejected", imported, reason=reason, state="skipped"), "imported": None}


def reject_input(rejection: Rejection) -> PlanRow:
    """Return the row of a part of the input that is no record."""
    reason = rejection.reason
    if rejection.column:
        reason = Message(
            "Column “{column}”, value “{value}”: {reason}",
            column=rejection.column,
            value=rejection.value,
            reason=reason,
        )
    return {
        "action": "rejected",
        "kind": "events",
        "identity": rejection.identity,
        "recurrence_id": rejection.recurrence_id,
        "title": rejection.title[:500],
        "reasons": [encode_message(reason)],
        "line": rejection.line,
        "state": "skipped",
    }


def key_of(item: Row) -> Key:
    return item["kind"], item["identity"], item["recurrence_id"]


def _find_problems(records: Iterable[ImportedRecord]) -> list[Message | None]:
    """Validate the values of new records as the API would; return the reason for each that is rejected."""
    return [_find_problem(imported) for imported in records]


def _find_problem(imported: ImportedRecord) -> Message | None:
    if imported.kind not in BY_NAME:
        return None
    try:
        read_params(BY_NAME[imported.kind].fields, imported.values)
    except ApiError as error:
        return error.message
    return None


def _split[T](entries: Sequence[T]) -> Iterable[Sequence[T]]:
    return (entries[start : start + CHUNK] for start in range(0, len(entries), CHUNK))
