"""The parts that all pages of the public form share: a visit with its transaction, and the page models."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.core import errors
from kalends.core.credentials import constant_time_equals, keyed_hash
from kalends.core.messages import Message, gettext_noop as N_
from kalends.http import bodies
from kalends.http.auth import reject_cross_site
from kalends.proposals.pages.submission_fields import Entry, FieldGroup, find_field
from kalends.proposals.rules import MAX_FORM_AGE, MIN_FORM_AGE
from kalends.store.database import Transaction
from kalends.website.context import PageContext, PageRequest, make_page_context, show_page
from kalends.website.models.page_parts import take_fitting
from kalends.website.page_server import respond
from kalends.website.pages import Page

ADD_PATH: Final = "/events/add/"
LINK_REQUEST_PATH: Final = f"{ADD_PATH}link/"
MAX_CHOICES: Final = 200  # venues or organizers that the form suggests
MAX_CHOICE_BYTES: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPage(Page):
    """A page of the public form."""

    styles: ClassVar[tuple[str, ...]] = ("submission.css",)
    kind: str = "submission-page"
    robots: str = "noindex"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionNotePage(SubmissionPage):
    template: ClassVar[str] = "submission_note.html"
    hidden: Mapping[str, str]  # fields of the form that only programs read
    paragraphs: Sequence[str]
    problem: str = ""
    asks_email: bool = False
    link_request_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFormPage(SubmissionPage):
    template: ClassVar[str] = "submission_form.html"
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "submission.js")
    hidden: Mapping[str, str]
    problem: str
    action: str
    groups: Sequence[FieldGroup]
    entry: Entry
    problems: Mapping[str, str]  # by field
    categories: Sequence[event_queries.CategoryChoice]
    choices: Mapping[str, Sequence[str]]  # suggestions for venues and organizers
    similar: Sequence[Mapping[str, str]] = ()
    is_new: bool = False
    is_full: bool = False  # whether there is no room for pictures
    lost_picture: bool = False  # whether the picture has to be chosen again
    back_url: str = ""
    link_request_url: str = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to the public form inside a transaction."""

    request: PageRequest
    context: OperationContext
    page: PageContext

    @property
    def tx(self) -> Transaction:
        return self.context.transaction

    async def show(self, model: Page, status: int = 200, wait: int = 0) -> Response:
        page_response = await show_page(self.page, model, status=status, is_cacheable=False)
        response = respond(self.request, page_response)
        # The address of the page may contain a token.
        response.headers.update({"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer"})
        if wait:
            response.headers["Retry-After"] = str(wait)
        return response

    async def show_note(
        self, title: str, paragraphs: Sequence[str], status: int = 200, wait: int = 0, **more: Any
    ) -> Response:
        """Show a page with a message and, optionally, a form for the email address."""
        text = self.page.locale.text
        shown = [text(row) for row in paragraphs]
        model = SubmissionNotePage(title=text(title), paragraphs=shown, hidden={"stamp": self.make_stamp()}, **more)
        return await self.show(model, status, wait)

    async def show_form(
        self, title: str, groups: Sequence[FieldGroup], entry: Entry, problems: Mapping[str, Message], **more: Any
    ) -> Response:
        """Show a form. `problems` are by parameter; those without a field are shown above the form."""
        locale, fields = self.page.locale, [row for group in groups for row in group.fields]
        texts = {param: message.render(locale.translate) for param, message in problems.items()}
        found = {param: find_field(param, fields) for param in problems}
        others = [text for param, text in texts.items() if found[param] is None]
        if problems and not others:
            others = [locale.text(N_("Nothing was sent. Please correct the marked fields."))]
        model = SubmissionFormPage(
            title=locale.text(title),
            groups=groups,
            entry=entry,
            problems={row.name: texts[param] for param, row in found.items() if row is not None},
            problem=" ".join(others),
            categories=await event_queries.list_categories(self.tx),
            choices={
                kind.name: take_fitting(
                    [choice.label for choice in await event_queries.list_frequent(kind, self.context, MAX_CHOICES)],
                    MAX_CHOICE_BYTES,
                    lambda label: len(label.encode()) + 30,
                )
                for kind in (VENUES, ORGANIZERS)
            },
            **more,
        )
        return await self.show(model, 400 if problems else 200)

    # The time at which a form was rendered is signed: programs send forms at once, or the same form for days.

    def make_stamp(self) -> str:
        seconds = str(int(self.tx.now.timestamp()))
        return f"{seconds}.{self._sign(seconds)}"

    def find_stamp_problem(self, stamp: str) -> Message | None:
        seconds, _, signature = stamp.partition(".")
        is_signed = constant_time_equals(self._sign(seconds).encode(), signature.encode())
        age = self.tx.now - datetime.fromtimestamp(int(seconds), UTC) if is_signed else MAX_FORM_AGE * 2
        if age > MAX_FORM_AGE:
            return Message("This form was open for more than a day. Check your entry and send it again.")
        if age < MIN_FORM_AGE:
            return Message("That was very fast. Check your entry and send it again.")
        return None

    def _sign(self, seconds: str) -> str:
        return keyed_hash(self.tx.site.secret, "form time", seconds).hex()


@asynccontextmanager
async def enter(request: PageRequest, *, writing: bool = False, needs_open: bool = True) -> AsyncIterator[Visit]:
    """Open a transaction. With `needs_open`, raise 404 unless the site takes events from the public."""
    async with request.transaction(writing=writing) as tx:
        request.site_language = tx.site.language
        if needs_open and not (tx.site.submissions and request.state.can_send_links(tx.site)):
            raise errors.no_route()
        context = request.operation_context(tx)
        yield Visit(request, context, make_page_context(request, context))


async def read_form(request: PageRequest) -> dict[str, Any] | None:
    """Return a form without files; None if the request reads."""
    if request.request.method != "POST":
        return None
    reject_cross_site(request.request, request.state.origins)
    body = await bodies.read_body(request.request, request.state.max_body_bytes)
    return (await bodies.read_values(request.request, body)).values


def see_other(path: str, request: PageRequest) -> Response:
    """Redirect after a form, in the same language."""
    return Response(status_code=303, headers={"Location": request.with_query(path)})
