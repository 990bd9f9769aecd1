"""The people of a site: accounts with their state, and invitations."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from kalends.core import errors
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.messages import Message
from kalends.core.slugs import add_number
from kalends.operations import accounts
from kalends.store import Row, people, users
from kalends.store.database import Transaction

MAX_LOGIN: Final = 60
MAX_TRIES: Final = 100


class State(StrEnum):
    """Whether a user can sign in."""

    INVITED = "invited"
    ACTIVE = "active"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Person:
    """An account with its state."""

    id: int
    login: str
    name: str
    email: str
    role: str
    state: State
    last_seen_at: datetime | None


async def list_people(tx: Transaction) -> list[Person]:
    """Return all accounts of the site by name."""
    return [_make_person(row) for row in await people.find_people(tx)]


async def read_person(tx: Transaction, user_id: int) -> Person:
    """Return an account; raise 404 if there is none."""
    rows = await people.find_people(tx, user_id)
    if not rows:
        raise errors.not_found("user")
    return _make_person(rows[0])


async def invite(tx: Transaction, contact: str, role: str) -> Person:
    """Add an account for an e-mail address or a login.

    An account for an address gets a login from the part before the @, because logins are shown to others.
    """
    contact = contact.strip()
    if not contact:
        raise InvalidArgument("LOGIN", Message("This field is required."))
    is_email = "@" in contact
    await tx.lock_site(None)
    if await users.find_user(tx, contact, contact) is not None:
        raise InvalidValue("A user with the login or the e-mail address {name} already exists.", name=contact)
    login = await _find_free_login(tx, contact) if is_email else contact
    user_id = await accounts.add_user(tx, login, role, contact if is_email else "")
    return await read_person(tx, user_id)


async def _find_free_login(tx: Transaction, email: str) -> str:
    """Return the first part of an address as a login, with a number if another account has it."""
    base = re.sub(r"[\s:<>&]+", "", email.partition("@")[0])[: MAX_LOGIN - 4] or "user"
    for number in range(1, MAX_TRIES):
        login = add_number(base, number) if number > 1 else base
        if await users.find_user(tx, login, login) is None:
            return login
    return email


def _make_person(row: Row) -> Person:
    state = State.DISABLED if row["disabled_at"] else State.ACTIVE if row["has_access"] else State.INVITED
    return Person(
        id=row["id"],
        login=row["login"],
        name=row["display_name"] or row["login"],
        email=row["email"],
        role=row["role"],
        state=state,
        last_seen_at=row["last_seen_at"],
    )
