"""The publisher's side: numbers, a preview of a digest to copy, and one person by their exact address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import Response

from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.calendar_months import DATE_PARAMS
from kalends.calendar.storage.history_tables import find_revision_at
from kalends.console.console_rendering import ADMINISTRATOR, EDITOR, HTML, show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.field_texts import local_text, make_locale
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text
from kalends.core.messages import LANGUAGES, find_language, gettext_noop as N_
from kalends.core.times import local_of
from kalends.follow import storage
from kalends.follow.mails.digest_formats import FOOTER_PLACE, to_html, to_markdown, to_text
from kalends.follow.mails.digest_model import DigestModel, Reader, describe_query, make_digest
from kalends.follow.operations import followings
from kalends.follow.operations.digest_content import read_digest
from kalends.follow.operations.event_follows import find_public_event
from kalends.follow.operations.followed_queries import NAMES, make_query
from kalends.follow.rules.follow_limits import MIN_SHOWN, SHOWN_DAYS
from kalends.follow.rules.slots import Slot
from kalends.store.database import Transaction

FOLLOWERS: Final = f"{PREFIX}/followers"
PREVIEW: Final = f"{FOLLOWERS}/preview"
WEEK: Final = timedelta(days=7)
MAX_POPULAR: Final = 50
# The pages whose address names all filters of their list, and parameters besides the filters.
LIST_PATHS: Final = re.compile(r"(/events/((list|search|map)/|(month|week|weekend|day)/.*)?|/follow/|)")
OTHER_PARAMS: Final = DATE_PARAMS | {HIDE_SUBSEQUENT, "lang", "page", "per_page"}
NO_LIST: Final = N_(
    "is not the address of a list. Open the list, choose “Follow by email”, and copy that page’s address."
)
# The email has no scripts, images or forms, and its links must not replace the console.
FRAME_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"


@dataclass(frozen=True, slots=True)
class PopularList:
    about: str
    query: str
    number: int


async def show_followers(
    console_request: ConsoleRequest, person: dict[str, Any] | None = None, searched: str = ""
) -> Response:
    """Show numbers; after a search by an administrator, also the person."""
    async with console_request.transaction() as tx:
        since = local_of(tx.now, tx.site.timezone).date() - timedelta(days=SHOWN_DAYS)
        days = await storage.list_days(tx, since)
        lists = await storage.count_by_list(tx)
        people = await storage.count_people(tx)
        shown = [row for row in lists if row["number"] >= MIN_SHOWN][:MAX_POPULAR]
        locale, context = make_locale(console_request), console_request.make_context(tx)
        popular = [
            PopularList(await describe_query(context, row["query"], locale), row["query"], row["number"])
            for row in shown
        ]
    return show(
        console_request,
        "followers.html",
        people=people,
        popular=popular,
        others=sum(row["number"] for row in lists[len(shown) :]),
        days=days,
        totals={name: sum(row[name] for row in days) for name in storage.MAIL_COUNTS},
        day=locale.dated_weekday,
        person=person,
        searched=searched,
        can_send=console_request.state.can_send_links(console_request.site),
        preview_path=PREVIEW,
        encode=urlencode,
    )


async def _name_event(console_request: ConsoleRequest, tx: Transaction, event_id: int) -> str:
    context = followings.make_reader_context(tx, console_request.origin_url)
    event = await find_public_event(context, event_id)
    return to_plain_text(event.title) if event is not None else f"#{event_id}"


# The preview ---------------------------------------------------------------------------------------------


async def show_digest_preview(console_request: ConsoleRequest) -> Response:
    """Show what a weekly digest would say now, in three formats to copy."""
    async with console_request.transaction() as tx:
        query, digest, problem = await _make_preview(console_request, tx)
        categories = await event_queries.list_categories(tx)
    chosen = {"list": console_request.query_value("list"), "category": console_request.query_value("category")}
    language = _read_language(console_request)
    formats: Sequence[tuple[str, str]] = ()
    if digest is not None:
        html = to_html(digest).replace(FOOTER_PLACE, "")
        formats = (("HTML", html), ("Markdown", to_markdown(digest)), (N_("Text"), to_text(digest)))
    return show(
        console_request,
        "followers_preview.html",
        status=400 if problem else 200,
        problem=problem,
        formats=formats,
        categories=categories,
        chosen=chosen,
        chosen_language=language,
        frame_url=f"{PREVIEW}.html?{urlencode({'list': f'?{query}', 'language': language})}",
        preview_path=PREVIEW,
        languages=LANGUAGES,
        plain=to_plain_text,
    )


async def show_digest_frame(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        _, digest, _ = await _make_preview(console_request, tx)
    if digest is None:
        raise errors.no_route()
    headers = {
        "Content-Security-Policy": FRAME_POLICY,
        "Cache-Control": "private, no-store",
        "Referrer-Policy": "no-referrer",
        "X-Robots-Tag": "noindex",
    }
    return Response(to_html(digest).replace(FOOTER_PLACE, ""), headers=headers, media_type=HTML)


async def _make_preview(console_request: ConsoleRequest, tx: Transaction) -> tuple[str, DigestModel | None, Any]:
    """Return the chosen list with its digest, or what is wrong with the list."""
    slot = Slot(tx.now, tx.now + WEEK)
    reader = Reader.make(tx.site, _read_language(console_request), console_request.origin_url)
    try:
        query = _read_list(console_request)
        since = await find_revision_at(tx, tx.now - WEEK)
        context = followings.make_reader_context(tx, console_request.origin_url)
        content = await read_digest(context, query, slot, since)
    except ApiError as error:
        return "", None, error.message
    return query, make_digest(content, query, slot, reader), None


def _read_list(console_request: ConsoleRequest) -> str:
    """Return the list of a category, or the one whose address was pasted."""
    if category := console_request.query_value("category"):
        return make_query([("categories", category)])
    address = urlsplit(console_request.query_value("list").strip()[:2000])
    pairs = parse_qsl(address.query)
    if not LIST_PATHS.fullmatch(address.path) or {name.partition("[")[0] for name, _ in pairs} - NAMES - OTHER_PARAMS:
        raise errors.invalid("list", NO_LIST)
    return make_query(pairs)


def _read_language(console_request: ConsoleRequest) -> str:
    own = find_language(console_request.site.language) or "en"
    chosen = console_request.query_value("language")
    return chosen if chosen in LANGUAGES else own


# One person ----------------------------------------------------------------------------------------------


async def handle_person(console_request: ConsoleRequest) -> Response:
    """Find a person by their exact address, erase them, or send to a refused address again."""
    email, action = console_request.form_text("email").strip(), console_request.form_text("action")
    async with console_request.write() as tx:
        follower = await storage.find_by_email(tx, email)
        if follower is not None and action == "erase":
            await followings.erase(tx, follower["id"])
            return redirect(FOLLOWERS, "follower-erased")
        if follower is not None and action == "resume":
            await followings.lift_suppression(tx, follower["id"])
            return redirect(FOLLOWERS, "follower-resumed")
        person = await _describe_person(console_request, tx, follower) if follower is not None else None
    return await show_followers(console_request, person, email)


async def _describe_person(console_request: ConsoleRequest, tx: Transaction, follower: Any) -> dict[str, Any]:
    locale, zone = make_locale(console_request), tx.site.timezone

    def moment(instant: Any) -> str:
        return local_text(instant, zone, locale) if instant is not None else ""

    return {
        "email": follower["email"],
        "language": LANGUAGES.get(follower["language"], follower["language"]),
        "refusal_code": follower["refusal_code"],
        "suppressed": moment(follower["suppressed_at"]),
        "follows": [
            {
                "about": await describe_query(console_request.make_context(tx), row["query"], locale)
                if row["event_id"] is None
                else await _name_event(console_request, tx, row["event_id"]),
                "confirmed": moment(row["confirmed_at"]),
                "next": moment(row["next_at"]),
                "is_paused": row["paused"],
            }
            for row in await storage.list_follows(tx, follower["id"])
        ],
    }


ROUTES: Final = (
    ConsoleRoute("/followers", show_followers, min_role=EDITOR),
    ConsoleRoute("/followers/preview", show_digest_preview, min_role=EDITOR),
    ConsoleRoute(r"/followers/preview\.html", show_digest_frame, min_role=EDITOR),
    ConsoleRoute("/followers/person", post=handle_person, min_role=ADMINISTRATOR),
)
