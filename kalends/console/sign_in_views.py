"""Signing in with a password or a passkey, and signing out."""

from typing import Final

from starlette.responses import Response

from kalends.console.identity import begin_session, continue_with, find_relying_party, verify_password
from kalends.console.passkey_requests import request_options, use_passkey
from kalends.console.rendering import show
from kalends.console.request import PREFIX, SIGN_IN, ConsoleRequest, ConsoleRoute, redirect, safe_next
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.http import sessions as cookies
from kalends.store.sessions import end_session

# The action that the challenge of a passkey is for.
ACTION: Final = "sign-in"


async def show_sign_in(console_request: ConsoleRequest) -> Response:
    """Show the sign-in form, or continue if the user is signed in."""
    if console_request.session is not None:
        return redirect(safe_next(console_request.query_value("next")))
    return _sign_in_page(console_request, console_request.query_value("next"))


async def sign_in(console_request: ConsoleRequest) -> Response:
    """Check the password and start a session. An unknown login gets the same message as a wrong password."""
    login, next_path = console_request.form_text("login").strip(), console_request.form_text("next")
    try:
        account = await verify_password(console_request, login, console_request.form_text("password"))
    except ApiError as error:
        if error.status != 429:
            raise
        response = _sign_in_page(console_request, next_path, login, error.message, 429)
        response.headers.update(error.headers)
        return response
    if account is None:
        message = Message("The login or the password is wrong.")
        return _sign_in_page(console_request, next_path, login, message, 401)
    return await _start_session(console_request, account["id"])


async def offer_passkey(console_request: ConsoleRequest) -> Response:
    """Return the options for signing in with a passkey."""
    return await request_options(console_request, ACTION)


async def sign_in_with_passkey(console_request: ConsoleRequest) -> Response:
    """Verify the signature of a passkey and start a session."""
    return await _start_session(console_request, await use_passkey(console_request, ACTION))


async def _start_session(console_request: ConsoleRequest, user_id: int) -> Response:
    """Start a session with a new token, which replaces one that the browser had, and continue."""
    async with console_request.transaction(writing=True) as tx:
        token = await begin_session(console_request, tx, user_id)
    return continue_with(console_request, token, safe_next(console_request.form_text("next")))


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
        has_passkeys=find_relying_party(console_request) is not None,
        reset_path=f"{PREFIX}/reset",
    )


ROUTES: Final = (
    ConsoleRoute("/sign-in", show_sign_in, sign_in, min_role="anonymous"),
    ConsoleRoute("/sign-in/passkey", post=sign_in_with_passkey, min_role="anonymous"),
    ConsoleRoute("/sign-in/passkey/options", post=offer_passkey, min_role="anonymous"),
    ConsoleRoute("/sign-out", post=sign_out, min_role="anonymous"),
)
