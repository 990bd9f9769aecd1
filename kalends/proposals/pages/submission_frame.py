"""The parts that all pages of the public form share: a visit with its transaction, and the page models."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.core.credentials import constant_time_equals, keyed_hash
from kalends.core.messages import Message, gettext_noop as N_
from kalends.proposals.pages.submission_fields import Entry, FieldGroup, find_field
from kalends.proposals.rules import MAX_FORM_AGE, MIN_FORM_AGE
from kalends.website.context import PageRequest
from kalends.website.form_visits import FormPage, FormVisit, visit_form
from kalends.website.models.page_parts import take_fitting

ADD_PATH: Final = "/events/add/"
LINK_REQUEST_PATH: Final = f"{ADD_PATH}link/"
MAX_CHOICES: Final = 200  # venues or organizers that the form suggests
MAX_CHOICE_BYTES: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionFormPage(FormPage):
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
class Visit(FormVisit):
    """A request to the public form inside a transaction."""

    async def show_note(
        self, title: str, paragraphs: Sequence[str], status: int = 200, wait: int = 0, **more: Any
    ) -> Response:
        """Show a page with a message and, optionally, a form for the email address."""
        values = {"hidden": {"stamp": self.make_stamp()}, **more}
        return await FormVisit.show_note(self, title, paragraphs, status, wait, **values)

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


def enter(
    request: PageRequest, *, writing: bool = False, needs_open: bool = True
) -> AbstractAsyncContextManager[Visit]:
    """Open a transaction. With `needs_open`, raise 404 unless the site takes events from the public."""
    is_open = attrgetter("submissions") if needs_open else None
    return visit_form(Visit, request, is_open, writing=writing)
