"""What changed since a revision, for this caller: how an app keeps a copy without polling lists."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.event_filters import link_clauses
from kalends.kinds.kind import Clause, JsonObject, Kind, RenderContext, row_conditions
from kalends.operations import event_passwords, permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import build_list_query
from kalends.store import Row, history
from kalends.store.sql import Sql, and_

LINK_FILTERS = ("categories", "tags", "venue", "organizer")


async def list_changes(_: Kind | None, context: OperationContext) -> Outcome:
    """Records in the order of their latest revision. What the caller cannot see is gone for them."""
    tx, values = context.transaction, context.values
    since, synced_revision = values.get("since", (0, None))
    if synced_revision is None:
        # A copy that begins knows nothing yet: what is gone by now it need not be told.
        synced_revision = since or tx.site.revision
    if synced_revision < tx.site.trimmed_revision or max(since, synced_revision) > tx.site.revision:
        raise errors.expired(tx.site.trimmed_revision)
    limit: int = values.get("per_page", 100)
    rows = await history.list_changed_records(tx, since, synced_revision, _select_kinds(values), limit + 1)
    page, has_more = rows[:limit], len(rows) > limit
    records = await _load_visible(context, page)
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


def serialize_flat(kind: Kind, row: Row, context: RenderContext) -> JsonObject:
    """A record by itself: links as IDs, as a write takes them, and no counts, which are others' doing."""
    if not kind.is_post:
        term = kind.reads.row_to_json(row, context)
        return {key: value for key, value in term.items() if key not in ("count", "url")}
    if not kind.is_event:
        return kind.reads.row_to_json(row, context)
    record = kind.reads.row_to_json(row, context)
    if row["id"] in context.locked_ids:
        return record
    return {**record, **{link.param: row[f"{link.column}s"] for link in kind.links}}


def _select_kinds(values: Any) -> list[str]:
    """Links are an event's, so filters by them leave only events."""
    if any(name in values for name in LINK_FILTERS):
        return ["events"]
    return [values["kind"]] if "kind" in values else [kind.name for kind in KINDS]


async def _load_visible(context: OperationContext, page: list[Row]) -> dict[tuple[str, int], JsonObject]:
    """The records of a page that this caller may see, kind by kind."""
    ids_by_kind: dict[str, list[int]] = defaultdict(list)
    for row in page:
        if not row["gone"]:
            ids_by_kind[row["kind"]].append(row["id"])
    records: dict[tuple[str, int], JsonObject] = {}
    for name, ids in ids_by_kind.items():
        kind = BY_NAME[name]
        on_page = Sql("r.site_id = ? AND r.id = ANY(?)", context.transaction.site.id, ids)
        rows = await context.transaction.fetch_all(
            kind.select(and_([on_page, *await _visibility_conditions(kind, context)]))
        )
        locked_ids = event_passwords.locked_ids(context, rows)
        render_context = replace(context.render_context, locked_ids=locked_ids)
        records.update({(name, row["id"]): serialize_flat(kind, row, render_context) for row in rows})
    return records


async def _visibility_conditions(kind: Kind, context: OperationContext) -> list[Sql]:
    if not kind.is_post:
        return []
    clauses = [permissions.embeddable_condition(context.actor)]
    if kind.is_event:
        # A list does not show hidden events; those who may edit them keep them in their copy.
        clauses.append(Sql("(NOT r.hide_from_listings OR") + permissions.editable_condition(context.actor) + Sql(")"))
        clauses += row_conditions(await _build_link_clauses(kind, context))
        if kind.reads.password_guarded_filters & set(context.values):
            clauses.append(event_passwords.unlocked_condition(context))
    return clauses


async def _build_link_clauses(kind: Kind, context: OperationContext) -> list[Clause]:
    """The filters by link. To those who have a copy already, what is linked to a vanished record is gone."""
    try:
        return await link_clauses(build_list_query(kind, context))
    except ApiError:
        if context.values.get("since", (0, None))[0] == 0:
            raise
        return [Sql("false")]


async def _select_tombstones(
    context: OperationContext, synced_revision: int, missing: list[tuple[str, int]]
) -> set[tuple[str, int]]:
    """Of which records it is said that they are gone: to the public only of those that were public."""
    if permissions.rank(context.actor) >= permissions.CONTRIBUTOR:
        return set(missing)
    return await history.find_once_visible(context.transaction, synced_revision, missing, context.actor.user_id)


def _build_entry(row: Row, record: JsonObject | None) -> dict[str, Any]:
    entry = {"revision": row["revision"], "kind": row["kind"], "id": row["id"]}
    return {**entry, "deleted": True} if record is None else {**entry, "deleted": False, "record": record}
