"""Proof of a user's identity: passwords with throttling, sessions, and the host that passkeys belong to."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response

from kalends.accounts.operations import sign_in_methods
from kalends.accounts.operations.sign_in_methods import RelyingParty
from kalends.accounts.operations.user_accounts import MIN_PASSWORD_LENGTH
from kalends.accounts.storage import user_tables
from kalends.accounts.storage.session_tables import end_session
from kalends.console.console_request import ConsoleRequest, redirect
from kalends.core.messages import Message
from kalends.http import auth as cookies
from kalends.http.auth import check_rate_limit, record_failure
from kalends.store import Row
from kalends.store.database import Transaction


async def verify_password(console_request: ConsoleRequest, login: str, password: str) -> Row | None:
    """Return the account if the password is right. Raise 429 after too many failures, and 503 under load.

    The password is verified in a thread, without a database connection. Unknown and known logins take equally long.
    """
    client_ip = console_request.client_ip
    async with console_request.transaction() as tx:
        account = await user_tables.find_account(tx, login)
        subject = f"user {account['id']}" if account else f"login {login.lower()[:100]}"
        await check_rate_limit(tx, login, subject, client_ip)
    stored = account["password_hash"] if account else ""
    if await console_request.state.account_passwords.verify(stored, password, client_ip):
        return account
    async with console_request.transaction(writing=True) as tx:
        await record_failure(tx, subject, client_ip)
    return None


async def begin_session(console_request: ConsoleRequest, tx: Transaction, user_id: int) -> str:
    """Start a session, end the browser's previous one, and return the new token."""
    session, agent = console_request.session, console_request.request.headers.get("user-agent", "")
    if session is not None:
        await end_session(tx, session.user_id, session.token_hash)
    return await sign_in_methods.start_session(tx, user_id, console_request.client_ip, agent)


def continue_with(console_request: ConsoleRequest, token: str, next_path: str, notice: str = "") -> Response:
    """Set the session cookie and redirect to a page; scripts get the page's path as JSON."""
    wants_json = "application/json" in console_request.request.headers.get("accept", "")
    response = JSONResponse({"next": next_path}) if wants_json else redirect(next_path, notice)
    if token:
        cookies.set_cookie(response, token)
    response.headers["Cache-Control"] = "private, no-store"
    return response


def find_relying_party(console_request: ConsoleRequest) -> RelyingParty | None:
    """Return the passkey host; None for IP addresses and plain HTTP, where browsers do not support passkeys."""
    parts = urlsplit(console_request.origin_url)
    host = parts.hostname or ""
    if not host or (parts.scheme != "https" and host != "localhost"):
        return None
    try:
        ip_address(host)
    except ValueError:
        return RelyingParty(host, f"{parts.scheme}://{parts.netloc}")
    return None


MAX_LENGTH: Final = 1000


def find_problem(password: str) -> Message | None:
    """Return why a new password is rejected, or None."""
    if len(password) < MIN_PASSWORD_LENGTH:
        return Message("The password must have at least {number} characters.", number=MIN_PASSWORD_LENGTH)
    if len(password) > MAX_LENGTH:
        return Message("The password must have at most {number} characters.", number=MAX_LENGTH)
    return None
