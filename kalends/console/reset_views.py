"""Requesting a link for a new password. The response never reveals whether an account exists."""

from typing import Final

from starlette.responses import Response

from kalends.console.invitations import enqueue_link
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.http.auth import check_rate_limit, record_failure
from kalends.operations.sessions import Purpose
from kalends.store import users

# E-mails to one account: a burst, then one per interval in seconds. Further requests are ignored silently.
MAX_EMAILS: Final = 3
EMAIL_INTERVAL: Final = 1200.0


async def show_reset(console_request: ConsoleRequest) -> Response:
    """Show the form that requests a link."""
    return _reset_page(console_request, login=console_request.query_value("login"))


async def request_reset(console_request: ConsoleRequest) -> Response:
    """Send a link to the e-mail address of the account, if there is one; the response is the same in any case.

    Every request counts as a failed login of the client, so that nobody can send e-mails in bulk.
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
    if can_send_links(console_request):
        await _send(console_request, login, subject)
    return _reset_page(console_request, login=login, is_done=True)


async def _send(console_request: ConsoleRequest, login: str, subject: str) -> None:
    """Enqueue the e-mail. For an unknown login the same statements run, so that the response takes as long.

    The worker ignores an e-mail without a recipient.
    """
    async with console_request.transaction(writing=True) as tx:
        await record_failure(tx, subject, console_request.client_ip)
        account = await users.find_account(tx, login)
        user_id, email = (account["id"], account["email"]) if account else (0, "")
        recipient = user_id or login.lower()[:100]
        if await users.count_attempt(tx, f"e-mails to {recipient}", MAX_EMAILS, EMAIL_INTERVAL):
            await enqueue_link(console_request, tx, user_id, email, Purpose.RESET)


def can_send_links(console_request: ConsoleRequest) -> bool:
    """Return whether links can be sent to people who are not signed in.

    That requires a configured base URL: with the Host header of the request, anybody could have links to their own
    host sent.
    """
    return console_request.state.sends_email and bool(console_request.site.base_url or console_request.state.base_url)


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
        can_send=can_send_links(console_request),
    )


ROUTES: Final = (ConsoleRoute("/reset", show_reset, request_reset, min_role="anonymous"),)
