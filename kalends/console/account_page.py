"""The page of the user's own account: profile, password, passkeys, devices, application passwords."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.console.confirmation import is_confirmed
from kalends.console.identity import find_relying_party
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, redirect
from kalends.console.user_agents import describe_user_agent
from kalends.core import errors, times
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.languages import LANGUAGES
from kalends.core.messages import Message
from kalends.http.language import translator
from kalends.operations.accounts import MIN_PASSWORD_LENGTH
from kalends.store import Row, passkeys, users
from kalends.store.sessions import Session, list_sessions
from kalends.website.models.page_locale import make_page_locale

ACCOUNT: Final = f"{PREFIX}/account"
MAX_USES: Final = 20


def require_session(console_request: ConsoleRequest) -> Session:
    """Return the session; raise 404 if it has ended meanwhile."""
    if console_request.session is None:
        raise errors.no_route()
    return console_request.session


def describe_problem(error: InvalidValue) -> Message:
    """Return the message of an error without the name of the argument."""
    return error.problem if isinstance(error, InvalidArgument) else error.message


def back_to(section: str, notice: str = "") -> Response:
    """Redirect to a section of the page."""
    response = redirect(ACCOUNT, notice)
    response.headers["Location"] += f"#{section}"
    return response


async def account_page(
    console_request: ConsoleRequest,
    *,
    status: int = 200,
    problems: dict[str, Message] | None = None,
    **values: Any,
) -> Response:
    """Render the page. `problems` are messages by field, `values` what was sent and is shown again."""
    session = require_session(console_request)
    async with console_request.transaction() as tx:
        account = await users.find_account(tx, session.login)
        devices = [_describe_device(row, session) for row in await list_sessions(tx, session.user_id)]
        keys = await passkeys.list_passkeys(tx, session.user_id)
        app_passwords = await users.list_application_passwords(tx, session.user_id)
        uses = await users.list_uses(tx, session.user_id)
    given = {"display_name": session.display_name, "email": session.email, "language": session.language}
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
    """Return a function that formats a time in the time zone of the site and the language of the page."""
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
    """Return the bytes of an ID in a form; none if it is malformed."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
