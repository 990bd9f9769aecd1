"""Accounts of the people who wrote on the former site.

They have no password: an invitation, or `kalends user set-password`, lets them sign in. An account that existed
before, by its login or its e-mail address, is used as it is.
"""

import re
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.core.imports.fields import list_fields
from kalends.core.imports.records import ImportedRecord
from kalends.core.slugs import add_number
from kalends.core.urls import read_email
from kalends.operations import accounts
from kalends.operations.imports.undo_accounts import CREATED
from kalends.store import Row, imports, users
from kalends.store.database import Transaction

MAX_LOGIN: Final = 60
MAX_NAME: Final = 100
MAX_TRIES: Final = 100
# In the column `fingerprint` of an item: the account existed before the move-in.
MATCHED: Final = "matched"


async def write_user(tx: Transaction, source: Row, imported: ImportedRecord, item: Row | None) -> int:
    """Create or change an account and save its item; return its ID. The site is locked."""
    if item is not None and await users.has_user(tx, item["record_id"]):
        user_id: int = item["record_id"]
        origin = item["fingerprint"]
        if origin == CREATED:
            await users.set_account(tx, user_id, await _read_account(tx, imported, user_id))
    else:
        user_id, origin = await _find_or_add(tx, imported)
    entry = {
        "kind": "users",
        "identity": imported.identity,
        "recurrence_id": "",
        "record_id": user_id,
        "fingerprint": origin,
        "source_values": list_fields(imported),
    }
    await imports.save_items(tx, source["id"], [entry])
    return user_id


async def _find_or_add(tx: Transaction, imported: ImportedRecord) -> tuple[int, str]:
    login, email = str(imported.values["login"]), str(imported.values.get("email") or "")
    for name in filter(None, (login, email)):
        if (known := await users.find_user(tx, name, name)) is not None:
            return known, MATCHED
    account = await _read_account(tx, imported, None)
    return await users.add_imported_user(tx, imported.wanted_id, account), CREATED


async def _read_account(tx: Transaction, imported: ImportedRecord, user_id: int | None) -> dict[str, Any]:
    """Return the columns of an account, with a login and an address that are acceptable and free."""
    login = await _find_free_login(tx, str(imported.values["login"]), user_id)
    email = _read_email(str(imported.values.get("email") or ""))
    if email and await users.find_user(tx, email, email) not in (None, user_id):
        email = ""
    return {
        "login": login,
        "email": email,
        "role": accounts.read_role(str(imported.values["role"])),
        "display_name": (imported.values.get("name") or login)[:MAX_NAME],
    }


async def _find_free_login(tx: Transaction, login: str, user_id: int | None) -> str:
    """Return a login without characters that are not accepted here, with a number if another account has it."""
    base = re.sub(r"[\s:<>&]+", "-", login)[:MAX_LOGIN].strip("-") or "user"
    for number in range(1, MAX_TRIES):
        candidate = add_number(base[: MAX_LOGIN - 4], number) if number > 1 else base
        if await users.find_user(tx, candidate, candidate) in (None, user_id):
            return candidate
    raise InvalidValue("There is no free login for {login}.", login=login)


def _read_email(email: str) -> str:
    try:
        return read_email(email)
    except InvalidValue:
        return ""
