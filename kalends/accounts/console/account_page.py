"""The account page: profile, password, passkeys, devices, application passwords."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.accounts.console.identity import begin_session, continue_with, find_problem, find_relying_party
from kalends.accounts.operations import user_accounts
from kalends.accounts.operations.user_accounts import MIN_PASSWORD_LENGTH
from kalends.accounts.storage import session_tables, user_tables
from kalends.accounts.storage.session_tables import Session, end_session, end_sessions, list_sessions
from kalends.console.console_rendering import show
from kalends.console.console_request import (
    PREFIX,
    ConsoleRequest,
    ConsoleRoute,
    is_confirmed,
    redirect,
    require_confirmed,
)
from kalends.core import errors, times
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.messages import LANGUAGES, Message, translator
from kalends.rendering.page_locale import make_page_locale
from kalends.store import Row

# The first match wins, because many browsers also name other browsers in their User-Agent header.
BROWSERS: Final = (
    ("Edg/", "Edge"), ("EdgA/", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
SYSTEMS: Final = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("CrOS", "ChromeOS"), ("Windows", "Windows"),
    ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


def describe_user_agent(user_agent: str) -> tuple[str, str]:
    """Return the browser and system names; empty if unknown."""
    return _find(BROWSERS, user_agent), _find(SYSTEMS, user_agent)


def _find(names: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for part, name in names if part in user_agent), "")


ACCOUNT: Final = f"{PREFIX}/account"
MAX_USES: Final = 20


def require_session(console_request: ConsoleRequest) -> Session:
    """Return the session, or raise 404 if it has ended."""
    if console_request.session is None:
        raise errors.no_route()
    return console_request.session


def describe_problem(error: InvalidValue) -> Message:
    """Return an error's message without the argument name."""
    return error.problem if isinstance(error, InvalidArgument) else error.message


def back_to(section: str, notice: str = "") -> Response:
    response = redirect(ACCOUNT, notice)
    response.headers["Location"] += f"#{section}"
    return response


async def account_page(
    console_request: ConsoleRequest, *, status: int = 200, problems: dict[str, Message] | None = None, **values: Any
) -> Response:
    """Render the page. `problems` maps fields to messages; `values` holds the submitted values to show again."""
    session = require_session(console_request)
    async with console_request.transaction() as tx:
        account = await user_tables.find_account(tx, session.login)
        devices = [_describe_device(row, session) for row in await list_sessions(tx, session.user_id)]
        keys = await session_tables.list_passkeys(tx, session.user_id)
        app_passwords = await user_tables.list_application_passwords(tx, session.user_id)
        uses = await user_tables.list_uses(tx, session.user_id)
    given = {
        "display_name": session.display_name,
        "email": session.email,
        "language": session.language,
        "queue_email": account is None or account["queue_email"],
    }
    return show(
        console_request,
        "account.html",
        status=status,
        errors=problems or {},
        values={**given, "name": "", **values.pop("values", {})},
        languages=[*LANGUAGES.items()],
        has_password=bool(account and account["password_hash"]),
        is_confirmed=is_confirmed(console_request),
        has_passkeys=find_relying_party(console_request) is not None,
        devices=devices,
        passkeys=keys,
        app_passwords=app_passwords,
        uses=[_describe_use(row) for row in uses[:MAX_USES]],
        minimum=MIN_PASSWORD_LENGTH,
        device_name=_join_names(describe_user_agent(console_request.request.headers.get("user-agent", ""))),
        format_moment=make_moment_format(console_request),
        new_password=values.pop("new_password", ""),
    )


def make_moment_format(console_request: ConsoleRequest) -> Callable[[datetime], str]:
    """Return a function that formats a time in the site's time zone and the page's language."""
    site, language = console_request.site, console_request.language
    locale = make_page_locale(language, site.language, translator(language))

    def format_moment(moment: datetime) -> str:
        local = times.local_of(moment, site.timezone)
        return f"{locale.bare_day(local.date())} {locale.time(local)}"

    return format_moment


def _describe_device(row: Row, session: Session) -> dict[str, Any]:
    browser, system = describe_user_agent(row["user_agent"])
    is_current = row["token_hash"] == session.token_hash
    return {**row, "id": row["token_hash"].hex(), "browser": browser, "system": system, "is_current": is_current}


def _describe_use(row: Row) -> dict[str, Any]:
    return {**row, "program": _join_names(describe_user_agent(row["user_agent"])) or row["user_agent"][:60]}


def _join_names(names: tuple[str, str]) -> str:
    return ", ".join(name for name in names if name)


def read_hex(text: str) -> bytes:
    """Decode a hexadecimal ID from a form; return b"" if it is malformed."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


async def show_account(console_request: ConsoleRequest) -> Response:
    return await account_page(console_request)


async def save_profile(console_request: ConsoleRequest) -> Response:
    """Change the display name, language and email address. A new address requires a recent proof of identity."""
    session = require_session(console_request)
    name, language = console_request.form_text("display_name"), console_request.form_text("language")
    email = console_request.form_text("email").strip() if "email" in console_request.form else session.email
    wants_summary = console_request.form_text("queue_email") != "false"
    if email != session.email and (response := require_confirmed(console_request, ACCOUNT)):
        return response
    try:
        async with console_request.write() as tx:
            await user_accounts.set_profile(tx, session.login, name, language, queue_email=wants_summary)
            if email != session.email:
                await user_accounts.set_email(tx, session.login, email)
    except InvalidValue as error:
        is_name = isinstance(error, InvalidArgument) and error.name == "display_name"
        problems = {"display_name" if is_name else "email": describe_problem(error)}
        sent = {"display_name": name, "email": email, "language": language, "queue_email": wants_summary}
        return await account_page(console_request, status=400, problems=problems, values=sent)
    return back_to("profile", "saved")


async def change_password(console_request: ConsoleRequest) -> Response:
    """Set a new password, end all other sessions, and renew the token of the current session."""
    session, password = require_session(console_request), console_request.form_text("new_password")
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    if problem := find_problem(password):
        return await account_page(console_request, status=400, problems={"new_password": problem})
    password_hash = await console_request.state.account_passwords.hash(password, console_request.client_ip)
    async with console_request.write() as tx:
        if console_request.session is None or not is_confirmed(console_request):
            return back_to("password")
        await user_accounts.set_password_hash(tx, session.user_id, password_hash)
        token = await begin_session(console_request, tx, session.user_id)
    return continue_with(console_request, token, ACCOUNT, "password-changed")


async def end_device(console_request: ConsoleRequest) -> Response:
    session, token_hash = require_session(console_request), read_hex(console_request.form_text("id"))
    async with console_request.write() as tx:
        await end_session(tx, session.user_id, token_hash)
    return back_to("devices", "signed-out-device")


async def end_other_devices(console_request: ConsoleRequest) -> Response:
    session = require_session(console_request)
    async with console_request.write() as tx:
        await end_sessions(tx, session.user_id, session.token_hash)
    return back_to("devices", "signed-out-device")


async def create_application_password(console_request: ConsoleRequest) -> Response:
    session, name = require_session(console_request), console_request.form_text("name")
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    access = console_request.form_text("access")
    rights = {"read_only": access != "full", "may_propose": access == "propose"}
    try:
        async with console_request.write() as tx:
            password = await user_accounts.add_application_password(tx, session.login, name, **rights)
    except InvalidValue:
        problem = Message("Enter a name that you don’t use for another application password.")
        return await account_page(console_request, status=400, problems={"name": problem}, values={"name": name})
    return await account_page(console_request, new_password=password)


async def revoke_application_password(console_request: ConsoleRequest) -> Response:
    """Revoke an application password. This needs no proof of identity, because it only removes access."""
    session = require_session(console_request)
    async with console_request.write() as tx:
        await user_tables.remove_application_password(tx, session.user_id, console_request.form_text("name"))
    return back_to("application-passwords", "revoked")


ROLE: Final = "subscriber"
ROUTES: Final = (
    ConsoleRoute("/account", show_account, save_profile, ROLE),
    ConsoleRoute("/account/password", post=change_password, min_role=ROLE),
    ConsoleRoute("/account/devices/sign-out", post=end_device, min_role=ROLE),
    ConsoleRoute("/account/devices/sign-out-others", post=end_other_devices, min_role=ROLE),
    ConsoleRoute("/account/application-passwords", post=create_application_password, min_role=ROLE),
    ConsoleRoute("/account/application-passwords/revoke", post=revoke_application_password, min_role=ROLE),
)
