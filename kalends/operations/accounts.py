"""Accounts and application passwords, as the operator manages them with commands."""

from collections.abc import Callable
from typing import Any

from kalends.core import credentials
from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_plain
from kalends.core.urls import read_email
from kalends.kinds import KINDS
from kalends.operations.history import serialize_change
from kalends.operations.permissions import ROLES
from kalends.store import Row, history, users
from kalends.store.database import Transaction


async def add_user(tx: Transaction, login: str, role: str, email: str) -> int:
    login = parse_argument("LOGIN", lambda text: clean_plain(text, 60), login)
    email = parse_argument("--email", read_email, email)
    if not login or ":" in login:
        raise InvalidValue("LOGIN must have 1 to 60 characters and no colon.")
    if await users.find_user(tx, login, email):
        raise InvalidValue(f"A user with the login {login} or this e-mail address already exists.")
    return await users.add_user(tx, login, email, _parse_role(role))


async def list_users(tx: Transaction) -> list[Row]:
    return await users.list_users(tx)


async def set_role(tx: Transaction, login: str, role: str) -> None:
    await users.set_role(tx, await require_user(tx, login), _parse_role(role))


async def set_account_password(tx: Transaction, login: str, password: str) -> None:
    if len(password) < 10:
        raise InvalidValue("The password must have at least 10 characters.")
    await users.set_password_hash(tx, await require_user(tx, login), credentials.hash_account_password(password))


async def add_application_password(tx: Transaction, login: str, name: str, *, read_only: bool = False) -> str:
    user_id = await require_user(tx, login)
    name = parse_argument("NAME", lambda text: clean_plain(text, 100), name)
    if not name or name in [row["name"] for row in await users.list_application_passwords(tx, user_id)]:
        raise InvalidValue(f"NAME must not be empty or the name of another application password of {login}.")
    password = credentials.new_application_password()
    password_hash = credentials.hash_application_password(tx.site.secret, password)
    await users.add_application_password(tx, user_id, name, password_hash, read_only=read_only)
    return password


async def list_application_passwords(tx: Transaction, login: str) -> list[Row]:
    return await users.list_application_passwords(tx, await require_user(tx, login))


async def list_uses(tx: Transaction, login: str) -> list[Row]:
    return await users.list_uses(tx, await require_user(tx, login))


async def revoke_application_password(tx: Transaction, login: str, name: str) -> None:
    if not await users.remove_application_password(tx, await require_user(tx, login), name):
        raise InvalidValue(f"{login} has no application password named {name}.")


async def read_history(tx: Transaction, singular: str, record_id: int) -> list[dict[str, Any]]:
    kind = next((kind for kind in KINDS if kind.is_post and kind.singular == singular), None)
    if kind is None:
        raise InvalidValue("KIND must be event, venue or organizer.")
    return [
        serialize_change(kind, row) for row in await history.list_record_changes(tx, kind.name, record_id, limit=1000)
    ]


def parse_argument[Value](name: str, parse: Callable[[str], Value], text: str) -> Value:
    """Parse an argument of a command; put its name in front of the error message, which is a predicate."""
    try:
        return parse(text)
    except InvalidValue as error:
        raise InvalidValue(f"{name} {error.text}") from error


def _parse_role(role: str) -> str:
    if role not in ROLES[1:]:
        raise InvalidValue(f"ROLE must be one of {', '.join(ROLES[1:])}.")
    return role


async def require_user(tx: Transaction, login: str) -> int:
    user_id = await users.find_user(tx, login, login)
    if user_id is None:
        raise InvalidValue(f"There is no user {login}.")
    return user_id
