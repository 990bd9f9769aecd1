"""Links that work once: they sign in, and let the user set a password.

The GET only shows who will be signed in, because programs that check e-mails open every link. The POST uses it up.
"""

from typing import Final

from starlette.responses import Response

from kalends.console.identity import begin_session, continue_with
from kalends.console.passwords import find_problem
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute
from kalends.core.messages import Message
from kalends.operations import accounts, sessions
from kalends.operations.accounts import MIN_PASSWORD_LENGTH
from kalends.operations.sessions import Purpose
from kalends.store import Row


async def show_link(console_request: ConsoleRequest) -> Response:
    """Show who will be signed in, with a button; for invitations and resets also a field for the password."""
    async with console_request.transaction() as tx:
        link = await sessions.find_link(tx, console_request.path_params["token"])
    return _link_page(console_request, link)


async def use_link(console_request: ConsoleRequest) -> Response:
    """Use up the link, set the password if one was sent, and start a session.

    The password is hashed before the link is used up, so that a rejected one can be corrected.
    """
    token, password = console_request.path_params["token"], console_request.form_text("password")
    async with console_request.transaction() as tx:
        link = await sessions.find_link(tx, token)
    if link is None:
        return _link_page(console_request, None)
    needs_password = link["purpose"] == Purpose.RESET or (
        link["purpose"] == Purpose.INVITE and "skip" not in console_request.form
    )
    if (password or needs_password) and (problem := find_problem(password)):
        return _link_page(console_request, link, problem)
    password_hash = await _hash(console_request, password) if password else ""
    async with console_request.transaction(writing=True) as tx:
        used = await sessions.use_link(tx, token)
        if used is None:
            return _link_page(console_request, None)
        if password_hash:
            await accounts.set_password_hash(tx, used["user_id"], password_hash)
        new_token = await begin_session(console_request, tx, used["user_id"])
    return continue_with(console_request, new_token, f"{PREFIX}/")


async def _hash(console_request: ConsoleRequest, password: str) -> str:
    return await console_request.state.account_passwords.hash(password, console_request.client_ip)


def _link_page(console_request: ConsoleRequest, link: Row | None, problem: Message | None = None) -> Response:
    """Render the page of a link; all links that do not work get the same one. Its address is in no Referer header."""
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


ROUTES: Final = (ConsoleRoute(r"/link/(?P<token>[A-Za-z0-9_-]{1,100})", show_link, use_link, min_role="anonymous"),)
