"""The public form for events, at `/events/add/`, and the form that sends links again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.limits import ConcurrencyLimits, PerOwnerLimiter, rate_limit_key
from kalends.core.messages import Message, gettext_noop as N_
from kalends.http.auth import reject_cross_site
from kalends.http.bodies import Upload, read_upload
from kalends.media.adapters.library import Library
from kalends.proposals import rules, storage
from kalends.proposals.mails import describe_start
from kalends.proposals.operations import submissions
from kalends.proposals.operations.proposal_sending import Draft
from kalends.proposals.operations.proposal_values import check_values
from kalends.proposals.pages import submission_fields as fields
from kalends.proposals.pages.submission_fields import Entry
from kalends.proposals.pages.submission_frame import ADD_PATH, LINK_REQUEST_PATH, Visit, enter
from kalends.rendering.cards import read_title
from kalends.website.context import PageRequest, PageRoute
from kalends.website.form_visits import HONEYPOT, read_email_field, read_form, read_text, see_other

# Forms that a process receives at the same time: slow ones must not occupy what editors upload through.
UPLOADS: Final = PerOwnerLimiter(ConcurrencyLimits(per_owner=2, total=20, waiting_per_owner=4, waiting=100))
MAX_WAIT: Final = 10.0
HEADING: Final = N_("Add an event")
SENT_PATH: Final = f"{ADD_PATH}sent/"
TYPED_LINK: Final = re.compile(r"https?://|\bwww\.", re.IGNORECASE)
TYPED: Final = ("title", "description", "note", "venue", "organizer", "name", "picture_alt")
TRY_LATER: Final = N_("Many events are being sent at the moment. Try again later.")
CHECK_EMAIL: Final = N_("Check your email")
SENT: Final = (
    N_("We’ve sent you an email with a link. Open the link within 48 hours, or we’ll delete what you entered."),
    N_("After that, the editors decide, and you’ll hear from them by email."),
)
LINKS_HEADING: Final = N_("Send the link again")
LINKS_TEXT: Final = N_("Enter the address that you used in the form. We’ll send you links to what you’ve sent.")
LINKS_SENT: Final = N_("If you’ve sent something with this address, we’ve sent you the links.")


@dataclass(frozen=True, slots=True)
class Post:
    """The form as it was sent."""

    entry: Entry
    stamp: str = ""
    upload: Upload | None = None
    fills_honeypot: bool = False
    is_different: bool = False  # whether the sender knows the similar events


async def handle_form(request: PageRequest) -> Response:
    """Show the form, or read what was sent. The picture is decoded only after all checks."""
    if request.request.method != "POST":
        async with enter(request) as visit:
            return await _show(visit, Post(Entry()), {})
    reject_cross_site(request.request, request.state.origins)
    library = request.state.library
    if library is None:
        raise AssertionError("a server without a media library")
    owner = rate_limit_key(request.client_ip)
    async with UPLOADS.slot(owner, MAX_WAIT), library.open_work_directory() as directory:
        # A picture that is slightly too large is explained beside its field.
        raw, upload = await read_upload(request.request, directory, 2 * rules.MAX_PICTURE_BYTES)
        form = raw.values
        post = Post(
            fields.read_entry(form),
            read_text(form, "stamp"),
            upload if upload is not None and upload.path.stat().st_size else None,
            fills_honeypot=bool(read_text(form, HONEYPOT)),
            is_different=bool(read_text(form, "is_different")),
        )
        return await _receive(request, post, library)


async def _receive(request: PageRequest, post: Post, library: Library) -> Response:
    texts, client_ip = post.entry.texts, request.client_ip
    email, problem = _read_email(texts["email"])
    async with enter(request) as visit:
        if post.fills_honeypot or await submissions.is_blocked(visit.tx, email):
            return see_other(SENT_PATH, request)
        if early := visit.find_stamp_problem(post.stamp):
            return await _show(visit, post, {"": early})
        if links := _find_typed_links(texts):
            return await _show(visit, post, links)
        if wait := await submissions.find_wait(visit.tx, client_ip, email):
            return await visit.show_note(HEADING, [TRY_LATER], 429, wait)
        params = await fields.make_params(visit.context, post.entry)
        values = {name: value for name, value in params.items() if value}
        problems = {**({"email": problem} if problem else {}), **await _check(visit, post, values)}
        similar = [] if problems or post.is_different else await _find_similar(visit, values)
        if problems or similar:
            return await _show(visit, post, problems, similar)
    async with enter(request, writing=True) as visit:
        wait = await submissions.count_post(visit.tx, client_ip, email)
    picture = await _encode(library, post.upload) if post.upload is not None and not wait else None
    if wait or isinstance(picture, Message):
        async with enter(request) as visit:
            if isinstance(picture, Message):
                return await _show(visit, post, {"picture": picture})
            return await visit.show_note(HEADING, [TRY_LATER], 429, wait)
    draft = Draft(values, "public", note=texts["note"], submitter_name=texts["name"])
    described = (picture, texts["picture_alt"]) if picture is not None else None
    async with enter(request, writing=True) as visit:
        await submissions.submit(visit.context, draft, email, request.language, described)
    return see_other(SENT_PATH, request)


def _read_email(text: str) -> tuple[str, Message | None]:
    """Return an address in lower case, or an empty text and the problem."""
    email, problem = read_email_field(text)
    return email.lower(), problem


def _find_typed_links(texts: Mapping[str, str]) -> dict[str, Message]:
    numbers = {name: len(TYPED_LINK.findall(texts[name])) for name in TYPED}
    if sum(numbers.values()) <= rules.MAX_TYPED_LINKS:
        return {}
    message = Message("Use at most {number} links.", number=rules.MAX_TYPED_LINKS)
    return {max(numbers, key=lambda name: numbers[name]): message}


async def _check(visit: Visit, post: Post, values: Mapping[str, Any]) -> dict[str, Message]:
    """Return what is wrong with the event, by parameter."""
    if problems := fields.check_entry(post.entry, fields.NEW_FORM):
        return problems
    if post.upload is not None and await _is_full(visit):
        return {"picture": Message("Pictures can’t be added at the moment. Send the event without one.")}
    try:
        await check_values(visit.context, "public", values, None)
    except ApiError as error:
        return field_errors(error) or {"": error.message}
    return {}


async def _is_full(visit: Visit) -> bool:
    return await storage.measure_unconfirmed_pictures(visit.tx) >= rules.MAX_UNCONFIRMED_BYTES


async def _encode(library: Library, upload: Upload) -> bytes | Message:
    """Return a picture as WebP, or what is wrong with it."""
    if upload.path.stat().st_size > rules.MAX_PICTURE_BYTES:
        return Message("The picture has more than 8 MB.")
    try:
        content = await library.shrink_image(upload.path, rules.PICTURE_EDGE)
    except InvalidValue as error:
        return error.message
    is_small = len(content) <= rules.MAX_STORED_BYTES
    return content if is_small else Message("The picture is too detailed. Choose another one.")


async def _show(
    visit: Visit, post: Post, problems: Mapping[str, Message], similar: Sequence[Mapping[str, str]] = ()
) -> Response:
    """Show the form. It keeps the time of its first rendering, unless that is the problem."""
    is_full = await _is_full(visit)
    shown = [row for group in fields.NEW_FORM for row in group.fields if not is_full or row not in fields.PICTURE]
    groups = [replace(group, fields=tuple(row for row in group.fields if row in shown)) for group in fields.NEW_FORM]
    is_valid = post.stamp and visit.find_stamp_problem(post.stamp) is None
    return await visit.show_form(
        HEADING,
        groups,
        post.entry,
        problems,
        similar=similar,
        action=visit.request.with_query(ADD_PATH),
        hidden={"stamp": post.stamp if is_valid else visit.make_stamp()},
        is_new=True,
        is_full=is_full,
        lost_picture=post.upload is not None,
        link_request_url=visit.page.links.top_level(LINK_REQUEST_PATH),
    )


async def handle_sent(request: PageRequest) -> Response:
    async with enter(request) as visit:
        url = visit.page.links.top_level(LINK_REQUEST_PATH)
        return await visit.show_note(CHECK_EMAIL, SENT, link_request_url=url)


# Events that are probably the same, when the form is sent and, with a script, while it is filled in.


async def _find_similar(visit: Visit, values: Mapping[str, Any]) -> list[dict[str, str]]:
    locale = visit.page.locale
    return [
        {
            "title": read_title(row["title"]),
            "when": describe_start(row["start_local"], locale, all_day=row["all_day"]),
            "url": visit.page.links.event(row["slug"]),
        }
        for row in await submissions.find_published(visit.tx, values)
    ]


async def handle_similar(request: PageRequest) -> Response:
    """Return similar events as JSON, for a title, a date and a venue in the query string."""
    async with enter(request) as visit:
        params = await fields.make_params(visit.context, fields.read_entry(dict(request.query)))
        found = orjson.dumps(await _find_similar(visit, params))
    return Response(found, headers={"Cache-Control": "private, no-store"}, media_type="application/json")


async def handle_link_request(request: PageRequest) -> Response:
    """Ask for the address, and send links to it. The response never tells whether the address is known."""
    form = await read_form(request)
    email, problem = _read_email(read_text(form, "email")) if form is not None else ("", None)
    async with enter(request, writing=form is not None) as visit:
        if form is not None:
            problem = problem or visit.find_stamp_problem(read_text(form, "stamp"))
        if form is None or problem is not None:
            text = problem.render(visit.page.locale.translate) if problem is not None else ""
            status = 400 if problem is not None else 200
            return await visit.show_note(LINKS_HEADING, [LINKS_TEXT], status, asks_email=True, problem=text)
        if not read_text(form, HONEYPOT):
            await submissions.request_links(visit.tx, request.client_ip, email)
        return await visit.show_note(CHECK_EMAIL, [LINKS_SENT])


ROUTES: Final = (
    PageRoute(ADD_PATH, None, accepts_post=True, handle=handle_form),
    PageRoute(SENT_PATH, None, handle=handle_sent),
    PageRoute(LINK_REQUEST_PATH, None, accepts_post=True, handle=handle_link_request),
    PageRoute(
        rf"{ADD_PATH}similar\.json",
        None,
        is_page=False,
        handle=handle_similar,
        extra_names=("title", "start_day", "start_time", "all_day", "venue", "city"),
    ),
)
