"""The history of a record and restoring earlier versions, for users who may edit the record."""

from typing import Any

import orjson

from kalends.core import errors, times
from kalends.core.params import MAX_ID
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind, Link, Values
from kalends.kinds.posts import strip_trashed_suffix
from kalends.kinds.snapshots import to_params, to_public
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.linked_drafts import publish_with_event
from kalends.operations.records import fetch_editable_row, read_outcome
from kalends.operations.writes import DERIVED_COLUMNS, build_write_context, write_changes
from kalends.store import Row, history, records

# Derived from status and slug rules; a restore recomputes them.
RECOMPUTED_COLUMNS = {"status", "slug", "trashed_status", "trashed_at"}


async def read_history(kind: Kind, context: OperationContext) -> Outcome:
    row = await fetch_editable_row(kind, context)
    before: int = context.values.get("before", MAX_ID)
    limit: int = context.values.get("per_page", 100)
    changes = await history.list_record_changes(
        context.transaction, kind.name, row["id"], before=before, limit=limit + 1
    )
    page = changes[:limit]
    next_before = page[-1]["revision"] if len(changes) > limit else None
    return Outcome({"history": [serialize_change(kind, change) for change in page], "next_before": next_before})


def serialize_change(kind: Kind, change: Row) -> dict[str, Any]:
    before, after = _read_columns(kind, change["before"]), _read_columns(kind, change["after"])
    return {
        "revision": change["revision"],
        "action": change["action"],
        "date_utc": times.format_datetime(change["changed_at"]),
        "user": {"id": change["user_id"], "login": change["login"]} if change["user_id"] else None,
        "changes": {
            name: {"before": before.get(name), "after": after.get(name)} for name in dict.fromkeys([*before, *after])
        },
    }


async def restore_record(kind: Kind, context: OperationContext) -> Outcome:
    """Restore a record from the trash or to an earlier revision."""
    row = await fetch_editable_row(kind, context)
    revision: int | None = context.values.get("revision")
    if revision is None:
        if row["status"] != "trash":
            raise errors.missing_params(["revision"])
        columns: dict[str, Any] = {"status": row["trashed_status"] or "draft"}
    else:
        columns = await _read_columns_at(kind, context, row, revision)
    await write_back(kind, context, row, columns)
    await publish_with_event(context.transaction, context.actor, kind, row["id"])
    return await read_outcome(kind, context, row["id"])


async def _read_columns_at(kind: Kind, context: OperationContext, row: Row, revision: int) -> dict[str, Any]:
    """Return the columns that differ from those at a revision, computed by undoing the changes since."""
    tx = context.transaction
    if revision < tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    if revision > tx.site.revision:
        raise errors.invalid("revision", "is newer than the latest revision.")
    columns: dict[str, Any] = {}
    for change in await history.list_record_changes(tx, kind.name, row["id"], after=revision):
        if change["action"] == "create":
            raise errors.invalid("revision", "is older than the record.")
        columns.update(orjson.loads(change["before"]) if change["before"] else {})
    return columns


async def write_back(kind: Kind, context: OperationContext, row: Row, columns: dict[str, Any]) -> None:
    """Write columns by way of their parameters, which applies the rules; write passthrough columns unchanged."""
    links = {
        link: await _filter_existing(context, link, columns) for link in kind.links if f"{link.column}s" in columns
    }
    for link in links:
        del columns[f"{link.column}s"]
    if columns.get("image_id") and not await records.find_existing_ids(
        context.transaction, "media", [columns["image_id"]]
    ):
        columns["image_id"] = None
    if "slug" in columns:
        columns["slug"] = strip_trashed_suffix(columns["slug"])
    arguments = to_params(kind, columns, row)
    stored = await kind.writes.to_columns(build_write_context(context, arguments, row, row["id"]))
    values: Values = {
        name: value
        for name, value in stored.items()
        if name in columns or name in DERIVED_COLUMNS | RECOMPUTED_COLUMNS
    }
    values.update(
        {name: columns[name] for name in values if name in columns and name in kind.writes.passthrough_columns}
    )
    if columns.get("slug") == "" and values.get("status", row["status"]) in ("draft", "pending", "trash"):
        # The record had no slug yet. An absent parameter would keep the current one.
        values["slug"] = ""
    await write_changes(kind, context.transaction, row, values, links)


async def _filter_existing(context: OperationContext, link: Link, columns: dict[str, Any]) -> list[int]:
    ids: list[int] = columns[f"{link.column}s"]
    known = await records.find_existing_ids(context.transaction, BY_NAME[link.kind].name, ids)
    return [entry for entry in ids if entry in known]


def _read_columns(kind: Kind, stored: str | None) -> dict[str, Any]:
    return to_public(kind, orjson.loads(stored)) if stored else {}
