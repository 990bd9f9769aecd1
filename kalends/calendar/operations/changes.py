"""Changes since a revision, for clients that keep a copy in sync without polling lists."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.event_list import link_clauses
from kalends.calendar.kinds.kind import Clause, JsonObject, Kind, RenderContext, row_conditions
from kalends.calendar.operations.record_verbs import build_list_query
from kalends.calendar.storage import history_tables
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.store import Row
from kalends.store.sql import Sql, and_

LINK_FILTERS = ("categories", "tags", "venue", "organizer")

type RecordKey = tuple[str, int]  # kind and ID


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """Changed records by revision, and the JSON of those that the caller may read."""

    rows: Sequence[Row]
    records: dict[RecordKey, JsonObject]
    has_more: bool


async def list_changes(_: Kind | None, context: OperationContext) -> Outcome:
    """List changed records by revision. Records that the caller may not read appear as deleted."""
    tx, values = context.transaction, context.values
    since, synced_revision = values.get("since", (0, None))
    if synced_revision is None:
        # On a first sync, skip tombstones, because the client has nothing to delete.
        synced_revision = since or tx.site.revision
    if synced_revision < tx.site.trimmed_revision or max(since, synced_revision) > tx.site.revision:
        raise errors.expired(tx.site.trimmed_revision)
    limit: int = values.get("per_page", 100)
    changed = await read_changes(context, since, synced_revision, select_kinds(values), limit)
    page, records, has_more = changed.rows, changed.records, changed.has_more
    missing = [(row["kind"], row["id"]) for row in page if (row["kind"], row["id"]) not in records]
    tombstones = await _select_tombstones(context, synced_revision, missing)
    entries = [
        _build_entry(row, records.get((row["kind"], row["id"])))
        for row in page
        if (row["kind"], row["id"]) in records or (row["kind"], row["id"]) in tombstones
    ]
    return Outcome(
        {
            "changes": entries,
            "since": since,
            "next_since": f"{page[-1]['revision']}.{synced_revision}" if has_more else str(tx.site.revision),
            "more": has_more,
        }
    )


async def read_changes(
    context: OperationContext, since: int, synced_revision: int, kinds: Sequence[str], limit: int
) -> ChangedPage:
    """Return the first records changed since a revision, with tombstones of those deleted after `synced_revision`."""
    rows = await history_tables.list_changed_records(context.transaction, since, synced_revision, kinds, limit + 1)
    page = rows[:limit]
    return ChangedPage(page, await load_visible(context, page), len(rows) > limit)


def serialize_flat(kind: Kind, row: Row, context: RenderContext) -> JsonObject:
    """Serialize a record without counts, and with the IDs of linked records, as writes accept them."""
    record = kind.reads.row_to_json(row, context)
    if not kind.is_post:
        return {key: value for key, value in record.items() if key not in ("count", "url")}
    if not kind.links or row["id"] in context.locked_ids:
        return record
    flat = {**record, **{link.param: row[f"{link.column}s"] for link in kind.links}}
    if kind.is_event:
        # The event's position in its series, with only values that cannot change unless the event does.
        flat["series"] = row["series_id"] and {
            "id": row["series_id"],
            "slot": times.format_datetime(row["slot"]),
            "own": list(row["own_fields"] or ()),
        }
    return flat


def select_kinds(values: Any) -> list[str]:
    """Return the requested kinds. The default excludes series, because older clients do not support them."""
    if any(name in values for name in LINK_FILTERS):
        return ["events"]
    return [values["kind"]] if "kind" in values else [kind.name for kind in KINDS]


async def load_visible(context: OperationContext, page: Sequence[Row]) -> dict[RecordKey, JsonObject]:
    """Load the records on the page that the caller may read, with one query per kind."""
    ids_by_kind: dict[str, list[int]] = defaultdict(list)
    for row in page:
        if not row["gone"]:
            ids_by_kind[row["kind"]].append(row["id"])
    records: dict[RecordKey, JsonObject] = {}
    for name, ids in ids_by_kind.items():
        kind = BY_NAME[name]
        on_page = Sql("r.site_id = ? AND r.id = ANY(?)", context.transaction.site.id, ids)
        rows = await context.transaction.fetch_all(
            kind.select(and_([on_page, *await _visibility_conditions(kind, context)]))
        )
        locked_ids = permissions.locked_ids(context, rows)
        render_context = replace(context.render_context, locked_ids=locked_ids)
        records.update({(name, row["id"]): serialize_flat(kind, row, render_context) for row in rows})
    return records


async def _visibility_conditions(kind: Kind, context: OperationContext) -> list[Sql]:
    if not kind.is_post:
        return []
    # Lists omit hidden events, but users who may edit these events need them in their copy.
    clauses = [permissions.embeddable_condition(context.actor), permissions.unhidden_condition(context.actor, kind)]
    if kind.is_event:
        clauses += row_conditions(await _build_link_clauses(kind, context))
        if kind.reads.password_guarded_filters & set(context.values):
            clauses.append(permissions.unlocked_condition(context).row_condition)
    return clauses


async def _build_link_clauses(kind: Kind, context: OperationContext) -> list[Clause]:
    """Build the filters by link.

    If a linked record is unknown, its former events appear as deleted after the first sync.
    """
    try:
        return await link_clauses(build_list_query(kind, context))
    except ApiError:
        if context.values.get("since", (0, None))[0] == 0:
            raise
        return [Sql("false")]


async def _select_tombstones(
    context: OperationContext, synced_revision: int, missing: list[RecordKey]
) -> set[RecordKey]:
    """Select the records to report as deleted. Anonymous users and subscribers get only records they could read."""
    if permissions.rank(context.actor) >= permissions.CONTRIBUTOR:
        return set(missing)
    return await history_tables.find_once_visible(
        context.transaction, synced_revision, missing, context.actor.user_id
    )


def _build_entry(row: Row, record: JsonObject | None) -> dict[str, Any]:
    entry = {"revision": row["revision"], "kind": row["kind"], "id": row["id"]}
    return {**entry, "deleted": True} if record is None else {**entry, "deleted": False, "record": record}
