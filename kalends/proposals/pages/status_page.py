"""The page that links in emails lead to: `/submission/{id}.{token}`, and the form to change what was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.record_history import read_current
from kalends.calendar.rules.record_types import CANCELLED
from kalends.core.errors import ApiError, field_errors
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id
from kalends.proposals import storage
from kalends.proposals.mails import LINK_PATH, describe_start
from kalends.proposals.operations import submissions
from kalends.proposals.operations.proposal_sending import Draft, resend, send, withdraw
from kalends.proposals.operations.proposal_subjects import load_subject
from kalends.proposals.operations.submissions import Case
from kalends.proposals.pages import submission_fields as fields
from kalends.proposals.pages.submission_fields import Entry, read_text
from kalends.proposals.pages.submission_frame import (
    LINK_REQUEST_PATH,
    SubmissionPage,
    Visit,
    enter,
    read_form,
    see_other,
)
from kalends.proposals.rules import REASON_TEXTS, REASONS
from kalends.rendering.cards import read_title
from kalends.website.context import PageRequest, PageRoute

CHANGE: Final = "/change"
MAX_REASON: Final = 200
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
EXPIRED: Final = N_("Link expired")
EXPIRED_TEXTS: Final = (
    N_("This link doesn’t work any more."),
    N_(
        "We delete entries that aren’t confirmed after 48 hours, and entries that aren’t published after 30 days. "
        "Links to published events work until 30 days after the event."
    ),
)
DELETED: Final = N_("Your data is deleted")
DELETED_TEXTS: Final = (
    N_("We’ve deleted your email address and everything that you’ve sent."),
    N_("Events that were published stay in the calendar."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage(SubmissionPage):
    template: ClassVar[str] = "submission.html"
    case: Case
    action: str
    change_url: str
    event_url: str  # empty unless the event is public
    badge: str
    badge_style: str
    sentence: str
    start: str
    reason: str
    facts: Sequence[tuple[str, str]]


async def handle_status(request: PageRequest) -> Response:
    """Show an entry with what its sender can do, or do it."""
    # A replica may not know yet what the email leads to.
    request.needs_primary, form = True, await read_form(request)
    async with enter(request, writing=form is not None, needs_open=False) as visit:
        case = await submissions.follow_link(visit.context, request.path_params["link"], locked=form is not None)
        if case is None:
            return await _show_expired(visit)
        if form is None:
            return await _show_case(visit, case)
        action = read_text(form, "action")
        if action == "delete":
            await storage.forget_submitter(visit.tx, case.row["submitter_id"])
            return await visit.show_note(DELETED, DELETED_TEXTS)
        # If something is no longer possible, the page shows what has changed.
        if action == "confirm" and case.can_confirm:
            await submissions.confirm(visit.tx, case.row)
        elif action == "withdraw" and case.is_open:
            await withdraw(visit.context, case.row)
        elif action == "cancel" and case.can_cancel:
            values = storage.decode_values(case.row) if case.is_open else {}
            reason = read_text(form, "reason")[:MAX_REASON]
            await _send(visit, case, {**values, "event_status": CANCELLED, "status_reason": reason})
    return see_other(request.path, request)


async def _send(
    visit: Visit, case: Case, values: Mapping[str, Any], note: str = "", base_revision: int | None = None
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
    await (resend(visit.context, row, draft) if case.is_open else send(visit.context, draft))


async def _show_expired(visit: Visit) -> Response:
    url = visit.page.links.top_level(LINK_REQUEST_PATH)
    return await visit.show_note(EXPIRED, EXPIRED_TEXTS, 404, link_request_url=url)


async def _show_case(visit: Visit, case: Case) -> Response:
    row, request, locale = case.row, visit.request, visit.page.locale
    subject = await load_subject(visit.tx, row)
    entry = await fields.make_entry(visit.context, _list_values(case))
    badge, badge_style, sentence = STATES[row["state"]]
    shown = [(field.label, entry.texts[field.name]) for field in (*fields.END, *fields.WHERE, *fields.DETAILS)]
    model = StatusPage(
        title=read_title(subject.title),
        case=case,
        action=request.with_query(request.path),
        change_url=request.with_query(request.path + CHANGE),
        event_url=visit.page.links.event(case.event["slug"]) if case.event is not None else "",
        badge=locale.text(badge),
        badge_style=badge_style,
        sentence=locale.text(sentence),
        start=describe_start(subject.start_local, locale, all_day=subject.all_day),
        reason=locale.text(REASON_TEXTS[REASONS[row["reason"] - 1]]) if row["reason"] is not None else "",
        facts=[(locale.text(label), text) for label, text in shown if text],
    )
    return await visit.show(model)


def _list_values(case: Case) -> dict[str, Any]:
    """Return the values of the event, with the proposed ones unless they have been published or refused."""
    current = read_current(EVENTS, case.event) if case.event is not None else {}
    return {**current, **(storage.decode_values(case.row) if case.is_open or not current else {})}


async def handle_change(request: PageRequest) -> Response:
    """Show the form with an entry or with its event as it is now, or send what was changed."""
    request.needs_primary, form = True, await read_form(request)
    problems: Mapping[str, Message] = {}
    async with enter(request, writing=form is not None, needs_open=False) as visit:
        case = await submissions.follow_link(visit.context, request.path_params["link"], locked=form is not None)
        if case is None or not case.can_change:
            return await _show_expired(visit)
        if form is None:
            entry, hidden = await fields.make_entry(visit.context, _list_values(case)), {}
            if (event := case.event) is not None:
                original = await fields.make_entry(visit.context, read_current(EVENTS, event))
                hidden = {"original": original.encode(), "base_revision": str(event["revision"])}
        else:
            entry = fields.read_entry(form)
            hidden = {name: read_text(form, name) for name in ("original", "base_revision") if name in form}
            problems = fields.check_entry(entry, fields.CHANGE_FORM) or await _change(visit, case, entry, hidden)
            if not problems:
                return see_other(request.path.removesuffix(CHANGE), request)
        back_url = request.with_query(request.path.removesuffix(CHANGE))
        action = request.with_query(request.path)
        title, groups = N_("Change your entry"), fields.CHANGE_FORM
        return await visit.show_form(title, groups, entry, problems, action=action, hidden=hidden, back_url=back_url)


async def _change(visit: Visit, case: Case, entry: Entry, hidden: Mapping[str, str]) -> Mapping[str, Message]:
    """Send what was changed; return what is wrong with it, by parameter."""
    if case.event is None:
        values = {name: value for name, value in (await fields.make_params(visit.context, entry)).items() if value}
    else:
        original = fields.decode_entry(hidden.get("original", ""))
        values = await fields.make_changed_params(visit.context, entry, original)
    try:
        await _send(visit, case, values, entry.texts["note"], parse_id(hidden.get("base_revision", "")))
    except ApiError as error:
        if error.status >= 500:
            raise
        return field_errors(error) or {"": error.message}
    return {}


# Everything that looks like a link, but is none, gets the page that explains why links die.
_LINK: Final = rf"{LINK_PATH}(?P<link>[^/]+)"
ROUTES: Final = (
    PageRoute(_LINK, None, accepts_post=True, handle=handle_status),
    PageRoute(_LINK + CHANGE, None, accepts_post=True, handle=handle_change),
)
