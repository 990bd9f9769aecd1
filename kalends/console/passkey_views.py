"""Passkeys of the own account: adding and removing them. Both require a recent proof of identity."""

from typing import Final

from starlette.responses import Response

from kalends.console.account_page import ACCOUNT, back_to, read_hex, require_session
from kalends.console.confirmation import is_confirmed, require_confirmed
from kalends.console.identity import continue_with
from kalends.console.passkey_requests import json_response, read_credential, rejected_passkey, require_relying_party
from kalends.console.request import ConsoleRequest, ConsoleRoute
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html.sanitize import clean_plain
from kalends.core.messages import Message
from kalends.operations import passkeys
from kalends.operations.passkeys import InvalidPasskey
from kalends.store.passkeys import remove_passkey
from kalends.store.sessions import Session

MAX_NAME_LENGTH: Final = 100


async def offer_registration(console_request: ConsoleRequest) -> Response:
    """Return the options for a new passkey."""
    session, relying_party = _require_proof(console_request), require_relying_party(console_request)
    async with console_request.transaction() as tx:
        return json_response(await passkeys.make_registration_options(tx, session, relying_party))


async def register(console_request: ConsoleRequest) -> Response:
    """Add a passkey with the name that the user has chosen."""
    session, relying_party = _require_proof(console_request), require_relying_party(console_request)
    credential, name = read_credential(console_request), _read_name(console_request)
    try:
        async with console_request.write() as tx:
            _require_proof(console_request)
            await passkeys.register_passkey(tx, session.user_id, name, credential, relying_party)
    except InvalidPasskey as error:
        raise rejected_passkey() from error
    return continue_with(console_request, "", f"{ACCOUNT}?notice=passkey-added#passkeys")


async def remove(console_request: ConsoleRequest) -> Response:
    """Remove a passkey."""
    session = require_session(console_request)
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    async with console_request.write() as tx:
        await remove_passkey(tx, session.user_id, read_hex(console_request.form_text("id")))
    return back_to("passkeys", "passkey-removed")


def _require_proof(console_request: ConsoleRequest) -> Session:
    """Return the session; raise 403 if the last proof of identity is too old. Requests of scripts get no page."""
    session = require_session(console_request)
    if not is_confirmed(console_request):
        raise ApiError(403, "rest_forbidden", Message("Reload the page and confirm that it is you."))
    return session


def _read_name(console_request: ConsoleRequest) -> str:
    try:
        return clean_plain(console_request.form_text("name")[:MAX_NAME_LENGTH], MAX_NAME_LENGTH)
    except InvalidValue:
        return ""


ROLE: Final = "subscriber"
ROUTES: Final = (
    ConsoleRoute("/account/passkeys", post=register, min_role=ROLE),
    ConsoleRoute("/account/passkeys/options", post=offer_registration, min_role=ROLE),
    ConsoleRoute("/account/passkeys/remove", post=remove, min_role=ROLE),
)
