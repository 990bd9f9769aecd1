"""The page that links in emails lead to: `/submission/{id}.{token}`, and the form to change what was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.record_history import read_current
from kalends.calendar.rules.record_types import CANCELLED
from kalends.core.errors import ApiError, field_errors
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id
from kalends.http.auth import reject_cross_site
from kalends.http.bodies import read_body, read_values
from kalends.proposals import storage
from kalends.proposals.mails import LINK_PATH, describe_start
from kalends.proposals.operations import submissions
from kalends.proposals.operations.proposal_sending import Draft, resend, send, withdraw
from kalends.proposals.operations.proposal_subjects import load_subject
from kalends.proposals.operations.submissions import Case
from kalends.proposals.pages.submission_fields import (
    CHANGE_FORM,
    DETAILS,
    END,
    WHERE,
    Entry,
    decode_entry,
    make_changed_params,
    make_entry,
    make_params,
    read_entry,
    read_text,
)
from kalends.proposals.pages.submission_frame import (
    LINK_REQUEST_PATH,
    SubmissionNote,
    check_entry,
    enter,
    is_post,
    see_other,
    show,
    show_form,
)
from kalends.proposals.rules import REASON_TEXTS, REASONS
from kalends.rendering.cards import read_title
from kalends.website.context import PageRequest, PageRoute, make_page_context
from kalends.website.pages import Page

CHANGE: Final = "/change"
# By state: the badge with its style, and a sentence.
STATES: Final = {
    "unconfirmed": (N_("Not sent yet"), "is-warning", N_("Check your entry and press “Confirm” to send it.")),
    "waiting": (N_("Waiting"), "is-warning", N_("The editors haven’t decided yet. You’ll hear from them by email.")),
    "returned": (N_("Please revise"), "is-warning", N_("The editors ask you to change your entry.")),
    "accepted": (N_("Accepted"), "is-positive", N_("The editors have published what you’ve sent.")),
    "rejected": (N_("Not accepted"), "is-negative", N_("The editors haven’t accepted what you’ve sent.")),
    "withdrawn": (N_("Withdrawn"), "", N_("You’ve withdrawn your entry.")),
    "expired": (N_("Over"), "", N_("The event is over, or has been deleted.")),
}
DEAD_LINK: Final = (
    N_("This link doesn’t work any more."),
    N_(
        "We delete entries that aren’t confirmed after 48 hours, and entries that aren’t published after 30 days. "
        "Links to published events work until 30 days after the event."
    ),
)
DELETED: Final = (
    N_("We’ve deleted your email address and everything that you’ve sent."),
    N_("Events that were published stay in the calendar."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPage(Page):
    template: ClassVar[str] = "submission.html"
    styles: ClassVar[tuple[str, ...]] = ("submission.css",)
    kind: str = "submission-page"
    robots: str = "noindex"
    case: Case
    action: str
    change_url: str
    event_url: str  # empty unless the event is public
    badge: str
    badge_style: str
    sentence: str
    start: str
    reason: str
    comment: str
    facts: Sequence[tuple[str, str]]


async def handle_status(page_request: PageRequest) -> Response:
    """Show an entry with what its sender can do, or do it."""
    form = await _read_form(page_request)
    async with enter(page_request, writing=form is not None, is_open=False) as context:
        case = await submissions.follow_link(context, page_request.path_params["link"], locked=form is not None)
        if case is None:
            return await _show_note(page_request, context, N_("Link expired"), DEAD_LINK, 404)
        if form is None:
            return await _show_case(page_request, context, case)
        if read_text(form, "action") == "delete":
            await storage.forget_submitter(context.transaction, case.row["submitter_id"])
            return await _show_note(page_request, context, N_("Your data is deleted"), DELETED)
        await _act(context, case, read_text(form, "action"), read_text(form, "reason"))
    return see_other(page_request.path, page_request)


async def _read_form(page_request: PageRequest) -> dict[str, Any] | None:
    """Return the form that was sent; None if there is none. A replica may not know what an email leads to."""
    page_request.needs_primary = True
    if not is_post(page_request):
        return None
    reject_cross_site(page_request.request, page_request.state.origins)
    body = await read_body(page_request.request, page_request.state.max_body_bytes)
    return (await read_values(page_request.request, body)).values


async def _act(context: OperationContext, case: Case, action: str, reason: str) -> None:
    """Do what a button says if it is still possible. Otherwise the page shows what has changed."""
    if action == "confirm" and case.can_confirm:
        await submissions.confirm(context.transaction, case.row)
    elif action == "withdraw" and case.is_open:
        await withdraw(context, case.row)
    elif action == "cancel" and case.can_cancel:
        values = storage.decode_values(case.row) if case.is_open else {}
        await _send(context, case, {**values, "event_status": CANCELLED, "status_reason": reason[:200]})


async def _send(
    context: OperationContext, case: Case, values: Mapping[str, Any], note: str = "", base_revision: int | None = None
) -> None:
    """Send new values for an open entry, or a change of an event that was published."""
    row = case.row
    draft = Draft(
        values,
        "public",
        record_id=row["record_id"],
        base_revision=base_revision or (case.event["revision"] if case.event is not None else None),
        note=note,
        submitter_id=row["submitter_id"],
        submitter_name=row["submitter_name"],
    )
    await (resend(context, row, draft) if case.is_open else send(context, draft))


async def _show_case(page_request: PageRequest, context: OperationContext, case: Case) -> Response:
    page, row = make_page_context(page_request, context), case.row
    subject, entry = await load_subject(context.transaction, row), await make_entry(context, _list_values(case))
    badge, style, sentence = STATES[row["state"]]
    model = SubmissionPage(
        title=read_title(subject.title),
        case=case,
        action=page_request.with_query(page_request.path),
        change_url=page_request.with_query(page_request.path + CHANGE),
        event_url=page.links.event(case.event["slug"]) if case.event is not None else "",
        badge=page.locale.text(badge),
        badge_style=style,
        sentence=page.locale.text(sentence),
        start=describe_start(subject.start_local, page.locale, all_day=subject.all_day),
        reason=page.locale.text(REASON_TEXTS[REASONS[row["reason"] - 1]]) if row["reason"] is not None else "",
        comment=row["comment"],
        facts=[
            (page.locale.text(field.label), text)
            for field in (*END, *WHERE, *DETAILS)
            if (text := entry.texts[field.name])
        ],
    )
    return await show(page_request, context, model)


def _list_values(case: Case) -> dict[str, Any]:
    """Return the values of the event, with the proposed ones unless they have been published or refused."""
    current = read_current(EVENTS, case.event) if case.event is not None else {}
    return {**current, **(storage.decode_values(case.row) if case.is_open or not current else {})}


async def _show_note(
    page_request: PageRequest, context: OperationContext, title: str, paragraphs: Sequence[str], status: int = 200
) -> Response:
    page = make_page_context(page_request, context)
    model = SubmissionNote(
        title=page.locale.text(title),
        paragraphs=[page.locale.text(row) for row in paragraphs],
        link_request_url=page.links.top_level(LINK_REQUEST_PATH) if status == 404 else "",
    )
    return await show(page_request, context, model, status)


async def handle_change(page_request: PageRequest) -> Response:
    """Show the form with an entry or with its event as it is now, or send what was changed."""
    form = await _read_form(page_request)
    async with enter(page_request, writing=form is not None, is_open=False) as context:
        case = await submissions.follow_link(context, page_request.path_params["link"], locked=form is not None)
        if case is None or not case.can_change:
            return await _show_note(page_request, context, N_("Link expired"), DEAD_LINK, 404)
        if form is None:
            event = case.event
            hidden = {
                "original": (await make_entry(context, read_current(EVENTS, event))).encode()
                if event is not None
                else "",
                "base_revision": str(event["revision"]) if event is not None else "",
            }
            entry = await make_entry(context, _list_values(case))
            return await _show_change(page_request, context, entry, hidden, {})
        entry = read_entry(form)
        hidden = {name: read_text(form, name) for name in ("original", "base_revision")}
        if problems := check_entry(entry, CHANGE_FORM) or await _change(context, case, entry, hidden):
            return await _show_change(page_request, context, entry, hidden, problems)
    return see_other(page_request.path.removesuffix(CHANGE), page_request)


async def _change(
    context: OperationContext, case: Case, entry: Entry, hidden: Mapping[str, str]
) -> Mapping[str, Message]:
    """Send what was changed; return what is wrong with it, by parameter."""
    if case.event is None:
        values = {name: value for name, value in (await make_params(context, entry)).items() if value not in ("", [])}
    else:
        values = await make_changed_params(context, entry, decode_entry(hidden["original"]))
    try:
        await _send(context, case, values, entry.texts["note"], parse_id(hidden["base_revision"]))
    except ApiError as error:
        if error.status >= 500:
            raise
        return field_errors(error) or {"": error.message}
    return {}


async def _show_change(
    page_request: PageRequest,
    context: OperationContext,
    entry: Entry,
    hidden: Mapping[str, str],
    problems: Mapping[str, Message],
) -> Response:
    return await show_form(
        page_request,
        context,
        title=N_("Change your entry"),
        groups=CHANGE_FORM,
        entry=entry,
        problems=problems,
        action=page_request.with_query(page_request.path),
        hidden=hidden,
        back_url=page_request.with_query(page_request.path.removesuffix(CHANGE)),
    )


# A token never contains a slash. Everything else gets the page that explains why links die.
_LINK: Final = rf"{LINK_PATH}(?P<link>[^/]+)"
ROUTES: Final = (
    PageRoute(_LINK, None, accepts_post=True, handle=handle_status),
    PageRoute(_LINK + CHANGE, None, accepts_post=True, handle=handle_change),
)
