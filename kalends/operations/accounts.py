"""What an operator does at the command line: accounts, application passwords, sites."""

import re
from collections.abc import Callable
from typing import Any, LiteralString

from kalends.core import credentials
from kalends.core.errors import InvalidValue
from kalends.core.sanitize import clean_plain
from kalends.core.times import read_zone
from kalends.core.urls import read_email, read_website
from kalends.kinds import KINDS
from kalends.operations.history import serialize_change
from kalends.operations.permissions import ROLES
from kalends.store import Row, history, users
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def add_user(tx: Transaction, login: str, role: str, email: str) -> int:
    login, email = clean_plain(login, 60), read_email(email)
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
    name = clean_plain(name, 100)
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


VIEWS = ("month", "week", "day", "list", "map")

# Sites ---------------------------------------------------------------------------------------


def _parse_per_page(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= 50:
        raise InvalidValue("per_page must be an integer from 1 to 50.")
    return int(value)


def _parse_currency_position(value: str) -> str:
    if value not in ("prefix", "postfix"):
        raise InvalidValue("currency_position must be prefix or postfix.")
    return value


def _parse_currency_code(value: str) -> str:
    if len(value) != 3 or not value.isascii() or not value.isupper():
        raise InvalidValue("currency_code must be three capital letters, such as EUR.")
    return value


def _clean_short_text(value: str) -> str:
    return clean_plain(value, 200)


def _parse_accent(value: str) -> str:
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", value):
        raise InvalidValue("accent must be a colour such as #1f6f8b.")
    return value.lower()


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _parse_weekday(value: str) -> int:
    if value.lower() not in WEEKDAYS:
        raise InvalidValue(f"first_weekday must be one of {', '.join(WEEKDAYS)}.")
    return WEEKDAYS.index(value.lower()) + 1


def _parse_view(value: str) -> str:
    if value not in VIEWS:
        raise InvalidValue(f"default_view must be one of {', '.join(VIEWS)}.")
    return value


# Key -> how its value is read. The keys are the columns.
SITE_KEYS: dict[LiteralString, Callable[[str], object]] = {
    "name": _clean_short_text,
    "base_url": lambda value: read_website(value).rstrip("/") or None,
    "timezone": read_zone,
    "language": _clean_short_text,
    "currency_symbol": _clean_short_text,
    "currency_position": _parse_currency_position,
    "currency_code": _parse_currency_code,
    "per_page": _parse_per_page,
    "logo_url": read_website,
    "accent": _parse_accent,
    "first_weekday": _parse_weekday,
    "default_view": _parse_view,
}


async def show_site(tx: Transaction) -> dict[str, Any]:
    return {
        "id": tx.site.id,
        **{key: getattr(tx.site, key) for key in SITE_KEYS},
        "first_weekday": WEEKDAYS[tx.site.first_weekday - 1],
        "revision": tx.site.revision,
    }


async def set_site(tx: Transaction, key: str, value: str) -> None:
    """Changes a setting. What is shown of every record may change with it, so the clock is raised."""
    for column, parse in SITE_KEYS.items():
        if column == key:
            parsed = parse(value)
            break
    else:
        raise InvalidValue(f"There is no setting {key}; the settings are {', '.join(SITE_KEYS)}.")
    await tx.lock_site(None)
    await tx.execute(Sql("UPDATE sites SET " + column + " = ? WHERE id = ?", parsed, tx.site.id))
    tx.changes.record("sites", tx.site.id, "settings")


async def read_history(tx: Transaction, singular: str, record_id: int) -> list[dict[str, Any]]:
    kind = next((kind for kind in KINDS if kind.is_post and kind.singular == singular), None)
    if kind is None:
        raise InvalidValue("KIND must be event, venue or organizer.")
    return [
        serialize_change(kind, row) for row in await history.list_record_changes(tx, kind.name, record_id, limit=1000)
    ]


def _parse_role(role: str) -> str:
    if role not in ROLES[1:]:
        raise InvalidValue(f"ROLE must be one of {', '.join(ROLES[1:])}.")
    return role


async def require_user(tx: Transaction, login: str) -> int:
    user_id = await users.find_user(tx, login, login)
    if user_id is None:
        raise InvalidValue(f"There is no user {login}.")
    return user_id
