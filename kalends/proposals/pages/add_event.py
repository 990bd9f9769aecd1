"""The public form for events, at `/events/add/`, and the form that sends links again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.limits import rate_limit_key
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.urls import read_email
from kalends.http.auth import reject_cross_site
from kalends.http.bodies import Upload, read_body, read_upload, read_values
from kalends.media.adapters.library import Library
from kalends.proposals import storage
from kalends.proposals.mails import describe_start
from kalends.proposals.operations import submissions
from kalends.proposals.operations.proposal_sending import Draft
from kalends.proposals.operations.proposal_values import check_values
from kalends.proposals.pages.submission_fields import (
    NEW_FORM,
    PICTURE,
    Entry,
    make_params,
    read_entry,
    read_text,
)
from kalends.proposals.pages.submission_frame import (
    ADD_PATH,
    LINK_REQUEST_PATH,
    SimilarEvent,
    SubmissionNote,
    check_entry,
    enter,
    find_stamp_problem,
    is_post,
    make_stamp,
    see_other,
    show,
    show_form,
)
from kalends.proposals.rules import (
    MAX_PICTURE_BYTES,
    MAX_STORED_BYTES,
    MAX_TYPED_LINKS,
    MAX_UNCONFIRMED_BYTES,
    PICTURE_EDGE,
)
from kalends.rendering.cards import read_title
from kalends.website.context import PageRequest, PageRoute, make_page_context

HEADING: Final = N_("Add an event")
SENT: Final = f"{ADD_PATH}sent/"
HONEYPOT: Final = "company"  # people don't see this field
ADDRESS: Final = re.compile(r"https?://|\bwww\.", re.IGNORECASE)
TYPED: Final = ("title", "description", "note", "venue", "organizer", "name", "picture_alt")
TRY_LATER: Final = N_("Many events are being sent at the moment. Try again later.")
SENT_TEXTS: Final = (
    N_("We’ve sent you an email with a link. Open the link within 48 hours, or we’ll delete what you entered."),
    N_("After that, the editors decide, and you’ll hear from them by email."),
)


@dataclass(frozen=True, slots=True)
class Post:
    """The form as it was sent."""

    entry: Entry
    stamp: str = ""
    upload: Upload | None = None
    fills_honeypot: bool = False
    is_different: bool = False  # whether the sender knows the similar events


async def handle_form(page_request: PageRequest) -> Response:
    """Show the form, or read what was sent. The picture is decoded only after all checks."""
    if not is_post(page_request):
        async with enter(page_request) as context:
            return await _show(page_request, context, Post(Entry()), {})
    reject_cross_site(page_request.request, page_request.state.origins)
    library = page_request.state.library
    if library is None:
        raise AssertionError("a server without a media library")
    owner = f"submission {rate_limit_key(page_request.client_ip)}"
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        # A picture that is slightly too large is explained beside its field.
        raw, upload = await read_upload(page_request.request, directory, 2 * MAX_PICTURE_BYTES)
        form = raw.values
        post = Post(
            read_entry(form),
            read_text(form, "stamp"),
            upload if upload is not None and upload.path.stat().st_size else None,
            fills_honeypot=bool(read_text(form, HONEYPOT)),
            is_different=bool(read_text(form, "is_different")),
        )
        return await _receive(page_request, post, library)


async def _receive(page_request: PageRequest, post: Post, library: Library) -> Response:
    texts, client_ip = post.entry.texts, page_request.client_ip
    email, problems = _read_sender(texts["email"])
    async with enter(page_request) as context:
        if post.fills_honeypot or await submissions.is_blocked(context.transaction, email):
            return see_other(SENT, page_request)
        if problem := find_stamp_problem(context, post.stamp):
            return await _show(page_request, context, post, {"": problem})
        if links := _find_typed_links(texts):
            return await _show(page_request, context, post, links)
        if wait := await submissions.find_wait(context.transaction, client_ip, email):
            return await _refuse(page_request, context, wait)
        values = {name: value for name, value in (await make_params(context, post.entry)).items() if value}
        if problems := problems | await _check(context, post, values):
            return await _show(page_request, context, post, problems)
        similar = [] if post.is_different else await _find_similar(page_request, context, values)
        if similar:
            return await _show(page_request, context, post, {}, similar)
    async with enter(page_request, writing=True) as context:
        wait = await submissions.count_post(context.transaction, client_ip, email)
    picture = await _encode(library, post.upload) if post.upload is not None and not wait else None
    if wait or isinstance(picture, Message):
        async with enter(page_request) as context:
            if isinstance(picture, Message):
                return await _show(page_request, context, post, {"picture": picture})
            return await _refuse(page_request, context, wait)
    draft = Draft(values, "public", note=texts["note"], submitter_name=texts["name"])
    described = (picture, texts["picture_alt"]) if picture is not None else None
    async with enter(page_request, writing=True) as context:
        await submissions.submit(context, draft, email, page_request.language, described)
    return see_other(SENT, page_request)


def _read_sender(text: str) -> tuple[str, dict[str, Message]]:
    try:
        return read_email(text).lower(), {}
    except InvalidValue as error:
        return "", {"email": error.message}


def _find_typed_links(texts: Mapping[str, str]) -> dict[str, Message]:
    numbers = {name: len(ADDRESS.findall(texts[name])) for name in TYPED}
    if sum(numbers.values()) <= MAX_TYPED_LINKS:
        return {}
    message = Message("Use at most {number} links.", number=MAX_TYPED_LINKS)
    return {max(numbers, key=lambda name: numbers[name]): message}


async def _check(context: OperationContext, post: Post, values: Mapping[str, Any]) -> dict[str, Message]:
    """Return what is wrong with the event, by parameter."""
    if problems := check_entry(post.entry, NEW_FORM):
        return problems
    if post.upload is not None and await _is_full(context):
        return {"picture": Message("Pictures can’t be added at the moment. Send the event without one.")}
    try:
        await check_values(context, "public", values, None)
    except ApiError as error:
        return field_errors(error) or {"": error.message}
    return {}


async def _is_full(context: OperationContext) -> bool:
    return await storage.measure_unconfirmed_pictures(context.transaction) >= MAX_UNCONFIRMED_BYTES


async def _encode(library: Library, upload: Upload) -> bytes | Message:
    """Return a picture as WebP, or what is wrong with it."""
    if upload.path.stat().st_size > MAX_PICTURE_BYTES:
        return Message("The picture has more than 8 MB.")
    try:
        content = await library.shrink_image(upload.path, PICTURE_EDGE)
    except InvalidValue as error:
        return error.message
    return (
        content if len(content) <= MAX_STORED_BYTES else Message("The picture is too detailed. Choose another one.")
    )


async def _show(
    page_request: PageRequest,
    context: OperationContext,
    post: Post,
    problems: Mapping[str, Message],
    similar: Sequence[SimilarEvent] = (),
) -> Response:
    """Show the form. It keeps the time of its first rendering, unless that is the problem."""
    is_full = await _is_full(context)
    omitted = PICTURE if is_full else ()
    groups = [replace(group, fields=tuple(row for row in group.fields if row not in omitted)) for group in NEW_FORM]
    is_expired = not post.stamp or (find_stamp_problem(context, post.stamp) is not None)
    return await show_form(
        page_request,
        context,
        title=HEADING,
        groups=groups,
        entry=post.entry,
        problems=problems,
        similar=similar,
        action=page_request.with_query(ADD_PATH),
        hidden={"stamp": make_stamp(context) if is_expired else post.stamp},
        is_new=True,
        is_full=is_full,
        lost_picture=post.upload is not None,
        link_request_url=make_page_context(page_request, context).links.top_level(LINK_REQUEST_PATH),
    )


async def _refuse(page_request: PageRequest, context: OperationContext, wait: int) -> Response:
    page = make_page_context(page_request, context)
    model = SubmissionNote(title=page.locale.text(HEADING), paragraphs=[page.locale.text(TRY_LATER)])
    return await show(page_request, context, model, 429, wait)


async def handle_sent(page_request: PageRequest) -> Response:
    async with enter(page_request) as context:
        page = make_page_context(page_request, context)
        model = SubmissionNote(
            title=page.locale.text(N_("Check your email")),
            paragraphs=[page.locale.text(row) for row in SENT_TEXTS],
            link_request_url=page.links.top_level(LINK_REQUEST_PATH),
        )
        return await show(page_request, context, model)


# Events that are probably the same, when the form is sent and, with a script, while it is filled in.


async def _find_similar(
    page_request: PageRequest, context: OperationContext, values: Mapping[str, Any]
) -> list[SimilarEvent]:
    page = make_page_context(page_request, context)
    return [
        SimilarEvent(
            read_title(row["title"]),
            describe_start(row["start_local"], page.locale, all_day=row["all_day"]),
            page.links.event(row["slug"]),
        )
        for row in await submissions.find_published(context.transaction, values)
    ]


async def handle_similar(page_request: PageRequest) -> Response:
    """Return similar events as JSON, for a title, a date and a venue in the query string."""
    async with enter(page_request) as context:
        entry = read_entry(dict(page_request.query))
        found = await _find_similar(page_request, context, await make_params(context, entry))
    return Response(
        orjson.dumps(found), headers={"Cache-Control": "private, no-store"}, media_type="application/json"
    )


# "Send the link again"


async def handle_link_request(page_request: PageRequest) -> Response:
    """Ask for the address, and send links to it. The response never tells whether the address is known."""
    if not is_post(page_request):
        async with enter(page_request) as context:
            return await _show_link_request(page_request, context, "")
    reject_cross_site(page_request.request, page_request.state.origins)
    body = await read_body(page_request.request, page_request.state.max_body_bytes)
    form = (await read_values(page_request.request, body)).values
    try:
        email, problem = read_email(read_text(form, "email")).lower(), None
    except InvalidValue as error:
        email, problem = "", error.message
    async with enter(page_request, writing=True) as context:
        page = make_page_context(page_request, context)
        problem = problem or (None if email else Message("This field is required."))
        problem = problem or find_stamp_problem(context, read_text(form, "stamp"))
        if problem is not None:
            return await _show_link_request(page_request, context, problem.render(page.locale.translate))
        if not read_text(form, HONEYPOT):
            await submissions.request_links(context.transaction, page_request.client_ip, email)
        model = SubmissionNote(
            title=page.locale.text(N_("Check your email")),
            paragraphs=[
                page.locale.text(N_("If you’ve sent something with this address, we’ve sent you the links."))
            ],
        )
        return await show(page_request, context, model)


async def _show_link_request(page_request: PageRequest, context: OperationContext, problem: str) -> Response:
    page = make_page_context(page_request, context)
    model = SubmissionNote(
        title=page.locale.text(N_("Send the link again")),
        paragraphs=[
            page.locale.text(
                N_("Enter the address that you used in the form. We’ll send you links to what you’ve sent.")
            )
        ],
        asks_email=True,
        problem=problem,
        stamp=make_stamp(context),
    )
    return await show(page_request, context, model, 400 if problem else 200)


ROUTES: Final = (
    PageRoute(r"/events/add/", None, accepts_post=True, handle=handle_form),
    PageRoute(r"/events/add/sent/", None, handle=handle_sent),
    PageRoute(r"/events/add/link/", None, accepts_post=True, handle=handle_link_request),
    PageRoute(
        r"/events/add/similar\.json",
        None,
        is_page=False,
        handle=handle_similar,
        extra_names=("title", "start_day", "start_time", "all_day", "venue", "city"),
    ),
)
