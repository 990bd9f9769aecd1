"""Writes one record from the old site: an account, an image, or a calendar record."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.accounts.operations import user_accounts
from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Values
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.operations.writes import build_write_context, write_changes
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.core.slugs import add_number
from kalends.core.urls import read_email
from kalends.imports.operations.row_writing import Applied, save_item, trash_record, write_imported
from kalends.imports.operations.undo import CREATED
from kalends.imports.rules.import_records import ImportedRecord, list_fields
from kalends.imports.storage import import_tables
from kalends.media.adapters.library import FetchResult
from kalends.media.images import add_image, replace_image
from kalends.move_in.operations.old_snapshot import complete, find_references
from kalends.store import Row
from kalends.store.database import Transaction

MAX_LOGIN: Final = 60
MAX_NAME: Final = 100
MAX_TRIES: Final = 100
# The `fingerprint` of an item whose account existed before the move-in.
MATCHED: Final = "matched"
TRASH_FIELDS: Final = frozenset({"columns.trashed_status", "columns.trashed_at"})
# Always written, even if unchanged; otherwise the import's time would replace the old site's modification time.
MODIFIED: Final = "columns.modified_utc"


async def write_old_record(
    context: OperationContext, source: Row, row: Row, fetched: FetchResult | InvalidValue | None
) -> Applied:
    """Apply a row. `fetched` is the stored file of an image. Raise ApiError if the record is rejected."""
    tx = context.transaction
    if row["action"] == "gone":
        await trash_record(context, BY_NAME[row["kind"]], row["record_id"])
        await import_tables.remove_item(tx, source["id"], (row["kind"], row["identity"], ""))
        return Applied(row["record_id"])
    imported = import_tables.decode_imported(row)
    item = await import_tables.find_item(tx, source["id"], imported.key)
    if imported.kind == "users":
        try:
            user_id, origin = await _write_user(tx, imported, item)
        except InvalidValue as error:
            raise ApiError(400, "rest_invalid_user", error.message) from error
        await _save_item(tx, source, imported, user_id, origin)
        return Applied(user_id)
    if imported.kind == "media":
        media_id = await _write_image(context, source, imported, item, fetched)
        await _save_item(tx, source, imported, media_id, str(imported.columns.get("sha256", "")))
        return Applied(media_id)
    return await _write_record(context, source, row, imported, item)


async def _write_record(
    context: OperationContext, source: Row, row: Row, imported: ImportedRecord, item: Row | None
) -> Applied:
    tx, kind = context.transaction, BY_NAME[imported.kind]
    current = await kind.fetch(tx, item["record_id"]) if item else None
    references = await import_tables.find_record_ids(tx, source["id"], "media", find_references(imported))
    prepared = complete(imported, current, references, tx.now)
    fields = None if current is None else TRASH_FIELDS | {MODIFIED, *orjson.loads(row["changes"])}
    written = await write_imported(context, source, prepared, current, fields=fields)
    if prepared != imported and written.record_id is not None:
        await save_item(tx, source, imported, written.record_id, written=fields and fields - TRASH_FIELDS)
    return written


async def _save_item(
    tx: Transaction, source: Row, imported: ImportedRecord, record_id: int, fingerprint: str
) -> None:
    item = {
        "kind": imported.kind,
        "identity": imported.identity,
        "recurrence_id": "",
        "record_id": record_id,
        "fingerprint": fingerprint,
        "source_values": list_fields(imported),
    }
    await import_tables.save_items(tx, source["id"], [item])


# Images --------------------------------------------------------------------------------------


async def _write_image(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    item: Row | None,
    fetched: FetchResult | InvalidValue | None,
) -> int:
    tx, library = context.transaction, context.library
    if library is None:
        raise AssertionError("images without a media library")
    if not isinstance(fetched, FetchResult) or fetched.image is None:
        problem = (
            fetched.message if isinstance(fetched, InvalidValue) else Message("The file of the image is missing.")
        )
        raise ApiError(400, "rest_invalid_image", problem)
    authors = await import_tables.find_record_ids(tx, source["id"], "users", imported.links.get("author", ()))
    arguments = read_params(MEDIA.fields, dict(imported.values))
    columns = _read_image_columns(imported, authors)
    row = await MEDIA.fetch(tx, item["record_id"]) if item else None
    if row is None:
        return await add_image(
            tx, library, fetched.image, user_id=None, arguments=arguments, source=columns, media_id=imported.wanted_id
        )
    media_id: int = row["id"]
    await replace_image(tx, library, row, fetched.image)
    row = await MEDIA.fetch(tx, media_id) or row
    values = await MEDIA.writes.to_columns(build_write_context(context, arguments, row, media_id))
    await write_changes(MEDIA, tx, row, {**values, **columns}, {})
    return media_id


def _read_image_columns(imported: ImportedRecord, author_ids: Mapping[str, int]) -> Values:
    """Return the columns that cannot be set by a parameter: the author and the times."""
    times: Values = {
        name: datetime.fromisoformat(imported.columns[name])
        for name in ("added_at", "modified_utc")
        if imported.columns.get(name)
    }
    author = next((author_ids[entry] for entry in imported.links.get("author", ()) if entry in author_ids), None)
    return {**times, "author_id": author}


# Accounts ------------------------------------------------------------------------------------


async def _write_user(tx: Transaction, imported: ImportedRecord, item: Row | None) -> tuple[int, str]:
    if item is None or not await user_tables.has_user(tx, item["record_id"]):
        return await _find_or_add(tx, imported)
    if item["fingerprint"] == CREATED:
        await user_tables.set_account(tx, item["record_id"], await _read_account(tx, imported, item["record_id"]))
    return item["record_id"], item["fingerprint"]


async def _find_or_add(tx: Transaction, imported: ImportedRecord) -> tuple[int, str]:
    login, email = str(imported.values["login"]), str(imported.values.get("email") or "")
    for name in filter(None, (login, email)):
        if (known := await user_tables.find_user(tx, name, name)) is not None:
            return known, MATCHED
    account = await _read_account(tx, imported, None)
    return await user_tables.add_imported_user(tx, imported.wanted_id, account), CREATED


async def _read_account(tx: Transaction, imported: ImportedRecord, user_id: int | None) -> dict[str, Any]:
    """Return an account's columns, with a valid login and email address that no other account has."""
    login = await _find_free_login(tx, str(imported.values["login"]), user_id)
    email = _read_email(str(imported.values.get("email") or ""))
    if email and await user_tables.find_user(tx, email, email) not in (None, user_id):
        email = ""
    return {
        "login": login,
        "email": email,
        "role": user_accounts.read_role(str(imported.values["role"])),
        "display_name": (imported.values.get("name") or login)[:MAX_NAME],
    }


async def _find_free_login(tx: Transaction, login: str, user_id: int | None) -> str:
    """Return a login without unsupported characters, with a number if another account has the same login."""
    base = re.sub(r"[\s:<>&]+", "-", login)[:MAX_LOGIN].strip("-") or "user"
    for number in range(1, MAX_TRIES):
        candidate = add_number(base[: MAX_LOGIN - 4], number) if number > 1 else base
        if await user_tables.find_user(tx, candidate, candidate) in (None, user_id):
            return candidate
    raise InvalidValue("There is no free login for {login}.", login=login)


def _read_email(email: str) -> str:
    try:
        return read_email(email)
    except InvalidValue:
        return ""
