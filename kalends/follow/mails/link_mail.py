"""The email that asks to confirm a follow, or leads to the page where people change what they follow."""

from collections.abc import Awaitable, Callable
from typing import Final

from kalends.calendar.kinds.event_list import RESOLVED_SERIES
from kalends.core.errors import ApiError
from kalends.core.messages import choose_email_language, gettext_noop as N_
from kalends.core.times import utc_now
from kalends.follow import storage
from kalends.follow.mails.digest_model import Reader
from kalends.follow.mails.message_bytes import make_manage_url
from kalends.follow.operations.event_follows import list_followable
from kalends.follow.operations.followed_queries import list_names, resolve_query
from kalends.follow.operations.followings import make_reader_context
from kalends.rendering.cards import read_title, shorten
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sites import Site

MAX_ABOUT: Final = 120  # columns
MAX_NAMES: Final = 3
CONFIRM_SUBJECT: Final = N_("Please confirm: {site}")
CONFIRM_TEXT: Final = N_(
    "Someone, probably you, wants to get emails from {site}: {about}.\n\nTo confirm this, open the link and press "
    "“Confirm”:\n\n{link}\n\nIf it wasn’t you, ignore this email. We’ll delete your address after 48 hours."
)
LINK_SUBJECT: Final = N_("Your emails from {site}")
LINK_TEXT: Final = N_(
    "On this page, you can change, pause and end your emails from {site}:\n\n{link}\n\nAnyone who has the link can "
    "do this. It works for 30 days."
)
ALL_EVENTS: Final = N_("all events")
A_SEARCH: Final = N_("a search")

Deliver = Callable[[Site, str, str, str], Awaitable[None]]  # to an address, with subject and text


async def send_link_mail(
    database: SiteDatabase, deliver: Deliver, base_url: str, site_id: int, follower_id: str
) -> None:
    """Write and deliver the email, unless the person has gone."""
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        url, follower = tx.site.base_url or base_url, await storage.find_follower(tx, follower_id)
        if follower is None or not url:
            return
        reader = Reader.make(tx.site, choose_email_language(follower["language"], tx.site.language), url)
        link = make_manage_url(reader, follower["key"], follower_id, tx.now)
        about = await _describe_waiting(tx, reader, follower_id)
    subject, text = (CONFIRM_SUBJECT, CONFIRM_TEXT) if about else (LINK_SUBJECT, LINK_TEXT)
    name = reader.site.name
    await deliver(
        reader.site,
        follower["email"],
        reader.locale.text(subject, site=name),
        reader.locale.text(text, site=name, about=about, link=link) + "\n",
    )


async def _describe_waiting(tx: Transaction, reader: Reader, follower_id: str) -> str:
    """Name the lists and events that wait for a confirmation; empty if none does."""
    waiting = [row for row in await storage.list_follows(tx, follower_id) if row["confirmed_at"] is None]
    ids = [row["event_id"] for row in waiting if row["event_id"] is not None]
    events = await list_followable(make_reader_context(tx, reader.base_url), ids) if ids else []
    names = [await _describe_list(tx, reader, row["query"]) for row in waiting if row["event_id"] is None]
    return ", ".join([*names, *[shorten(read_title(event.title), MAX_ABOUT) for event in events[:MAX_NAMES]]])


async def _describe_list(tx: Transaction, reader: Reader, query: str) -> str:
    """Return a list's name, with nothing that was typed: anyone can have it sent to any address."""
    text = reader.locale.text
    try:
        context, resolved = await resolve_query(make_reader_context(tx, reader.base_url), query)
    except ApiError:
        return text(A_SEARCH)
    names = [shorten(read_title(name), MAX_ABOUT) for name in list_names(resolved)[:MAX_NAMES]]
    if set(context.values) - set(resolved.named) - {RESOLVED_SERIES}:
        names.append(text(A_SEARCH))
    return ", ".join(names) if names else text(A_SEARCH if query else ALL_EVENTS)
