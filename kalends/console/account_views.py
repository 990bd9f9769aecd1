"""Changes on the page of the own account: profile, password, devices, application passwords."""

from typing import Final

from starlette.responses import Response

from kalends.console.account_page import (
    ACCOUNT,
    account_page,
    back_to,
    describe_problem,
    read_hex,
    require_session,
)
from kalends.console.confirmation import is_confirmed, require_confirmed
from kalends.console.identity import begin_session, continue_with
from kalends.console.passwords import find_problem
from kalends.console.request import ConsoleRequest, ConsoleRoute
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.messages import Message
from kalends.operations import accounts
from kalends.store import users
from kalends.store.sessions import end_session, end_sessions


async def show_account(console_request: ConsoleRequest) -> Response:
    """Show the page of the own account."""
    return await account_page(console_request)


async def save_profile(console_request: ConsoleRequest) -> Response:
    """Change the display name, the language and the e-mail address, which requires a recent proof of identity."""
    session = require_session(console_request)
    name, language = console_request.form_text("display_name"), console_request.form_text("language")
    email = console_request.form_text("email").strip() if "email" in console_request.form else session.email
    if email != session.email and (response := require_confirmed(console_request, ACCOUNT)):
        return response
    try:
        async with console_request.write() as tx:
            await accounts.set_profile(tx, session.login, name, language)
            if email != session.email:
                await accounts.set_email(tx, session.login, email)
    except InvalidValue as error:
        is_name = isinstance(error, InvalidArgument) and error.name == "display_name"
        problems = {"display_name" if is_name else "email": describe_problem(error)}
        sent = {"display_name": name, "email": email, "language": language}
        return await account_page(console_request, status=400, problems=problems, values=sent)
    return back_to("profile", "saved")


async def change_password(console_request: ConsoleRequest) -> Response:
    """Set a new password. All other sessions end, and this one gets a new token."""
    session, password = require_session(console_request), console_request.form_text("new_password")
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    if problem := find_problem(password):
        return await account_page(console_request, status=400, problems={"new_password": problem})
    password_hash = await console_request.state.account_passwords.hash(password, console_request.client_ip)
    async with console_request.write() as tx:
        if console_request.session is None or not is_confirmed(console_request):
            return back_to("password")
        await accounts.set_password_hash(tx, session.user_id, password_hash)
        token = await begin_session(console_request, tx, session.user_id)
    return continue_with(console_request, token, ACCOUNT, "password-changed")


async def end_device(console_request: ConsoleRequest) -> Response:
    """End the session of another browser."""
    session, token_hash = require_session(console_request), read_hex(console_request.form_text("id"))
    async with console_request.write() as tx:
        await end_session(tx, session.user_id, token_hash)
    return back_to("devices", "signed-out-device")


async def end_other_devices(console_request: ConsoleRequest) -> Response:
    """End the sessions of all other browsers."""
    session = require_session(console_request)
    async with console_request.write() as tx:
        await end_sessions(tx, session.user_id, session.token_hash)
    return back_to("devices", "signed-out-device")


async def create_application_password(console_request: ConsoleRequest) -> Response:
    """Create an application password and show it, this once."""
    session, name = require_session(console_request), console_request.form_text("name")
    if response := require_confirmed(console_request, ACCOUNT):
        return response
    is_read_only = console_request.form_text("read_only") == "true"
    try:
        async with console_request.write() as tx:
            login = session.login
            password = await accounts.add_application_password(tx, login, name, read_only=is_read_only)
    except InvalidValue:
        problem = Message("Enter a name that none of your other application passwords has.")
        return await account_page(console_request, status=400, problems={"name": problem}, values={"name": name})
    return await account_page(console_request, new_password=password)


async def revoke_application_password(console_request: ConsoleRequest) -> Response:
    """Revoke an application password. This needs no proof: it takes access away."""
    session = require_session(console_request)
    async with console_request.write() as tx:
        await users.remove_application_password(tx, session.user_id, console_request.form_text("name"))
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
