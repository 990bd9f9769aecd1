"""The history of a record, for those who may edit it: what changed, and the way back."""

from typing import Any

import orjson

from kalends.core import errors, times
from kalends.core.params import MAX_ID
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind, Link, Values
from kalends.kinds.posts import untrashed
from kalends.kinds.snapshots import sent_again, shown
from kalends.operations.context import Call, Outcome
from kalends.operations.records import changeable_row, outcome_of
from kalends.operations.writes import DERIVED, make_writing, write_changes
from kalends.store import Row, history, records

# Columns that follow the status; a restore leaves them to the rules of statuses and slugs.
RULED = {"status", "slug", "trashed_status", "trashed_at"}


async def read_history(kind: Kind, call: Call) -> Outcome:
    row = await changeable_row(kind, call)
    before: int = call.values.get("before", MAX_ID)
    most: int = call.values.get("per_page", 100)
    found = await history.list_record_changes(call.transaction, kind.name, row["id"], before=before, limit=most + 1)
    page = found[:most]
    following = page[-1]["revision"] if len(found) > most else None
    return Outcome({"history": [represent_change(kind, change) for change in page], "next_before": following})


def represent_change(kind: Kind, change: Row) -> dict[str, Any]:
    before, after = _columns(kind, change["before"]), _columns(kind, change["after"])
    return {
        "revision": change["revision"],
        "action": change["action"],
        "date_utc": times.format_datetime(change["at"]),
        "user": {"id": change["user_id"], "login": change["login"]} if change["user_id"] else None,
        "changes": {
            name: {"before": before.get(name), "after": after.get(name)} for name in dict.fromkeys([*before, *after])
        },
    }


async def restore_record(kind: Kind, call: Call) -> Outcome:
    """Out of the trash, or back to how the record was at an earlier revision."""
    row = await changeable_row(kind, call)
    revision: int | None = call.values.get("revision")
    if revision is None:
        if row["status"] != "trash":
            raise errors.missing_params(["revision"])
        columns: dict[str, Any] = {"status": row["trashed_status"] or "draft"}
    else:
        columns = await _columns_at(kind, call, row, revision)
    await _write_back(kind, call, row, columns)
    return await outcome_of(kind, call, row["id"])


async def _columns_at(kind: Kind, call: Call, row: Row, revision: int) -> dict[str, Any]:
    """The columns that differ from those at a revision, by undoing the changes since."""
    tx = call.transaction
    if revision < tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    if revision > tx.site.revision:
        raise errors.invalid("revision", "this revision is yet to come.")
    columns: dict[str, Any] = {}
    for change in await history.list_record_changes(tx, kind.name, row["id"], after=revision):
        if change["action"] == "create":
            raise errors.invalid("revision", "this record is younger.")
        columns.update(orjson.loads(change["before"]) if change["before"] else {})
    return columns


async def _write_back(kind: Kind, call: Call, row: Row, columns: dict[str, Any]) -> None:
    """Through the rules for whatever has rules; the rest exactly as it was."""
    links = {link: await _still_there(call, link, columns) for link in kind.links if f"{link.column}s" in columns}
    for link in links:
        del columns[f"{link.column}s"]
    if columns.get("image_id") and not await records.find_existing_ids(
        call.transaction, "media", [columns["image_id"]]
    ):
        columns["image_id"] = None
    if "slug" in columns:
        columns["slug"] = untrashed(columns["slug"])
    sent = sent_again(kind, columns, row)
    stored = await kind.store(make_writing(call, sent, row, row["id"]))
    values: Values = {name: value for name, value in stored.items() if name in columns or name in DERIVED | RULED}
    values.update({name: columns[name] for name in values if name in columns and name in kind.plain})
    if columns.get("slug") == "" and values.get("status", row["status"]) in ("draft", "pending", "trash"):
        # It had no slug yet. No parameter says that, so the rules would leave it the one that it has.
        values["slug"] = ""
    await write_changes(kind, call.transaction, row, values, links)


async def _still_there(call: Call, link: Link, columns: dict[str, Any]) -> list[int]:
    wanted: list[int] = columns[f"{link.column}s"]
    known = await records.find_existing_ids(call.transaction, BY_NAME[link.kind].name, wanted)
    return [entry for entry in wanted if entry in known]


def _columns(kind: Kind, stored: str | None) -> dict[str, Any]:
    return shown(kind, orjson.loads(stored)) if stored else {}
