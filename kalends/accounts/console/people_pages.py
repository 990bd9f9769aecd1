"""People pages: a site's accounts, invitations and roles; disabling and removing accounts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from kalends.accounts.console.account_page import describe_problem, make_moment_format
from kalends.accounts.operations import user_accounts
from kalends.accounts.operations.sign_in_methods import Purpose, create_link
from kalends.accounts.operations.user_accounts import LINK, Person, RequestedLink, State, enqueue_email
from kalends.accounts.storage import user_tables
from kalends.accounts.storage.user_tables import count_own_records
from kalends.console.console_rendering import ADMINISTRATOR, show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect, require_confirmed
from kalends.console.record_views import read_id
from kalends.core import errors
from kalends.core.credentials import ROLES
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.messages import Message, choose_email_language, gettext_noop as N_, translator
from kalends.store.database import Transaction

ROLE_NAMES: Final = {
    "subscriber": N_("Subscriber"),
    "contributor": N_("Contributor"),
    "author": N_("Author"),
    "editor": N_("Editor"),
    "administrator": N_("Administrator"),
}
ROLE_RIGHTS: Final = {
    "subscriber": N_("Reads published events only."),
    "contributor": N_("Writes drafts that others publish."),
    "author": N_("Publishes and edits their own events, uploads pictures."),
    "editor": N_("Publishes and edits all events."),
    "administrator": N_("Everything, including people and settings."),
}


# One-time links are sent by email or shown to the administrator who created them.

SUBJECTS: Final = {
    Purpose.SIGN_IN: N_("Sign in: {site}"),
    Purpose.INVITE: N_("Invitation: {site}"),
    Purpose.RESET: N_("New password: {site}"),
}
TEXTS: Final = {
    Purpose.SIGN_IN: N_(
        "Open this link to sign in to {site}:\n\n{link}\n\nIt works once and expires in one hour. If you didn’t "
        "expect this email, you can ignore it."
    ),
    Purpose.INVITE: N_(
        "You’re invited to write for the calendar {site}. Open this link to choose a password and sign in:\n\n"
        "{link}\n\nIt works once and expires in seven days. If you didn’t expect this email, you can ignore it."
    ),
    Purpose.RESET: N_(
        "Someone, probably you, asked for a new password for your account on {site}. Open this link to choose "
        "one:\n\n{link}\n\nIt works once and expires in one hour. If it wasn’t you, ignore this email: your password "
        "stays the same."
    ),
}


@dataclass(frozen=True, slots=True)
class SentLink:
    """A new link. If it was sent by email, `url` is empty, because only the recipient may know the URL."""

    url: str
    is_sent: bool


async def send_link(
    console_request: ConsoleRequest, tx: Transaction, user_id: int, email: str, purpose: Purpose
) -> SentLink:
    """Email a one-time link to a user if possible; otherwise return it.

    Without an SMTP server or an email address, the administrator who created the link passes it on.
    """
    if not console_request.state.sends_email or not email:
        return SentLink(await create_link(tx, user_id, purpose, console_request.origin_url), is_sent=False)
    await enqueue_link(console_request, tx, user_id, email, purpose)
    return SentLink("", is_sent=True)


async def enqueue_link(
    console_request: ConsoleRequest, tx: Transaction, user_id: int, email: str, purpose: Purpose
) -> None:
    """Enqueue an email with a one-time link, in the recipient's language."""
    translate = translator(
        choose_email_language(await user_tables.find_preferred_language(tx, user_id), tx.site.language)
    )
    subject = Message(SUBJECTS[purpose], site=tx.site.name).render(translate)
    text = Message(TEXTS[purpose], site=tx.site.name, link=LINK).render(translate)
    await enqueue_email(tx, email, subject, text, RequestedLink(user_id, purpose, console_request.origin_url))


PEOPLE: Final = f"{PREFIX}/people"
NEW: Final = f"{PEOPLE}/new"
DEFAULT_ROLE: Final = "author"
STATE_NAMES: Final = {State.INVITED: N_("Invited"), State.ACTIVE: N_("Active"), State.DISABLED: N_("Disabled")}
STATE_STYLES: Final = {State.INVITED: "is-warning", State.ACTIVE: "is-positive", State.DISABLED: "is-negative"}
SENT_NOTICES: Final = {Purpose.INVITE: "invited", Purpose.SIGN_IN: "link-sent", Purpose.RESET: "link-sent"}
Change = Callable[[Transaction, Person], Awaitable[object]]


async def show_people(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        found = await user_accounts.list_people(tx)
    return _page(console_request, "people.html", people=found)


async def show_invitation(console_request: ConsoleRequest) -> Response:
    return require_confirmed(console_request) or _invitation_page(
        console_request, {"login": "", "role": DEFAULT_ROLE}
    )


async def invite(console_request: ConsoleRequest) -> Response:
    if response := require_confirmed(console_request):
        return response
    values = {name: console_request.form_text(name) for name in ("login", "role")}
    try:
        async with console_request.write() as tx:
            person = await user_accounts.invite(tx, values["login"], values["role"])
            link = await send_link(console_request, tx, person.id, person.email, Purpose.INVITE)
    except InvalidValue as error:
        is_role = isinstance(error, InvalidArgument) and error.name == "ROLE"
        return _invitation_page(console_request, values, {"role" if is_role else "login": describe_problem(error)})
    return _show_link(console_request, person, link, Purpose.INVITE)


async def show_person(console_request: ConsoleRequest) -> Response:
    return require_confirmed(console_request) or await _person_page(console_request)


async def set_role(console_request: ConsoleRequest) -> Response:
    role = console_request.form_text("role")

    async def change(tx: Transaction, person: Person) -> None:
        if role != "administrator":
            _require_own_consent(console_request, person)
        if role != person.role:  # A new role ends the person's sessions.
            await user_accounts.set_role(tx, person.login, role)

    return await _change(console_request, change, "saved")


async def disable(console_request: ConsoleRequest) -> Response:
    async def change(tx: Transaction, person: Person) -> None:
        _require_own_consent(console_request, person)
        await user_accounts.disable_user(tx, person.login)

    return await _change(console_request, change, "disabled")


async def enable(console_request: ConsoleRequest) -> Response:
    return await _change(console_request, lambda tx, person: user_accounts.enable_user(tx, person.login), "enabled")


async def create_sign_in_link(console_request: ConsoleRequest) -> Response:
    purpose = {row.value: row for row in SENT_NOTICES}.get(console_request.form_text("purpose"))
    if purpose is None:
        raise errors.no_route()
    if response := require_confirmed(console_request, _person_path(console_request)):
        return response
    async with console_request.write() as tx:
        person = await user_accounts.read_person(tx, read_id(console_request))
        if person.state is State.DISABLED:
            raise errors.conflict()
        link = await send_link(console_request, tx, person.id, person.email, purpose)
    return _show_link(console_request, person, link, purpose)


async def remove(console_request: ConsoleRequest) -> Response:
    reassign_to = console_request.form_text("reassign_to")

    async def change(tx: Transaction, person: Person) -> None:
        _require_own_consent(console_request, person)
        await user_accounts.remove_user(tx, person.login, reassign_to)

    return await _change(console_request, change, "removed", PEOPLE)


async def _change(console_request: ConsoleRequest, change: Change, notice: str, next_path: str = "") -> Response:
    """Change the account in the path in one transaction. If the change is rejected, show why on the person's page."""
    path = _person_path(console_request)
    if response := require_confirmed(console_request, path):
        return response
    try:
        async with console_request.write() as tx:
            await change(tx, await user_accounts.read_person(tx, read_id(console_request)))
    except user_accounts.AuthorNeeded:
        return await _person_page(console_request, Message("Choose a new author for the records."))
    except InvalidValue as error:
        return await _person_page(console_request, describe_problem(error))
    return redirect(next_path or path, notice)


def _require_own_consent(console_request: ConsoleRequest, person: Person) -> None:
    """Require a checked box before administrators remove their own rights."""
    if person.id == console_request.actor.user_id and console_request.form_text("confirm") != "true":
        raise InvalidValue("This is your own account. Check the box to confirm that you’re giving up these rights.")


def _person_path(console_request: ConsoleRequest) -> str:
    return f"{PEOPLE}/{read_id(console_request)}"


async def _person_page(console_request: ConsoleRequest, error: Message | None = None) -> Response:
    async with console_request.transaction() as tx:
        person = await user_accounts.read_person(tx, read_id(console_request))
        others = [
            row for row in await user_accounts.list_people(tx) if row.id != person.id and row.state != State.DISABLED
        ]
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
    """Redirect to the list of people if the link was sent; otherwise show the link once."""
    if link.is_sent:
        return redirect(PEOPLE, SENT_NOTICES[purpose])
    return _page(console_request, "link.html", person=person, url=link.url, purpose=purpose.value)


def _page(console_request: ConsoleRequest, template: str, **values: Any) -> Response:
    names: dict[str, Any] = {
        "roles": ROLES[1:],
        "role_names": ROLE_NAMES,
        "role_rights": ROLE_RIGHTS,
        "state_names": STATE_NAMES,
        "state_styles": STATE_STYLES,
    }
    return show(console_request, template, format_moment=make_moment_format(console_request), **names, **values)


PERSON: Final = r"/people/(?P<id>\d{1,18})"
ROUTES: Final = (
    ConsoleRoute("/people", show_people, min_role=ADMINISTRATOR),
    ConsoleRoute("/people/new", show_invitation, invite, ADMINISTRATOR),
    ConsoleRoute(PERSON, show_person, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/role", post=set_role, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/disable", post=disable, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/enable", post=enable, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/link", post=create_sign_in_link, min_role=ADMINISTRATOR),
    ConsoleRoute(f"{PERSON}/remove", post=remove, min_role=ADMINISTRATOR),
)
