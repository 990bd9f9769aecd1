"""Sign-in with a password, a passkey or a link; link requests, identity confirmation, and sign-out."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from kalends.accounts.console import identity
from kalends.accounts.console.account_page import ACCOUNT, back_to, read_hex, require_session
from kalends.accounts.console.people_pages import enqueue_link
from kalends.accounts.operations import sign_in_methods, user_accounts
from kalends.accounts.operations.sign_in_methods import InvalidPasskey, Purpose, RelyingParty
from kalends.accounts.operations.user_accounts import MIN_PASSWORD_LENGTH
from kalends.accounts.storage import session_tables, user_tables
from kalends.accounts.storage.session_tables import Session, confirm_session, end_session, remove_passkey
from kalends.console.console_rendering import show
from kalends.console.console_request import (
    PREFIX,
    SIGN_IN,
    ConsoleRequest,
    ConsoleRoute,
    is_confirmed,
    redirect,
    require_confirmed,
    safe_next,
)
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.limits import rate_limit_key
from kalends.core.messages import Message
from kalends.core.sanitize import clean_plain
from kalends.http import auth
from kalends.http.auth import check_rate_limit, record_failure
from kalends.store import Row

ACTION: Final = "sign-in"


async def show_sign_in(console_request: ConsoleRequest) -> Response:
    if console_request.session is not None:
        return redirect(safe_next(console_request.query_value("next")))
    return _sign_in_page(console_request, console_request.query_value("next"))


async def sign_in(console_request: ConsoleRequest) -> Response:
    """Check the password and start a session. Unknown logins and wrong passwords get the same message."""
    login, next_path = console_request.form_text("login").strip(), console_request.form_text("next")
    try:
        account = await identity.verify_password(console_request, login, console_request.form_text("password"))
    except ApiError as error:
        if error.status != 429:
            raise
        response = _sign_in_page(console_request, next_path, login, error.message, 429)
        response.headers.update(error.headers)
        return response
    if account is None:
        message = Message("Wrong login or password.")
        return _sign_in_page(console_request, next_path, login, message, 401)
    return await _start_session(console_request, account["id"])


async def offer_passkey(console_request: ConsoleRequest) -> Response:
    return await request_options(console_request, ACTION)


async def sign_in_with_passkey(console_request: ConsoleRequest) -> Response:
    return await _start_session(console_request, await use_passkey(console_request, ACTION))


async def _start_session(console_request: ConsoleRequest, user_id: int) -> Response:
    async with console_request.transaction(writing=True) as tx:
        token = await identity.begin_session(console_request, tx, user_id)
    return identity.continue_with(console_request, token, safe_next(console_request.form_text("next")))


async def sign_out(console_request: ConsoleRequest) -> Response:
    if console_request.session is not None:
        async with console_request.transaction(writing=True) as tx:
            await end_session(tx, console_request.session.user_id, console_request.session.token_hash)
    response = redirect(SIGN_IN, "signed-out")
    auth.delete_cookie(response)
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
        has_passkeys=identity.find_relying_party(console_request) is not None,
        reset_path=f"{PREFIX}/reset",
    )


SIGN_IN_ROUTES: Final = (
    ConsoleRoute("/sign-in", show_sign_in, sign_in, min_role="anonymous"),
    ConsoleRoute("/sign-in/passkey", post=sign_in_with_passkey, min_role="anonymous"),
    ConsoleRoute("/sign-in/passkey/options", post=offer_passkey, min_role="anonymous"),
    ConsoleRoute("/sign-out", post=sign_out, min_role="anonymous"),
)


def require_relying_party(console_request: ConsoleRequest) -> RelyingParty:
    """Return the host that passkeys belong to; raise 404 if it cannot have passkeys."""
    relying_party = identity.find_relying_party(console_request)
    if relying_party is None:
        raise errors.no_route()
    return relying_party


def read_credential(console_request: ConsoleRequest) -> Mapping[str, Any]:
    credential: object = console_request.form.get("credential")
    if not isinstance(credential, dict):
        raise rejected_passkey()
    return credential  # pyright: ignore[reportUnknownVariableType]


def json_response(body: str) -> Response:
    return Response(body, headers={"Cache-Control": "private, no-store"}, media_type="application/json")


async def request_options(console_request: ConsoleRequest, action: str) -> Response:
    """Return the options for signing an action with a passkey."""
    relying_party = require_relying_party(console_request)
    secret, now = console_request.site.secret, console_request.now
    return json_response(sign_in_methods.make_request_options(secret, action, relying_party, now))


async def use_passkey(console_request: ConsoleRequest, action: str) -> int:
    """Verify a passkey's signature and return the user's ID; raise 401, or 429 after too many failures.

    Failures are counted only per client, to avoid locking out other people.
    """
    relying_party, credential = require_relying_party(console_request), read_credential(console_request)
    client_ip = console_request.client_ip
    subject = f"passkey {rate_limit_key(client_ip)}"
    async with console_request.transaction() as tx:
        await check_rate_limit(tx, "", subject, client_ip)
    try:
        async with console_request.transaction(writing=True) as tx:
            return await sign_in_methods.verify_passkey(tx, credential, action, relying_party)
    except InvalidPasskey as error:
        async with console_request.transaction(writing=True) as tx:
            await record_failure(tx, subject, client_ip)
        raise rejected_passkey() from error


def rejected_passkey() -> ApiError:
    return ApiError(401, "rest_forbidden", Message("The passkey wasn’t accepted. Try again, or use your password."))


async def show_link(console_request: ConsoleRequest) -> Response:
    """Show who will be signed in, with a button and, for invitations and resets, a password field."""
    async with console_request.transaction() as tx:
        link = await sign_in_methods.find_link(tx, console_request.path_params["token"])
    return _link_page(console_request, link)


async def use_link(console_request: ConsoleRequest) -> Response:
    """Use up the link, set the password if one was sent, and start a session.

    The password is checked and hashed first, so a rejected password does not use up the link.
    """
    token, password = console_request.path_params["token"], console_request.form_text("password")
    async with console_request.transaction() as tx:
        link = await sign_in_methods.find_link(tx, token)
    if link is None:
        return _link_page(console_request, None)
    needs_password = link["purpose"] == Purpose.RESET or (
        link["purpose"] == Purpose.INVITE and "skip" not in console_request.form
    )
    if (password or needs_password) and (problem := identity.find_problem(password)):
        return _link_page(console_request, link, problem)
    password_hash = await _hash(console_request, password) if password else ""
    async with console_request.transaction(writing=True) as tx:
        used = await sign_in_methods.use_link(tx, token)
        if used is None:
            return _link_page(console_request, None)
        if password_hash:
            await user_accounts.set_password_hash(tx, used["user_id"], password_hash)
        new_token = await identity.begin_session(console_request, tx, used["user_id"])
    return identity.continue_with(console_request, new_token, f"{PREFIX}/")


async def _hash(console_request: ConsoleRequest, password: str) -> str:
    return await console_request.state.account_passwords.hash(password, console_request.client_ip)


def _link_page(console_request: ConsoleRequest, link: Row | None, problem: Message | None = None) -> Response:
    """Render the one-time link page. All invalid links get the same page, and no Referer header reveals the link."""
    response = show(
        console_request,
        "one_time_link.html",
        status=404 if link is None else 400 if problem else 200,
        link=link,
        errors={"password": problem} if problem else {},
        minimum=MIN_PASSWORD_LENGTH,
        is_secure=console_request.is_secure,
    )
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


LINK_ROUTES: Final = (
    ConsoleRoute(r"/link/(?P<token>[A-Za-z0-9_-]{1,100})", show_link, use_link, min_role="anonymous"),
)


# The response to a reset request never reveals whether an account exists.

# Each account may receive a burst of emails, then one per interval (in seconds). Excess requests are silently
# ignored.
MAX_EMAILS: Final = 3
EMAIL_INTERVAL: Final = 1200.0


async def show_reset(console_request: ConsoleRequest) -> Response:
    return _reset_page(console_request, login=console_request.query_value("login"))


async def request_reset(console_request: ConsoleRequest) -> Response:
    """Send a link to the account's email address, if any; the response is always the same.

    Each request that can send an email counts as a failed login by the client, to prevent bulk emails.
    """
    login = console_request.form_text("login").strip()
    subject = f"reset {login.lower()[:100]}"
    async with console_request.transaction() as tx:
        try:
            await check_rate_limit(tx, login, subject, console_request.client_ip)
        except ApiError as error:
            response = _reset_page(console_request, login=login, error=error.message, status=429)
            response.headers.update(error.headers)
            return response
    if console_request.state.can_send_links(console_request.site):
        await _send(console_request, login, subject)
    return _reset_page(console_request, login=login, is_done=True)


async def _send(console_request: ConsoleRequest, login: str, subject: str) -> None:
    """Enqueue the email. Unknown logins run the same statements, so they take equally long."""
    async with console_request.transaction(writing=True) as tx:
        await record_failure(tx, subject, console_request.client_ip)
        account = await user_tables.find_account(tx, login)
        user_id, email = (account["id"], account["email"]) if account else (0, "")
        recipient = user_id or login.lower()[:100]
        if await user_tables.count_attempt(tx, f"emails to {recipient}", MAX_EMAILS, EMAIL_INTERVAL):
            await enqueue_link(console_request, tx, user_id, email, Purpose.RESET)


def _reset_page(
    console_request: ConsoleRequest,
    *,
    login: str = "",
    error: Message | None = None,
    is_done: bool = False,
    status: int = 200,
) -> Response:
    return show(
        console_request,
        "reset.html",
        status=status,
        login=login,
        error=error,
        is_done=is_done,
        can_send=console_request.state.can_send_links(console_request.site),
    )


RESET_ROUTES: Final = (ConsoleRoute("/reset", show_reset, request_reset, min_role="anonymous"),)


# Users confirm their identity before they change credentials.


async def show_confirmation(console_request: ConsoleRequest) -> Response:
    return await _page(console_request, console_request.query_value("next"))


async def confirm(console_request: ConsoleRequest) -> Response:
    session, next_path = require_session(console_request), console_request.form_text("next")
    try:
        account = await identity.verify_password(
            console_request, session.login, console_request.form_text("password")
        )
    except ApiError as error:
        if error.status != 429:
            raise
        return await _page(console_request, next_path, error.message, 429)
    if account is None or account["id"] != session.user_id:
        return await _page(console_request, next_path, Message("Wrong password."), 401)
    return await _confirmed(console_request, next_path)


async def offer_passkey_again(console_request: ConsoleRequest) -> Response:
    return await request_options(console_request, _action(console_request))


async def confirm_with_passkey(console_request: ConsoleRequest) -> Response:
    if await use_passkey(console_request, _action(console_request)) != require_session(console_request).user_id:
        raise rejected_passkey()
    return await _confirmed(console_request, console_request.form_text("next"))


def _action(console_request: ConsoleRequest) -> str:
    return f"confirm {require_session(console_request).user_id}"


async def _confirmed(console_request: ConsoleRequest, next_path: str) -> Response:
    async with console_request.write() as tx:
        await confirm_session(tx, require_session(console_request).token_hash)
    return identity.continue_with(console_request, "", safe_next(next_path))


async def _page(
    console_request: ConsoleRequest, next_path: str, error: Message | None = None, status: int = 200
) -> Response:
    session = require_session(console_request)
    async with console_request.transaction() as tx:
        account = await user_tables.find_account(tx, session.login)
        keys = await session_tables.list_passkeys(tx, session.user_id)
    return show(
        console_request,
        "confirm.html",
        status=status,
        error=error,
        next_path=safe_next(next_path),
        has_password=bool(account and account["password_hash"]),
        has_passkeys=bool(keys) and identity.find_relying_party(console_request) is not None,
    )


ROLE: Final = "subscriber"
CONFIRM_ROUTES: Final = (
    ConsoleRoute("/confirm", show_confirmation, confirm, ROLE),
    ConsoleRoute("/confirm/passkey", post=confirm_with_passkey, min_role=ROLE),
    ConsoleRoute("/confirm/passkey/options", post=offer_passkey_again, min_role=ROLE),
)


# Adding and removing passkeys requires a recent proof of identity.

MAX_NAME_LENGTH: Final = 100


async def offer_registration(console_request: ConsoleRequest) -> Response:
    session, relying_party = _require_proof(console_request), require_relying_party(console_request)
    async with console_request.transaction() as tx:
        return json_response(await sign_in_methods.make_registration_options(tx, session, relying_party))


async def register(console_request: ConsoleRequest) -> Response:
    session, relying_party = _require_proof(console_request), require_relying_party(console_request)
    credential, name = read_credential(console_request), _read_name(console_request)
    try:
        async with console_request.write() as tx:
            _require_proof(console_request)
            await sign_in_methods.register_passkey(tx, session.user_id, name, credential, relying_party)
    except InvalidPasskey as error:
        raise rejected_passkey() from error
    return identity.continue_with(console_request, "", f"{ACCOUNT}?notice=passkey-added#passkeys")


async def remove(console_request: ConsoleRequest) -> Response:
    session = require_session(console_request)
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    async with console_request.write() as tx:
        await remove_passkey(tx, session.user_id, read_hex(console_request.form_text("id")))
    return back_to("passkeys", "passkey-removed")


def _require_proof(console_request: ConsoleRequest) -> Session:
    """Return the session; raise 403 if the last proof of identity is too old."""
    session = require_session(console_request)
    if not is_confirmed(console_request):
        raise ApiError(403, "rest_forbidden", Message("Reload the page and confirm it’s you."))
    return session


def _read_name(console_request: ConsoleRequest) -> str:
    try:
        return clean_plain(console_request.form_text("name")[:MAX_NAME_LENGTH], MAX_NAME_LENGTH)
    except InvalidValue:
        return ""


PASSKEY_ROUTES: Final = (
    ConsoleRoute("/account/passkeys", post=register, min_role=ROLE),
    ConsoleRoute("/account/passkeys/options", post=offer_registration, min_role=ROLE),
    ConsoleRoute("/account/passkeys/remove", post=remove, min_role=ROLE),
)
