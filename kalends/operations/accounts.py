"""Accounts and application passwords, as commands and the console manage them."""

from collections.abc import Callable
from typing import Final

from kalends.core import credentials
from kalends.core.errors import InvalidArgument, InvalidValue, with_suggestion
from kalends.core.html.sanitize import clean_plain
from kalends.core.languages import find_language
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.roles import ROLES
from kalends.core.suggestions import suggest
from kalends.core.urls import read_email
from kalends.store import Row, sessions, users
from kalends.store.database import Transaction

MIN_PASSWORD_LENGTH: Final = 10


class AuthorNeeded(InvalidValue):
    """An account with records cannot be removed unless another one becomes their author."""


async def add_user(tx: Transaction, login: str, role: str, email: str) -> int:
    login, email = read_login(login), parse_argument("--email", read_email, email)
    if await users.find_user(tx, login, email):
        raise InvalidValue("A user with the login {login} or this e-mail address already exists.", login=login)
    return await users.add_user(tx, login, email, read_role(role))


async def list_users(tx: Transaction, role: str = "", search: str = "", limit: int | None = None) -> list[Row]:
    """Return accounts by ID: with a role, with a text in the login or e-mail address, up to a number."""
    return await users.list_users(tx, read_role(role) if role else "", search, limit)


async def read_profiles(tx: Transaction, *, user_id: int | None = None, limit: int = 1, offset: int = 0) -> list[Row]:
    """Return accounts that can sign in, by name, or the one with this ID. Each row has the total."""
    return await users.find_profiles(tx, user_id=user_id, limit=limit, offset=offset)


async def set_role(tx: Transaction, login: str, role: str) -> None:
    """Change the role of an account, and end its sessions."""
    role = read_role(role)
    user_id = await _lock_user(tx, login)
    if role != "administrator":
        await _keep_administrator(tx, user_id, login)
    await users.set_role(tx, user_id, role)
    await sessions.end_sessions(tx, user_id)


async def disable_user(tx: Transaction, login: str) -> None:
    """Prevent an account from signing in, and end its sessions; its records and application passwords stay."""
    user_id = await _lock_user(tx, login)
    await _keep_administrator(tx, user_id, login)
    await users.set_disabled(tx, user_id, disabled=True)
    await end_all_sessions(tx, user_id)


async def enable_user(tx: Transaction, login: str) -> None:
    await users.set_disabled(tx, await _lock_user(tx, login), disabled=False)


async def rename_user(tx: Transaction, login: str, new_login: str) -> None:
    user_id, new_login = await _lock_user(tx, login), read_login(new_login, "NEW_LOGIN")
    if await users.find_user(tx, new_login, new_login) not in (None, user_id):
        raise InvalidValue("A user with the login or the e-mail address {name} already exists.", name=new_login)
    await users.set_login(tx, user_id, new_login)


async def set_email(tx: Transaction, login: str, email: str) -> None:
    user_id, email = await _lock_user(tx, login), parse_argument("EMAIL", read_email, email)
    if email and await users.find_user(tx, email, email) not in (None, user_id):
        raise InvalidValue("A user with the login or the e-mail address {name} already exists.", name=email)
    await users.set_email(tx, user_id, email)


async def set_profile(tx: Transaction, login: str, display_name: str, language: str) -> None:
    """Change the name that others see, and the language of the console; an empty one is that of the browser."""
    name = parse_argument("display_name", lambda text: clean_plain(text, 100), display_name)
    user_id = await require_user(tx, login)
    await users.set_profile(tx, user_id, name or login, (language and find_language(language)) or "")


async def remove_user(tx: Transaction, login: str, reassign_to: str) -> int:
    """Remove an account and return the number of records that another account got."""
    user_id = await _lock_user(tx, login)
    new_author_id = await require_user(tx, reassign_to) if reassign_to else None
    if new_author_id == user_id:
        raise InvalidArgument("--reassign-to", Message("must be another account."))
    await _keep_administrator(tx, user_id, login)
    count = await users.count_own_records(tx, user_id)
    if count and new_author_id is None:
        raise AuthorNeeded(f"{login} is the author of {count:,} records. Pass --reassign-to with their new author.")
    if new_author_id is not None:
        await users.reassign_records(tx, user_id, new_author_id)
    await users.remove_user(tx, user_id)
    return count


async def set_account_password(tx: Transaction, login: str, password: str) -> None:
    """Set the password of an account, and end its sessions."""
    if len(password) < MIN_PASSWORD_LENGTH:
        raise InvalidValue("The password must have at least {number} characters.", number=MIN_PASSWORD_LENGTH)
    user_id = await require_user(tx, login)
    await set_password_hash(tx, user_id, credentials.hash_account_password(password))


async def set_password_hash(tx: Transaction, user_id: int, password_hash: str) -> None:
    """Replace the password of an account: its sessions end, and links to sign in or to reset it stop working."""
    await users.set_password_hash(tx, user_id, password_hash)
    await end_all_sessions(tx, user_id)


async def end_all_sessions(tx: Transaction, user_id: int) -> None:
    """End the sessions of a user, and make links to sign in or to reset the password useless."""
    await sessions.end_sessions(tx, user_id)
    await sessions.remove_tokens(tx, user_id)


async def add_application_password(tx: Transaction, login: str, name: str, *, read_only: bool = False) -> str:
    user_id = await require_user(tx, login)
    name = parse_argument("NAME", lambda text: clean_plain(text, 100), name)
    if not name or name in [row["name"] for row in await users.list_application_passwords(tx, user_id)]:
        problem = N_("must not be empty or the name of another application password of {login}.")
        raise InvalidArgument("NAME", Message(problem, login=login))
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
        raise InvalidValue("{login} has no application password named {name}.", login=login, name=name)


def parse_argument[Value](name: str, parse: Callable[[str], Value], text: str) -> Value:
    """Parse an argument of a command; put its name in front of the error message, which is a predicate."""
    try:
        return parse(text)
    except InvalidValue as error:
        raise InvalidArgument(name, error.message) from error


def read_login(login: str, name: str = "LOGIN") -> str:
    """Return a login as it is stored; raise InvalidArgument if no account can have it."""
    cleaned = parse_argument(name, lambda text: clean_plain(text, 60), login)
    # HTTP separates the login from the password with a colon; spaces are lost at its ends.
    if not cleaned or ":" in cleaned or any(character.isspace() for character in login):
        raise InvalidArgument(name, Message("must have 1 to 60 characters, without spaces and colons."))
    return cleaned


def read_role(role: str) -> str:
    """Return the role; raise InvalidArgument if no account can have it."""
    roles = ROLES[1:]
    if role not in roles:
        similar = suggest(role, roles, {"admin": "administrator"})
        problem = Message("must be one of {values}.", values=", ".join(roles))
        raise InvalidArgument("ROLE", with_suggestion(problem, similar))
    return role


async def _lock_user(tx: Transaction, login: str) -> int:
    """Lock the site, so that two administrators cannot remove each other, and return the ID of the user."""
    await tx.lock_site(None)
    return await require_user(tx, login)


async def _keep_administrator(tx: Transaction, user_id: int, login: str) -> None:
    if await users.is_last_administrator(tx, user_id):
        raise InvalidValue(
            "{login} is the last administrator of this site. Give another account the role administrator first.",
            login=login,
        )


async def require_user(tx: Transaction, login: str) -> int:
    user_id = await users.find_user(tx, login, login)
    if user_id is None:
        raise InvalidValue("There is no user {login}.", login=login)
    return user_id


async def require_active_user(tx: Transaction, login: str) -> int:
    """Return the ID of an account that can sign in; raise InvalidValue if there is none or it is disabled."""
    account = await users.find_account(tx, login)
    if account is None:
        raise InvalidValue("There is no user {login} who can sign in.", login=login)
    user_id: int = account["id"]
    return user_id
