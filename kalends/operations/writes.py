"""Adding and changing one record: its columns, its revision, its links."""

from collections.abc import Mapping
from typing import Any

from asyncpg import Record

from kalends.kinds.kind import Kind, Link, Values, Writing
from kalends.operations import permissions
from kalends.operations.call import Call
from kalends.store import records
from kalends.store.clock import Action
from kalends.store.links import replace_links


async def add_record(
    kind: Kind, call: Call, sent: Mapping[str, Any], links: Mapping[Link, list[int]] | None = None
) -> int:
    """Adds a record and returns its ID. The right to create is the caller's to check."""
    clock = call.transaction.clock
    record_id = clock.next_post_id() if kind.is_post else clock.next_term_id()
    values = await kind.store(_writing(call, sent, None, record_id))
    revision = clock.stamp(kind.name, record_id, "create")
    await records.add(call.transaction, kind.name, {"id": record_id, "revision": revision, **values})
    for link, ids in (links or {}).items():
        await replace_links(call.transaction, link.table, link.column, record_id, ids)
    return record_id


async def change_record(
    kind: Kind,
    call: Call,
    row: Record,
    sent: Mapping[str, Any],
    links: Mapping[Link, list[int]] | None = None,
) -> None:
    """Changes only what differs from the row; where nothing does, nothing is written."""
    values = await kind.store(_writing(call, sent, row, row["id"]))
    changed: Values = {name: value for name, value in values.items() if _differs(row, name, value)}
    relinked = {link: ids for link, ids in (links or {}).items() if row[f"{link.column}s"] != ids}
    if not changed and not relinked:
        return
    tx = call.transaction
    changed["revision"] = tx.clock.stamp(kind.name, row["id"], _action(row, changed))
    if kind.is_post:
        changed["modified_utc"] = tx.now
    await records.change(tx, kind.name, row["id"], changed)
    for link, ids in relinked.items():
        await replace_links(tx, link.table, link.column, row["id"], ids)


def _writing(call: Call, sent: Mapping[str, Any], row: Record | None, record_id: int) -> Writing:
    if call.actor.user_id is None:
        raise AssertionError("a write without a writer")
    permissions.require_author_right(call.actor, sent.get("author"))
    return Writing(
        transaction=call.transaction,
        sent=sent,
        row=row,
        record_id=record_id,
        user_id=call.actor.user_id,
        may_publish=permissions.may_publish(call.actor),
    )


def _differs(row: Record, name: str, value: object) -> bool:
    return name not in row or row[name] != value


def _action(row: Record, changed: Values) -> Action:
    if "status" not in changed:
        return "update"
    if changed["status"] == "trash":
        return "trash"
    return "restore" if row["status"] == "trash" else "update"
