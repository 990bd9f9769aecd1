"""Undoing what a move-in does besides records: accounts, the settings of the site, beginnings of paths."""

from collections.abc import Mapping
from typing import Any, Final, LiteralString

import orjson

from kalends.core.messages import Message
from kalends.operations import sites
from kalends.operations.imports.row_writing import Applied
from kalends.store import Row, former_addresses, imports, users
from kalends.store.database import Transaction
from kalends.store.imports import encode_message
from kalends.store.sql import Sql

KIND: Final = "users"
# In the column `fingerprint` of an item: whether the account was created, and may be changed, by the move-in.
CREATED: Final = "created"
# The columns of an account by the field of the source.
COLUMNS: Final[Mapping[str, LiteralString]] = {
    "login": "login",
    "email": "email",
    "role": "role",
    "name": "display_name",
}


async def plan_accounts(tx: Transaction, run: Row) -> list[dict[str, Any]]:
    """Return the rows for accounts that a run has created or changed. They come last: records have authors."""
    planned: list[dict[str, Any]] = []
    for row in await imports.list_account_rows(tx, run["id"]):
        used = row["action"] == "new" and await users.is_used(tx, row["record_id"])
        planned.append(
            {
                "action": "gone" if row["action"] == "new" else "changed",
                "kind": KIND,
                "identity": row["identity"],
                "title": row["title"],
                "record_id": row["record_id"],
                "imported": {"is_created": row["action"] == "new"},
                "changes": orjson.loads(row["changes"]),
                "reasons": [encode_message(_explain())] if used else [],
                "state": "skipped" if used else "pending",
            }
        )
    return planned


def _explain() -> Message:
    return Message("The account has been used, or has records, so it stays.")


async def undo_account(tx: Transaction, source: Row, row: Row) -> Applied:
    """Remove an account that a run has created, or return it to its former values."""
    user_id: int = row["record_id"]
    if not imports.decode(row["imported"])["is_created"]:
        await _restore_account(tx, user_id, imports.decode(row["changes"]))
        return Applied(user_id)
    if await users.is_used(tx, user_id) or await users.count_own_records(tx, user_id):
        return Applied(user_id, (_explain(),))
    await users.remove_user(tx, user_id)
    await imports.remove_item(tx, source["id"], KIND, row["identity"], "")
    return Applied(user_id)


async def _restore_account(tx: Transaction, user_id: int, changes: Mapping[str, Any]) -> None:
    """Restore the values that nobody has changed since."""
    for name, change in changes.items():
        column = COLUMNS.get(name)
        if column is not None and change["before"] is not None:
            await tx.execute(
                Sql("UPDATE users SET " + column + " = ?", change["before"])
                + Sql("WHERE site_id = ? AND id = ? AND " + column + " = ?", tx.site.id, user_id, change["now"])
            )


# The site -------------------------------------------------------------------------------------


async def restore_site(tx: Transaction, run: Row) -> None:
    """Restore the settings that a move-in has changed and nobody since, and remove its beginnings of paths."""
    before: dict[str, Any] = imports.decode(run["options"]).get("site_before") or {}
    if not before:
        return
    current = await sites.read_settings(tx)
    changed = {
        name: entry["before"]
        for name, entry in before["settings"].items()
        if current[name] == entry["after"] and entry["before"] != entry["after"]
    }
    if changed:
        await sites.set_several(tx, changed)
    await tx.execute(
        Sql(
            "UPDATE sites SET former_host = ?, former_last_id = ? WHERE id = ?",
            before["former_host"],
            before["former_last_id"],
            tx.site.id,
        )
    )
    await former_addresses.remove_prefixes(tx, before.get("prefixes", []))
    source = await imports.find_source(tx, run["source_id"])
    if source is not None:
        facts = {**imports.decode(source["facts"]), "settings": before["known_settings"]}
        await imports.change_source(tx, source["id"], {"facts": imports.encode(facts)})
