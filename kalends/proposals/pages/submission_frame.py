"""What the pages of the public form share: models, transactions, and the time at which a form was rendered."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.event_queries import CategoryChoice
from kalends.core import errors
from kalends.core.credentials import constant_time_equals, keyed_hash
from kalends.core.messages import Message
from kalends.http.bodies import query_value
from kalends.proposals.pages.submission_fields import Entry, FieldGroup, FormField, find_field
from kalends.proposals.rules import MAX_FORM_AGE, MIN_FORM_AGE
from kalends.website.context import PageRequest, make_page_context, show_page
from kalends.website.models.page_parts import take_fitting
from kalends.website.page_server import respond
from kalends.website.pages import Page

ADD_PATH: Final = "/events/add/"
LINK_REQUEST_PATH: Final = "/events/add/link/"
MAX_CHOICES: Final = 200  # venues or organizers that the form suggests
MAX_CHOICE_BYTES: Final = 8000


@dataclass(frozen=True, slots=True)
class SimilarEvent:
    title: str
    when: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFormPage(Page):
    template: ClassVar[str] = "submission_form.html"
    styles: ClassVar[tuple[str, ...]] = ("submission.css",)
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "submission.js")
    kind: str = "submission-page"
    robots: str = "noindex"
    action: str
    groups: Sequence[FieldGroup]
    entry: Entry
    problems: Mapping[str, str]  # by field
    problem: str = ""  # about the whole form
    similar: Sequence[SimilarEvent] = ()
    categories: Sequence[CategoryChoice] = ()
    choices: Mapping[str, Sequence[str]]
    hidden: Mapping[str, str]
    is_new: bool = False
    is_full: bool = False  # whether there is no room for pictures
    lost_picture: bool = False  # whether the picture has to be chosen again
    back_url: str = ""
    link_request_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionNote(Page):
    """A page with a message and, optionally, a form that asks for the email address or links."""

    template: ClassVar[str] = "submission_note.html"
    styles: ClassVar[tuple[str, ...]] = ("submission.css",)
    kind: str = "submission-page"
    robots: str = "noindex"
    paragraphs: Sequence[str] = ()
    asks_email: bool = False
    problem: str = ""
    stamp: str = ""
    link_request_url: str = ""


@asynccontextmanager
async def enter(
    page_request: PageRequest, *, writing: bool = False, is_open: bool = True
) -> AsyncIterator[OperationContext]:
    """Open a transaction. With `is_open`, raise 404 unless the site takes events from the public."""
    async with page_request.transaction(writing=writing) as tx:
        page_request.site_language = tx.site.language
        if is_open and not (tx.site.submissions and page_request.state.can_send_links(tx.site)):
            raise errors.no_route()
        yield page_request.operation_context(tx)


async def show(
    page_request: PageRequest, context: OperationContext, model: Page, status: int = 200, wait: int = 0
) -> Response:
    page = make_page_context(page_request, context)
    response = respond(page_request, await show_page(page, model, status=status, is_cacheable=False))
    # The address of the page may contain a token.
    response.headers.update({"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer"})
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


async def show_form(
    page_request: PageRequest,
    context: OperationContext,
    *,
    title: str,
    groups: Sequence[FieldGroup],
    entry: Entry,
    problems: Mapping[str, Message],
    **more: object,
) -> Response:
    """Show a form. `problems` are by parameter; those without a field are shown above the form."""
    page = make_page_context(page_request, context)
    fields: list[FormField] = [row for group in groups for row in group.fields]
    shown: dict[str, str] = {}
    others: list[str] = []
    for param, message in problems.items():
        row, text = find_field(param, fields), message.render(page.locale.translate)
        if row is None:
            others.append(text)
        else:
            shown.setdefault(row.name, text)
    if problems and not others:
        others.append(page.locale.text("Nothing was sent. Please correct the marked fields."))
    model = SubmissionFormPage(
        title=page.locale.text(title),
        groups=groups,
        entry=entry,
        problems=shown,
        problem=" ".join(others),
        categories=await event_queries.list_categories(context.transaction),
        choices={
            kind.name: take_fitting(
                [choice.label for choice in await event_queries.list_frequent(kind, context, MAX_CHOICES)],
                MAX_CHOICE_BYTES,
                lambda label: len(label.encode()) + 30,
            )
            for kind in (VENUES, ORGANIZERS)
        },
        **more,  # type: ignore[arg-type]
    )
    return await show(page_request, context, model, 400 if problems else 200)


def check_entry(entry: Entry, groups: Sequence[FieldGroup]) -> dict[str, Message]:
    """Return what is missing or too long, by parameter."""
    problems: dict[str, Message] = {}
    for row in (row for group in groups for row in group.fields):
        text = entry.texts.get(row.name, "")
        if row.is_required and not text:
            problems[row.param or row.name] = Message("This field is required.")
        elif len(text) > row.max_length:
            problems[row.param or row.name] = Message(
                "must have at most {maximum} characters.", maximum=row.max_length
            )
    if not entry.texts["start_time"] and not entry.texts["all_day"]:
        problems.setdefault("start_date", Message("Enter a time, or check “All day”."))
    return problems


def is_post(page_request: PageRequest) -> bool:
    return page_request.request.method == "POST"


def see_other(path: str, page_request: PageRequest) -> Response:
    """Redirect after a form, in the same language."""
    language = query_value(page_request.request, "lang")
    return Response(status_code=303, headers={"Location": f"{path}?lang={language}" if language else path})


# The time at which a form was rendered, signed: programs send forms at once, or again and again.


def make_stamp(context: OperationContext) -> str:
    seconds = str(int(context.transaction.now.timestamp()))
    return f"{seconds}.{_sign(context, seconds)}"


def find_stamp_problem(context: OperationContext, stamp: str) -> Message | None:
    seconds, _, signature = stamp.partition(".")
    is_signed = constant_time_equals(_sign(context, seconds).encode(), signature.encode())
    age = context.transaction.now - datetime.fromtimestamp(int(seconds), UTC) if is_signed else MAX_FORM_AGE * 2
    if age > MAX_FORM_AGE:
        return Message("This form was open for more than a day. Check your entry and send it again.")
    if age < MIN_FORM_AGE:
        return Message("That was very fast. Check your entry and send it again.")
    return None


def _sign(context: OperationContext, seconds: str) -> str:
    return keyed_hash(context.transaction.site.secret, "form time", seconds).hex()
