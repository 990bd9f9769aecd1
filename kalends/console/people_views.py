"""People: the accounts of a site, invitations, roles, disabling and removing."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.console.confirmation import require_confirmed
from kalends.console.invitations import SentLink, send_link
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.role_names import ROLE_NAMES, ROLE_RIGHTS
from kalends.core import errors, times
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.roles import ROLES
from kalends.http.language import translator
from kalends.operations import accounts, people
from kalends.operations.people import Person, State
from kalends.operations.sessions import Purpose
from kalends.store.database import Transaction
from kalends.store.users import count_own_records
from kalends.website.models.page_locale import make_page_locale

PEOPLE: Final = f"{PREFIX}/people"
NEW: Final = f"{PEOPLE}/new"
DEFAULT_ROLE: Final = "author"
STATE_NAMES: Final = {
    State.INVITED: N_("Invited"),
    State.ACTIVE: N_("Active"),
    State.DISABLED: N_("Disabled"),
}
STATE_STYLES: Final = {State.INVITED: "is-warning", State.ACTIVE: "is-positive", State.DISABLED: "is-negative"}
# The notice after a link was sent by e-mail.
SENT_NOTICES: Final = {
    Purpose.INVITE: "invited",
    Purpose.SIGN_IN: "link-sent",
    Purpose.RESET: "link-sent",
}
Change = Callable[[Transaction, Person], Awaitable[object]]


async def show_people(console_request: ConsoleRequest) -> Response:
    """List all accounts."""
    async with console_request.transaction() as tx:
        found = await people.list_people(tx)
    return _page(console_request, "people.html", people=found)


async def show_invitation(console_request: ConsoleRequest) -> Response:
    """Show the form that invites a person."""
    return require_confirmed(console_request) or _invitation_page(
        console_request, {"login": "", "role": DEFAULT_ROLE}
    )


async def invite(console_request: ConsoleRequest) -> Response:
    """Add an account and send the invitation, or show its link."""
    if response := require_confirmed(console_request):
        return response
    values = {name: console_request.form_text(name) for name in ("login", "role")}
    try:
        async with console_request.write() as tx:
            person = await people.invite(tx, values["login"], values["role"])
            link = await send_link(console_request, tx, person.id, person.email, Purpose.INVITE)
    except InvalidValue as error:
        is_role = isinstance(error, InvalidArgument) and error.name == "ROLE"
        return _invitation_page(console_request, values, {"role" if is_role else "login": _problem(error)})
    return _show_link(console_request, person, link, Purpose.INVITE)


async def show_person(console_request: ConsoleRequest) -> Response:
    """Show an account with the forms that change it."""
    return require_confirmed(console_request) or await _person_page(console_request)


async def set_role(console_request: ConsoleRequest) -> Response:
    """Change the role of an account."""
    role = console_request.form_text("role")

    async def change(tx: Transaction, person: Person) -> None:
        if role != "administrator":
            _require_own_consent(console_request, person)
        if role != person.role:  # A change of role ends the sessions.
            await accounts.set_role(tx, person.login, role)

    return await _change(console_request, change, "saved")


async def disable(console_request: ConsoleRequest) -> Response:
    """Prevent an account from signing in."""

    async def change(tx: Transaction, person: Person) -> None:
        _require_own_consent(console_request, person)
        await accounts.disable_user(tx, person.login)

    return await _change(console_request, change, "disabled")


async def enable(console_request: ConsoleRequest) -> Response:
    """Let a disabled account sign in again."""
    return await _change(console_request, lambda tx, person: accounts.enable_user(tx, person.login), "enabled")


async def create_link(console_request: ConsoleRequest) -> Response:
    """Send a link that invites, signs in or resets the password, or show it."""
    purpose = {row.value: row for row in SENT_NOTICES}.get(console_request.form_text("purpose"))
    if purpose is None:
        raise errors.no_route()
    if response := require_confirmed(console_request, _person_path(console_request)):
        return response
    async with console_request.write() as tx:
        person = await people.read_person(tx, _person_id(console_request))
        if person.state is State.DISABLED:
            raise errors.conflict()
        link = await send_link(console_request, tx, person.id, person.email, purpose)
    return _show_link(console_request, person, link, purpose)


async def remove(console_request: ConsoleRequest) -> Response:
    """Remove an account; another one becomes the author of its records."""
    reassign_to = console_request.form_text("reassign_to")

    async def change(tx: Transaction, person: Person) -> None:
        _require_own_consent(console_request, person)
        await accounts.remove_user(tx, person.login, reassign_to)

    return await _change(console_request, change, "removed", PEOPLE)


async def _change(console_request: ConsoleRequest, change: Change, notice: str, next_path: str = "") -> Response:
    """Change the account in the path, in one transaction. A refusal is shown on the page of the account."""
    path = _person_path(console_request)
    if response := require_confirmed(console_request, path):
        return response
    try:
        async with console_request.write() as tx:
            await change(tx, await people.read_person(tx, _person_id(console_request)))
    except accounts.AuthorNeeded:
        return await _person_page(console_request, Message("Choose who becomes the author of the records."))
    except InvalidValue as error:
        return await _person_page(console_request, _problem(error))
    return redirect(next_path or path, notice)


def _require_own_consent(console_request: ConsoleRequest, person: Person) -> None:
    """Reject a change that takes the rights of the administrator who makes it, unless its box is checked."""
    if person.id == console_request.actor.user_id and console_request.form_text("confirm") != "true":
        raise InvalidValue("This is your own account. Check the box to confirm that you give up your rights.")


def _problem(error: InvalidValue) -> Message:
    """Return the message without the name of the argument of the command."""
    return error.problem if isinstance(error, InvalidArgument) else error.message


def _person_id(console_request: ConsoleRequest) -> int:
    return int(console_request.path_params["id"])


def _person_path(console_request: ConsoleRequest) -> str:
    return f"{PEOPLE}/{_person_id(console_request)}"


async def _person_page(console_request: ConsoleRequest, error: Message | None = None) -> Response:
    async with console_request.transaction() as tx:
        person = await people.read_person(tx, _person_id(console_request))
        others = [row for row in await people.list_people(tx) if row.id != person.id and row.state != State.DISABLED]
        record_count = await count_own_records(tx, person.id)
    return _page(
        console_request,
        "person.html",
        status=400 if error else 200,
        person=person,
        others=others,
        record_count=record_count,
        is_own=person.id == console_request.actor.user_id,
        error=error,
    )


def _invitation_page(
    console_request: ConsoleRequest, values: dict[str, str], problems: dict[str, Message] | None = None
) -> Response:
    return _page(
        console_request,
        "invitation.html",
        status=400 if problems else 200,
        values=values,
        errors=problems or {},
        sends_email=console_request.state.sends_email,
    )


def _show_link(console_request: ConsoleRequest, person: Person, link: SentLink, purpose: Purpose) -> Response:
    """Continue with the list after an e-mail was sent, else show the link, which nobody can see again."""
    if link.is_sent:
        return redirect(PEOPLE, SENT_NOTICES[purpose])
    return _page(console_request, "link.html", person=person, url=link.url, purpose=purpose.value)


def _page(console_request: ConsoleRequest, template: str, **values: Any) -> Response:
    """Render a page with the names of roles and states."""
    site, language = console_request.site, console_request.language
    locale = make_page_locale(language, site.language, translator(language))

    def format_moment(moment: datetime) -> str:
        local = times.local_of(moment, site.timezone)
        return f"{locale.bare_day(local.date())} {locale.time(local)}"

    names: dict[str, Any] = {
        "roles": ROLES[1:],
        "role_names": ROLE_NAMES,
        "role_rights": ROLE_RIGHTS,
        "state_names": STATE_NAMES,
        "state_styles": STATE_STYLES,
    }
    return show(console_request, template, format_moment=format_moment, **names, **values)


PERSON: Final = r"/people/(?P<id>\d{1,18})"
ADMINISTRATOR: Final = "administrator"
ROUTES: Final = (
    ConsoleRoute("/people", show_people, min_role=ADMINISTRATOR),
    ConsoleRoute("/people/new", show_invitation, invite, ADMINISTRATOR),
    ConsoleRoute(PERSON, show_person, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/role", post=set_role, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/disable", post=disable, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/enable", post=enable, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/link", post=create_link, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/remove", post=remove, min_role=ADMINISTRATOR),
)
