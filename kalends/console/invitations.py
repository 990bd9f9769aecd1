"""Links that work once: sent by e-mail, or shown to the administrator who created them."""

from dataclasses import dataclass
from typing import Final

from kalends.console.request import ConsoleRequest
from kalends.core.languages import find_language
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import DEFAULT, translator
from kalends.operations.emails import LINK, RequestedLink, enqueue_email
from kalends.operations.sessions import Purpose, create_link
from kalends.store import users
from kalends.store.database import Transaction

SUBJECTS: Final = {
    Purpose.SIGN_IN: N_("Sign in: {site}"),
    Purpose.INVITE: N_("Invitation: {site}"),
    Purpose.RESET: N_("New password: {site}"),
}
TEXTS: Final = {
    Purpose.SIGN_IN: N_(
        "Open this link to sign in to the calendar {site}:\n\n{link}\n\nIt works once, within one hour. If you did "
        "not expect this e-mail, ignore it."
    ),
    Purpose.INVITE: N_(
        "You are invited to write for the calendar {site}. Open this link to choose a password and sign in:\n\n"
        "{link}\n\nIt works once, within seven days. If you did not expect this e-mail, ignore it."
    ),
    Purpose.RESET: N_(
        "Somebody, probably you, requested a new password for your account at the calendar {site}. Open this link to "
        "choose one:\n\n{link}\n\nIt works once, within one hour. If it was not you, ignore this e-mail: your "
        "password stays the same."
    ),
}


@dataclass(frozen=True, slots=True)
class SentLink:
    """A link that was created: `url` is empty if it was sent by e-mail, because nobody else may know it."""

    url: str
    is_sent: bool


async def send_link(
    console_request: ConsoleRequest, tx: Transaction, user_id: int, email: str, purpose: Purpose
) -> SentLink:
    """Send a one-time link to a user if that is possible, else return it.

    The server may have no SMTP server, and the account no e-mail address; then the link is to be shown to the
    administrator who created it.
    """
    if not console_request.state.sends_email or not email:
        return SentLink(await create_link(tx, user_id, purpose, console_request.origin_url), is_sent=False)
    await enqueue_link(console_request, tx, user_id, email, purpose)
    return SentLink("", is_sent=True)


async def enqueue_link(
    console_request: ConsoleRequest, tx: Transaction, user_id: int, email: str, purpose: Purpose
) -> None:
    """Send a one-time link by e-mail, in the language of its recipient."""
    translate = translator(choose_language(tx, await users.find_preferred_language(tx, user_id)))
    subject = Message(SUBJECTS[purpose], site=tx.site.name).render(translate)
    text = Message(TEXTS[purpose], site=tx.site.name, link=LINK).render(translate)
    await enqueue_email(tx, email, subject, text, RequestedLink(user_id, purpose, console_request.origin_url))


def choose_language(tx: Transaction, own: str) -> str:
    """Return the language of an e-mail: the one that its recipient has chosen, else that of the site."""
    return (find_language(own) if own else None) or find_language(tx.site.language) or DEFAULT
