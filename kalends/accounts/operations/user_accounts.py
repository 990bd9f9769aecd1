"""Operations on accounts for commands and the console: invitations, application passwords, and emails to users."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from kalends.accounts.operations import sign_in_methods
from kalends.accounts.operations.sign_in_methods import Purpose
from kalends.accounts.storage import session_tables, user_tables
from kalends.core import credentials, errors
from kalends.core.credentials import ROLES
from kalends.core.errors import InvalidArgument, InvalidValue, with_suggestion
from kalends.core.messages import Message, find_language, gettext_noop as N_
from kalends.core.sanitize import clean_plain
from kalends.core.slugs import add_number
from kalends.core.urls import read_email
from kalends.core.words import suggest
from kalends.store import Row, job_queue
from kalends.store.database import Transaction

MIN_PASSWORD_LENGTH: Final = 10


class AuthorNeeded(InvalidValue):
    """Raised when an account with records is removed without a new author for them."""


async def add_user(tx: Transaction, login: str, role: str, email: str) -> int:
    login, email = read_login(login), parse_argument("--email", read_email, email)
    if await user_tables.find_user(tx, login, email):
        raise InvalidValue("A user with the login {login} or this email address already exists.", login=login)
    return await user_tables.add_user(tx, login, email, read_role(role))


async def list_users(tx: Transaction, role: str = "", search: str = "", limit: int | None = None) -> list[Row]:
    return await user_tables.list_users(tx, read_role(role) if role else "", search, limit)


async def read_profiles(tx: Transaction, *, user_id: int | None = None, limit: int = 1, offset: int = 0) -> list[Row]:
    """Return enabled accounts sorted by name, or only the account with this ID. Each row includes the total count."""
    return await user_tables.find_profiles(tx, user_id=user_id, limit=limit, offset=offset)


async def set_role(tx: Transaction, login: str, role: str) -> None:
    role = read_role(role)
    user_id = await _lock_user(tx, login)
    if role != "administrator":
        await _keep_administrator(tx, user_id, login)
    await user_tables.change_user(tx, user_id, {"role": role})
    await session_tables.end_sessions(tx, user_id)


async def disable_user(tx: Transaction, login: str) -> None:
    """Disable sign-in for an account and end its sessions; its records and application passwords remain."""
    user_id = await _lock_user(tx, login)
    await _keep_administrator(tx, user_id, login)
    await user_tables.change_user(tx, user_id, {"disabled_at": tx.now})
    await end_all_sessions(tx, user_id)


async def enable_user(tx: Transaction, login: str) -> None:
    await user_tables.change_user(tx, await _lock_user(tx, login), {"disabled_at": None})


async def rename_user(tx: Transaction, login: str, new_login: str) -> None:
    user_id, new_login = await _lock_user(tx, login), read_login(new_login, "NEW_LOGIN")
    if await user_tables.find_user(tx, new_login, new_login) not in (None, user_id):
        raise InvalidValue("A user with the login or the email address {name} already exists.", name=new_login)
    await user_tables.set_login(tx, user_id, new_login)


async def set_email(tx: Transaction, login: str, email: str) -> None:
    user_id, email = await _lock_user(tx, login), parse_argument("EMAIL", read_email, email)
    if email and await user_tables.find_user(tx, email, email) not in (None, user_id):
        raise InvalidValue("A user with the login or the email address {name} already exists.", name=email)
    await user_tables.change_user(tx, user_id, {"email": email})


async def set_profile(
    tx: Transaction, login: str, display_name: str, language: str, *, queue_email: bool = True
) -> None:
    """Change the display name, the console language ("" means the browser's) and the choice of the daily summary."""
    name = parse_argument("display_name", lambda text: clean_plain(text, 100), display_name)
    user_id = await require_user(tx, login)
    chosen = (language and find_language(language)) or ""
    await user_tables.change_user(
        tx, user_id, {"display_name": name or login, "language": chosen, "queue_email": queue_email}
    )


async def remove_user(tx: Transaction, login: str, reassign_to: str) -> int:
    """Remove an account and return how many records were reassigned."""
    user_id = await _lock_user(tx, login)
    new_author_id = await require_user(tx, reassign_to) if reassign_to else None
    if new_author_id == user_id:
        raise InvalidArgument("--reassign-to", Message("must be another account."))
    await _keep_administrator(tx, user_id, login)
    count = await user_tables.count_own_records(tx, user_id)
    if count and new_author_id is None:
        raise AuthorNeeded(f"{login} is the author of {count:,} records. Pass --reassign-to with their new author.")
    if new_author_id is not None:
        await user_tables.reassign_records(tx, user_id, new_author_id)
    await user_tables.remove_user(tx, user_id)
    return count


async def set_account_password(tx: Transaction, login: str, password: str) -> None:
    if len(password) < MIN_PASSWORD_LENGTH:
        raise InvalidValue("The password must have at least {number} characters.", number=MIN_PASSWORD_LENGTH)
    user_id = await require_user(tx, login)
    await set_password_hash(tx, user_id, credentials.hash_account_password(password))


async def set_password_hash(tx: Transaction, user_id: int, password_hash: str) -> None:
    """Replace an account's password, end its sessions, and invalidate its one-time links."""
    await user_tables.change_user(tx, user_id, {"password_hash": password_hash})
    await end_all_sessions(tx, user_id)


async def end_all_sessions(tx: Transaction, user_id: int) -> None:
    """End a user's sessions and invalidate their one-time links."""
    await session_tables.end_sessions(tx, user_id)
    await session_tables.remove_tokens(tx, user_id)


async def add_application_password(
    tx: Transaction, login: str, name: str, *, read_only: bool = False, may_propose: bool = False
) -> str:
    """Add a password and return it. One that `may_propose` is read-only, but may send proposals."""
    user_id = await require_user(tx, login)
    name = parse_argument("NAME", lambda text: clean_plain(text, 100), name)
    if not name or name in [row["name"] for row in await user_tables.list_application_passwords(tx, user_id)]:
        problem = N_("must not be empty or the name of another application password of {login}.")
        raise InvalidArgument("NAME", Message(problem, login=login))
    password = credentials.new_application_password()
    password_hash = credentials.hash_application_password(tx.site.secret, password)
    await user_tables.add_application_password(
        tx, user_id, name, password_hash, read_only=read_only or may_propose, may_propose=may_propose
    )
    return password


async def list_application_passwords(tx: Transaction, login: str) -> list[Row]:
    return await user_tables.list_application_passwords(tx, await require_user(tx, login))


async def list_uses(tx: Transaction, login: str) -> list[Row]:
    return await user_tables.list_uses(tx, await require_user(tx, login))


async def revoke_application_password(tx: Transaction, login: str, name: str) -> None:
    if not await user_tables.remove_application_password(tx, await require_user(tx, login), name):
        raise InvalidValue("{login} has no application password named {name}.", login=login, name=name)


def parse_argument[Value](name: str, parse: Callable[[str], Value], text: str) -> Value:
    """Parse a command argument. Error messages start with the argument's name."""
    try:
        return parse(text)
    except InvalidValue as error:
        raise InvalidArgument(name, error.message) from error


def read_login(login: str, name: str = "LOGIN") -> str:
    """Return a login in its stored form; raise InvalidArgument if it is not a valid login."""
    cleaned = parse_argument(name, lambda text: clean_plain(text, 60), login)
    # HTTP Basic authentication separates login and password with a colon.
    if not cleaned or ":" in cleaned or any(character.isspace() for character in login):
        raise InvalidArgument(name, Message("must have 1 to 60 characters, without spaces and colons."))
    return cleaned


def read_role(role: str) -> str:
    roles = ROLES[1:]
    if role not in roles:
        similar = suggest(role, roles, {"admin": "administrator"})
        problem = Message("must be one of {values}.", values=", ".join(roles))
        raise InvalidArgument("ROLE", with_suggestion(problem, similar))
    return role


async def _lock_user(tx: Transaction, login: str) -> int:
    """Lock the site and return the user's ID. The lock keeps two administrators from removing each other."""
    await tx.lock_site(None)
    return await require_user(tx, login)


async def _keep_administrator(tx: Transaction, user_id: int, login: str) -> None:
    if await user_tables.is_last_administrator(tx, user_id):
        raise InvalidValue(
            "{login} is the last administrator of this site. Give another account the role administrator first.",
            login=login,
        )


async def require_user(tx: Transaction, login: str) -> int:
    user_id = await user_tables.find_user(tx, login, login)
    if user_id is None:
        raise InvalidValue("There is no user {login}.", login=login)
    return user_id


async def require_active_user(tx: Transaction, login: str) -> int:
    """Return an account's ID; raise InvalidValue if the account does not exist or is disabled."""
    account = await user_tables.find_account(tx, login)
    if account is None:
        raise InvalidValue("There is no user {login} who can sign in.", login=login)
    user_id: int = account["id"]
    return user_id


# Placeholder for the one-time link in an email's text.
LINK: Final = "{link}"


@dataclass(frozen=True, slots=True)
class RequestedLink:
    """A one-time link that is created when the email is sent, so the queue never contains a valid link."""

    user_id: int
    purpose: Purpose
    base_url: str


async def enqueue_email(tx: Transaction, to: str, subject: str, text: str, link: RequestedLink | None = None) -> None:
    """Enqueue a plain-text email, sent after the transaction commits. `link` replaces `LINK` in the text."""
    arguments: dict[str, object] = {"to": to, "subject": subject, "text": text}
    if link is not None:
        requested = {"user_id": link.user_id, "purpose": link.purpose.value, "base_url": link.base_url}
        arguments["link"] = requested
    await job_queue.enqueue(tx, job_queue.Task.SEND_EMAIL, arguments)


async def insert_link(tx: Transaction, text: str, user_id: int, purpose: str, base_url: str) -> str:
    """Insert a new one-time link into an email's text; earlier links for the same purpose stop working."""
    return text.replace(LINK, await sign_in_methods.create_link(tx, user_id, Purpose(purpose), base_url))


MAX_LOGIN: Final = 60
MAX_TRIES: Final = 100


class State(StrEnum):
    INVITED = "invited"
    ACTIVE = "active"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    login: str
    name: str
    email: str
    role: str
    state: State
    last_seen_at: datetime | None


async def list_people(tx: Transaction) -> list[Person]:
    return [_make_person(row) for row in await user_tables.find_people(tx)]


async def read_person(tx: Transaction, user_id: int) -> Person:
    rows = await user_tables.find_people(tx, user_id)
    if not rows:
        raise errors.not_found("user")
    return _make_person(rows[0])


async def invite(tx: Transaction, contact: str, role: str) -> Person:
    """Add an account for an email address or a login.

    For an address, the login is the part before the @, because other people can see logins.
    """
    contact = contact.strip()
    if not contact:
        raise InvalidArgument("LOGIN", Message("This field is required."))
    is_email = "@" in contact
    await tx.lock_site(None)
    if await user_tables.find_user(tx, contact, contact) is not None:
        raise InvalidValue("A user with the login or the email address {name} already exists.", name=contact)
    login = await _find_free_login(tx, contact) if is_email else contact
    user_id = await add_user(tx, login, role, contact if is_email else "")
    return await read_person(tx, user_id)


async def _find_free_login(tx: Transaction, email: str) -> str:
    """Return the part before the @ as a login, with a number if the login is taken."""
    base = re.sub(r"[\s:<>&]+", "", email.partition("@")[0])[: MAX_LOGIN - 4] or "user"
    for number in range(1, MAX_TRIES):
        login = add_number(base, number) if number > 1 else base
        if await user_tables.find_user(tx, login, login) is None:
            return login
    return email


def _make_person(row: Row) -> Person:
    state = State.DISABLED if row["disabled_at"] else State.ACTIVE if row["has_access"] else State.INVITED
    name = row["display_name"] or row["login"]
    return Person(row["id"], row["login"], name, row["email"], row["role"], state, row["last_seen_at"])
