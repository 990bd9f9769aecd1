"""Proving who a user is: passwords with throttling, sessions, and the host that passkeys belong to."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, Response

from kalends.console.request import ConsoleRequest, redirect
from kalends.http import sessions as cookies
from kalends.http.auth import check_rate_limit, record_failure
from kalends.operations import sessions
from kalends.operations.passkeys import RelyingParty
from kalends.store import Row, users
from kalends.store.database import Transaction
from kalends.store.sessions import end_session


async def verify_password(console_request: ConsoleRequest, login: str, password: str) -> Row | None:
    """Return the account if the password is right. Raise 429 after too many failures, and 503 under load.

    The password is verified in a thread and without a database connection. An unknown login takes as long as a known
    one.
    """
    client_ip = console_request.client_ip
    async with console_request.transaction() as tx:
        account = await users.find_account(tx, login)
        subject = f"user {account['id']}" if account else f"login {login.lower()[:100]}"
        await check_rate_limit(tx, login, subject, client_ip)
    stored = account["password_hash"] if account else ""
    if await console_request.state.account_passwords.verify(stored, password, client_ip):
        return account
    async with console_request.transaction(writing=True) as tx:
        await record_failure(tx, subject, client_ip)
    return None


async def begin_session(console_request: ConsoleRequest, tx: Transaction, user_id: int) -> str:
    """Start a session and return its new token. A session that the browser had ends."""
    session, agent = console_request.session, console_request.request.headers.get("user-agent", "")
    if session is not None:
        await end_session(tx, session.user_id, session.token_hash)
    return await sessions.start_session(tx, user_id, console_request.client_ip, agent)


def continue_with(console_request: ConsoleRequest, token: str, next_path: str, notice: str = "") -> Response:
    """Set the session cookie and continue with a page; scripts get its path as JSON."""
    wants_json = "application/json" in console_request.request.headers.get("accept", "")
    response = JSONResponse({"next": next_path}) if wants_json else redirect(next_path, notice)
    if token:
        cookies.set_cookie(response, token)
    response.headers["Cache-Control"] = "private, no-store"
    return response


def find_relying_party(console_request: ConsoleRequest) -> RelyingParty | None:
    """Return the host for passkeys; None where browsers do not support them: on an IP address, and without HTTPS."""
    parts = urlsplit(console_request.origin_url)
    host = parts.hostname or ""
    if not host or (parts.scheme != "https" and host != "localhost"):
        return None
    try:
        ip_address(host)
    except ValueError:
        return RelyingParty(host, f"{parts.scheme}://{parts.netloc}")
    return None
