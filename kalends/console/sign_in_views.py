"""Signing in with a password, and signing out."""

import asyncio
from functools import cache
from typing import Final

from starlette.responses import Response

from kalends.console.rendering import show
from kalends.console.request import PREFIX, SIGN_IN, ConsoleRequest, ConsoleRoute, redirect, safe_next
from kalends.core import credentials
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.http import sessions as cookies
from kalends.http.auth import check_rate_limit, record_failure
from kalends.operations import sessions
from kalends.store import users
from kalends.store.sessions import end_session


async def show_sign_in(console_request: ConsoleRequest) -> Response:
    """Show the sign-in form, or continue if the user is signed in."""
    if console_request.session is not None:
        return redirect(safe_next(console_request.query_value("next")))
    return _sign_in_page(console_request, console_request.query_value("next"))


async def sign_in(console_request: ConsoleRequest) -> Response:
    """Check the password and start a session.

    The password is verified in a thread and without a database connection. An unknown login takes as long as a known
    one, and gets the same message.
    """
    login, password = console_request.form_text("login").strip(), console_request.form_text("password")
    async with console_request.transaction() as tx:
        account = await users.find_account(tx, login)
        subject = f"user {account['id']}" if account else f"login {login.lower()[:100]}"
        try:
            await check_rate_limit(tx, login, subject, console_request.client_ip)
        except ApiError as error:
            return _sign_in_page(console_request, console_request.form_text("next"), login, error.message, 429)
    stored = account["password_hash"] if account else ""
    is_right = await asyncio.to_thread(credentials.verify_account_password, stored or _dummy_hash(), password)
    if account is None or not stored or not is_right:
        async with console_request.transaction(writing=True) as tx:
            await record_failure(tx, subject, console_request.client_ip)
        message = Message("The login or the password is wrong.")
        return _sign_in_page(console_request, console_request.form_text("next"), login, message, 401)
    return await start_session(console_request, account["id"], safe_next(console_request.form_text("next")))


async def start_session(console_request: ConsoleRequest, user_id: int, next_path: str) -> Response:
    """Start a session with a new token, which replaces one that the browser had, and continue."""
    agent = console_request.request.headers.get("user-agent", "")
    async with console_request.transaction(writing=True) as tx:
        if console_request.session is not None:
            await end_session(tx, console_request.session.user_id, console_request.session.token_hash)
        token = await sessions.start_session(tx, user_id, console_request.client_ip, agent)
    response = redirect(next_path)
    cookies.set_cookie(response, token)
    return response


async def sign_out(console_request: ConsoleRequest) -> Response:
    """End the session of this browser."""
    if console_request.session is not None:
        async with console_request.transaction(writing=True) as tx:
            await end_session(tx, console_request.session.user_id, console_request.session.token_hash)
    response = redirect(SIGN_IN, "signed-out")
    cookies.delete_cookie(response)
    return response


def _sign_in_page(
    console_request: ConsoleRequest, next_path: str, login: str = "", error: Message | None = None, status: int = 200
) -> Response:
    return show(
        console_request,
        "sign_in.html",
        status=status,
        login=login,
        error=error,
        next_path=safe_next(next_path),
        is_secure=console_request.is_secure,
        reset_path=f"{PREFIX}/reset",
    )


@cache
def _dummy_hash() -> str:
    """Return a hash that no password matches, for logins without a password."""
    return credentials.hash_account_password(credentials.new_application_password())


ROUTES: Final = (
    ConsoleRoute("/sign-in", show_sign_in, sign_in, min_role="anonymous"),
    ConsoleRoute("/sign-out", post=sign_out, min_role="anonymous"),
)
