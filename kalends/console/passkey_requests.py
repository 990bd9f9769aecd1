"""Requests of scripts with passkeys: options for the browser, and the response of its authenticator."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from kalends.console.identity import find_relying_party
from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.throttle import rate_limit_key
from kalends.http.auth import check_rate_limit, record_failure
from kalends.operations import passkeys
from kalends.operations.passkeys import InvalidPasskey, RelyingParty


def require_relying_party(console_request: ConsoleRequest) -> RelyingParty:
    """Return the host that passkeys belong to; raise 404 if there cannot be any."""
    relying_party = find_relying_party(console_request)
    if relying_party is None:
        raise errors.no_route()
    return relying_party


def read_credential(console_request: ConsoleRequest) -> Mapping[str, Any]:
    """Return the response of an authenticator as sent."""
    credential: object = console_request.form.get("credential")
    if not isinstance(credential, dict):
        raise rejected_passkey()
    return credential  # pyright: ignore[reportUnknownVariableType]


def json_response(body: str) -> Response:
    return Response(body, headers={"Cache-Control": "private, no-store"}, media_type="application/json")


async def request_options(console_request: ConsoleRequest, action: str) -> Response:
    """Return the options for a signature of a passkey, for one action."""
    relying_party = require_relying_party(console_request)
    secret, now = console_request.site.secret, console_request.now
    return json_response(passkeys.make_request_options(secret, action, relying_party, now))


async def use_passkey(console_request: ConsoleRequest, action: str) -> int:
    """Verify the signature of a passkey and return the ID of its user; raise 401, or 429 after too many failures.

    Failures are counted by client only: those of others must not prevent anybody from signing in.
    """
    relying_party, credential = require_relying_party(console_request), read_credential(console_request)
    client_ip = console_request.client_ip
    subject = f"passkey {rate_limit_key(client_ip)}"
    async with console_request.transaction() as tx:
        await check_rate_limit(tx, "", subject, client_ip)
    try:
        async with console_request.transaction(writing=True) as tx:
            return await passkeys.verify_passkey(tx, credential, action, relying_party)
    except InvalidPasskey as error:
        async with console_request.transaction(writing=True) as tx:
            await record_failure(tx, subject, client_ip)
        raise rejected_passkey() from error


def rejected_passkey() -> ApiError:
    return ApiError(401, "rest_forbidden", Message("The passkey was not accepted. Try again, or use your password."))
