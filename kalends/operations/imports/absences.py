"""Items that the input does not contain: dates of series that lose their own content, and records to remove."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kalends.core.imports.records import ParsedSource
from kalends.core.messages import Message
from kalends.operations.imports import deletions
from kalends.operations.imports.deletions import Fetch, MissingRecord
from kalends.operations.imports.planning import Key, PlanRow, key_of
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.imports import encode_message
from kalends.store.sql import Sql

# Venues, organizers and terms stay: events of other origins may use them.
REMOVED_KINDS: Final = ("events", "series")
# Endless series.
LAST: Final = datetime(9000, 1, 1, tzinfo=UTC)


def find_absent(parsed: ParsedSource, items: Mapping[Key, Row], present: set[Key]) -> list[Row]:
    """Return the items that are not in the input, not even as a rejected record."""
    rejected = {rejection.identity for rejection in parsed.rejections}
    return [item for key, item in items.items() if key not in present and item["identity"] not in rejected]


def is_complete(parsed: ParsedSource) -> bool:
    """Return whether the input tells what is missing: it has records, and no part of it is unknown."""
    return bool(parsed.records) and all(rejection.identity for rejection in parsed.rejections)


async def plan_absent(
    tx: Transaction, source: Row, parsed: ParsedSource, items: Mapping[Key, Row], absent: Sequence[Row]
) -> tuple[list[PlanRow], list[Message]]:
    """Return the rows for absent items, and why a person has to look at them."""
    present = {record.key for record in parsed.records}
    reverted = [item for item in absent if item["recurrence_id"] and ("series", item["identity"], "") in present]
    rows = [_describe_reverted(item) for item in reverted]
    others = [item for item in absent if item["kind"] in REMOVED_KINDS and item not in reverted]
    times = await _load_times(tx, source, others)
    missing = [
        (item, times[item["kind"], item["record_id"]])
        for item in others
        if (item["kind"], item["record_id"]) in times
    ]
    fetch = Fetch(tx.now, is_complete(parsed), parsed.span, _count_removable(items), source["allow_mass_deletion"])
    records = [MissingRecord(row["start_utc"], row["end_utc"] or LAST, item["absences"] + 1) for item, row in missing]
    decisions = deletions.decide(fetch, records)
    for (item, row), record, decision in zip(missing, records, decisions, strict=True):
        if decision != deletions.KEEP:
            rows.append(_describe_gone(item, row, decision, deletions.explain(decision, record)))
    return rows, _warn(decisions)


def _count_removable(items: Mapping[Key, Row]) -> int:
    return sum(key[0] in REMOVED_KINDS for key in items)


def _warn(decisions: Sequence[str]) -> list[Message]:
    count = decisions.count(deletions.ASK)
    if not count:
        return []
    return [
        Message(
            "{count} records are missing in the source at once. They are removed only if a person confirms it.",
            count=count,
        )
    ]


STATES: Final = {deletions.REMOVE: "pending", deletions.ASK: "waiting", deletions.WAIT: "skipped"}


def _describe_gone(item: Row, row: Row, decision: str, reason: Message) -> PlanRow:
    return {
        **_describe(item, "gone", reason),
        "title": row["title"],
        "record_revision": row["revision"],
        "state": STATES[decision],
    }


def _describe_reverted(item: Row) -> PlanRow:
    return _describe(
        item, "changed", Message("The source no longer changes this date, so it follows its series again.")
    )


def _describe(item: Row, action: str, reason: Message) -> dict[str, Any]:
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
    """Return title, revision, start and end of records that only this source has; not those in the trash."""
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
