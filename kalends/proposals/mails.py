"""The emails about proposals.

A job only names what an email is about. The worker reads the address, creates tokens for links and writes the text.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kalends.core.messages import choose_email_language, find_language, gettext_noop as N_, translator
from kalends.core.times import local_of, utc_now
from kalends.proposals import storage
from kalends.proposals.operations.proposal_subjects import hash_token, load_subject
from kalends.proposals.rules import DECIDED, MAX_LINKS, REASON_TEXTS, REASONS, Mail
from kalends.rendering.cards import read_title, shorten
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sites import Site

TOKEN_BYTES: Final = 24
MAX_TITLE: Final = 120  # columns
MAX_TITLES: Final = 5  # in the summary
QUEUE_PATH: Final = "/console/queue"
LINK_PATH: Final = "/submission/"
CONFIRM_SUBJECT: Final = N_("Please confirm: {site}")
CONFIRM_TEXT: Final = N_(
    "Someone, probably you, entered an event for {site}. To send it, open this link and press “Confirm”:\n\n{link}"
    "\n\nThe link works for 48 hours. If it wasn’t you, ignore this email, and we’ll delete the entry."
)
LINKS_SUBJECT: Final = N_("Your links: {site}")
LINKS_TEXT: Final = N_("These links lead to what you’ve sent to {site}. Anyone who has a link can change the entry.")
UNCONFIRMED: Final = N_("An entry that you haven’t confirmed yet:")
# By state: the subject, the first sentence and what the link is for.
DECISIONS: Final = {
    "accepted": (
        N_("Accepted: {title}"),
        N_("{site} has published what you’ve sent."),
        N_("To change or cancel the event, open this link:"),
    ),
    "returned": (
        N_("Please revise: {title}"),
        N_("{site} asks you to revise what you’ve sent."),
        N_("To change your entry, open this link:"),
    ),
    "rejected": (
        N_("Not accepted: {title}"),
        N_("{site} hasn’t accepted what you’ve sent."),
        N_("To see your entry or delete your data, open this link:"),
    ),
}
SUMMARY_SUBJECT: Final = N_("Waiting for your decision: {site}")
WAITING: Final = N_("{number} entries are waiting for your decision.")
ONE_WAITING: Final = N_("One entry is waiting for your decision.")
OPT_OUT: Final = N_("You can turn off this email on your account page.")

Deliver = Callable[[Site, str, str, str], Awaitable[None]]  # to an address, with subject and text


@dataclass(slots=True)
class Letter:
    """An email, and the hashes of the tokens in its links, by proposal."""

    tx: Transaction
    to: str
    locale: PageLocale
    base_url: str  # empty: no links
    subject: str = ""
    parts: list[str] = field(default_factory=list[str])
    token_hashes: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def add(self, text: str, **values: object) -> None:
        self.parts.append(self.locale.text(text, site=self.tx.site.name, **values))

    async def make_link(self, row: Row) -> str:
        """Return a link to a proposal: for accounts in the console, for others with a new token."""
        if not self.base_url or row["submitter_id"] is None:
            return self.base_url and f"{self.base_url}{QUEUE_PATH}"
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.token_hashes[row["id"]] = hash_token(token)
        await storage.add_token(self.tx, row["id"], hash_token(token))
        is_own_language = find_language(self.tx.site.language) == self.locale.language
        query = "" if is_own_language else f"?lang={self.locale.language}"
        return f"{self.base_url}{LINK_PATH}{row['id']}.{token}{query}"


async def send_mail(
    database: SiteDatabase, deliver: Deliver, base_url: str, site_id: int, *, mail: Mail, key: str, version: int
) -> None:
    """Write and deliver an email, unless its reason has gone. Sites without their own base URL use `base_url`."""
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        site, letter = tx.site, await WRITERS[mail](tx, key, version, (tx.site.base_url or base_url).rstrip("/"))
    if letter is None:
        return
    try:
        await deliver(site, letter.to, letter.subject, "\n\n".join(filter(None, letter.parts)) + "\n")
    except Exception:
        # The next attempt creates other tokens. These must not displace the tokens of earlier emails.
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            for proposal_id, token_hash in letter.token_hashes.items():
                await storage.remove_token(tx, proposal_id, token_hash)
        raise


def describe_start(start_local: datetime, locale: PageLocale, *, all_day: bool) -> str:
    day = locale.day(start_local.date())
    return day if all_day else f"{day}, {locale.time(start_local)}"


async def _begin_letter(
    tx: Transaction, user_id: int | None, submitter_id: str | None, base_url: str
) -> Letter | None:
    """Return an empty letter in the recipient's language; None if they cannot get emails."""
    recipient = await storage.find_recipient(tx, user_id, submitter_id)
    if recipient is None:
        return None
    language = choose_email_language(recipient["language"] or "", tx.site.language)
    return Letter(
        tx, recipient["email"], make_page_locale(language, tx.site.language, translator(language)), base_url
    )


async def _write_confirmation(tx: Transaction, key: str, version: int, base_url: str) -> Letter | None:
    """Write nothing that was typed into the form: anyone can have this email sent to any address."""
    row = await storage.find_proposal(tx, key)
    if row is None or row["state"] != "unconfirmed":
        return None
    letter = await _begin_letter(tx, None, row["submitter_id"], base_url)
    if letter is not None:
        letter.subject = letter.locale.text(CONFIRM_SUBJECT, site=tx.site.name)
        letter.add(CONFIRM_TEXT, link=await letter.make_link(row))
    return letter


async def _write_links(tx: Transaction, key: str, version: int, base_url: str) -> Letter | None:
    letter, rows = await _begin_letter(tx, None, key, base_url), await storage.list_submitted(tx, key)
    if letter is None or not rows:
        return None
    letter.subject = letter.locale.text(LINKS_SUBJECT, site=tx.site.name)
    letter.add(LINKS_TEXT)
    for row in rows[:MAX_LINKS]:
        is_confirmed = row["state"] != "unconfirmed"
        about = await _describe(letter, row) if is_confirmed else letter.locale.text(UNCONFIRMED)
        letter.parts.append(f"{about}\n{await letter.make_link(row)}")
    return letter


async def _write_decision(tx: Transaction, key: str, version: int, base_url: str) -> Letter | None:
    row = await storage.find_proposal(tx, key)
    if row is None or row["version"] != version or row["state"] not in DECIDED:
        return None
    letter = await _begin_letter(tx, row["user_id"], row["submitter_id"], base_url)
    if letter is None:
        return None
    subject, decision, purpose = DECISIONS[row["state"]]
    about = await _describe(letter, row)
    letter.subject = letter.locale.text(subject, title=about.partition("\n")[0])
    letter.add(decision)
    letter.parts.append(about)
    if row["reason"] is not None:
        letter.add(REASON_TEXTS[REASONS[row["reason"] - 1]])
    letter.parts.append(row["comment"])
    if link := await letter.make_link(row):
        letter.parts.append(f"{letter.locale.text(purpose)}\n{link}")
    return letter


async def _describe(letter: Letter, row: Row) -> str:
    subject = await load_subject(letter.tx, row)
    start = describe_start(subject.start_local, letter.locale, all_day=subject.all_day)
    return f"{shorten(read_title(subject.title), MAX_TITLE)}\n{start}"


async def _write_summary(tx: Transaction, key: str, version: int, base_url: str) -> Letter | None:
    letter, number = await _begin_letter(tx, int(key), None, base_url), await storage.count_queue(tx)
    if letter is None or not number:
        return None
    letter.subject = letter.locale.text(SUMMARY_SUBJECT, site=tx.site.name)
    letter.add(WAITING if number > 1 else ONE_WAITING, number=number)
    letter.parts.append(
        "\n".join(
            f"- {shorten(read_title(row['title'] or ''), MAX_TITLE)}, "
            f"{letter.locale.day(local_of(row['starts_at'], tx.site.timezone).date())}"
            for row in await storage.list_queue(tx, MAX_TITLES)
        )
    )
    letter.parts.append(base_url and f"{base_url}{QUEUE_PATH}")
    letter.add(OPT_OUT)
    return letter


Writer = Callable[[Transaction, str, int, str], Awaitable[Letter | None]]
WRITERS: Final[Mapping[Mail, Writer]] = {
    Mail.CONFIRM: _write_confirmation,
    Mail.LINKS: _write_links,
    Mail.DECISION: _write_decision,
    Mail.SUMMARY: _write_summary,
}
