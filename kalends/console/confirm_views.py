"""Confirming the identity of a signed-in user, before changes of credentials."""

from typing import Final

from starlette.responses import Response

from kalends.console.account_page import require_session
from kalends.console.identity import continue_with, find_relying_party, verify_password
from kalends.console.passkey_requests import rejected_passkey, request_options, use_passkey
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, safe_next
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.store import passkeys, users
from kalends.store.sessions import confirm_session


async def show_confirmation(console_request: ConsoleRequest) -> Response:
    """Show the form that confirms the identity."""
    return await _page(console_request, console_request.query_value("next"))


async def confirm(console_request: ConsoleRequest) -> Response:
    """Check the password of the user."""
    session, next_path = require_session(console_request), console_request.form_text("next")
    try:
        account = await verify_password(console_request, session.login, console_request.form_text("password"))
    except ApiError as error:
        if error.status != 429:
            raise
        return await _page(console_request, next_path, error.message, 429)
    if account is None or account["id"] != session.user_id:
        return await _page(console_request, next_path, Message("The password is wrong."), 401)
    return await _confirmed(console_request, next_path)


async def offer_passkey(console_request: ConsoleRequest) -> Response:
    """Return the options for confirming with a passkey."""
    return await request_options(console_request, _action(console_request))


async def confirm_with_passkey(console_request: ConsoleRequest) -> Response:
    """Verify the signature of a passkey of the user."""
    if await use_passkey(console_request, _action(console_request)) != require_session(console_request).user_id:
        raise rejected_passkey()
    return await _confirmed(console_request, console_request.form_text("next"))


def _action(console_request: ConsoleRequest) -> str:
    return f"confirm {require_session(console_request).user_id}"


async def _confirmed(console_request: ConsoleRequest, next_path: str) -> Response:
    async with console_request.write() as tx:
        await confirm_session(tx, require_session(console_request).token_hash)
    return continue_with(console_request, "", safe_next(next_path))


async def _page(
    console_request: ConsoleRequest, next_path: str, error: Message | None = None, status: int = 200
) -> Response:
    session = require_session(console_request)
    async with console_request.transaction() as tx:
        account = await users.find_account(tx, session.login)
        keys = await passkeys.list_passkeys(tx, session.user_id)
    return show(
        console_request,
        "confirm.html",
        status=status,
        error=error,
        next_path=safe_next(next_path),
        has_password=bool(account and account["password_hash"]),
        has_passkeys=bool(keys) and find_relying_party(console_request) is not None,
    )


ROLE: Final = "subscriber"
ROUTES: Final = (
    ConsoleRoute("/confirm", show_confirmation, confirm, ROLE),
    ConsoleRoute("/confirm/passkey", post=confirm_with_passkey, min_role=ROLE),
    ConsoleRoute("/confirm/passkey/options", post=offer_passkey, min_role=ROLE),
)
