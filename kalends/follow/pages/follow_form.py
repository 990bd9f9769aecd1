"""The form for following a list, with an example of the email, and what happens when it is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.access.caching import tags_for_event
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.operations.page_filters import resolve_filters
from kalends.calendar.rules.record_types import Event
from kalends.core import errors
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id, read_params
from kalends.core.urls import read_ascii_email
from kalends.follow.mails.digest_formats import to_text
from kalends.follow.mails.digest_model import Reader, describe_filters, make_digest
from kalends.follow.mails.message_bytes import FOLLOW_PATH
from kalends.follow.operations import followings
from kalends.follow.operations.digest_content import DigestContent, read_digest
from kalends.follow.operations.event_follows import list_followable
from kalends.follow.operations.followed_queries import make_query
from kalends.follow.rules.follow_limits import DEFAULT_HOUR, DEFAULT_WEEKDAY
from kalends.follow.rules.slots import DAY, RHYTHMS, Rhythm, Slot
from kalends.rendering.cards import read_title
from kalends.rendering.page_locale import PageLocale
from kalends.website.context import PageContext, PageRequest, PageResponse, PageRoute, make_page_context, show_page
from kalends.website.form_visits import (
    HONEYPOT,
    FormPage,
    FormVisit,
    read_email_field,
    read_form,
    read_text,
    visit_form,
)
from kalends.website.list_views import LIST_PARAMS

HEADING: Final = N_("Follow by email")
EVENT_HEADING: Final = N_("Tell me about changes")
CHECK_EMAIL: Final = N_("Check your email")
SENT: Final = (
    N_("We’ve sent you an email with a link. Open the link within 48 hours and press “Confirm”."),
    N_("If no email arrives, look in your spam folder, check the address, and try again in 20 minutes."),
)
TRY_LATER: Final = N_("Too many requests from your network. Try again later.")
RHYTHM_NAMES: Final = {"weekly": N_("Every week"), "daily": N_("Every day")}
DEFAULT: Final = Rhythm(RHYTHMS[0], DEFAULT_WEEKDAY, DEFAULT_HOUR)
MAX_EXAMPLE: Final = 20_000  # characters


@dataclass(frozen=True, slots=True)
class RhythmChoices:
    """What the fields for day and hour offer."""

    rhythms: Sequence[tuple[str, str]]
    weekdays: Sequence[tuple[int, str]]
    hours: Sequence[tuple[int, str]]

    @classmethod
    def make(cls, locale: PageLocale) -> "RhythmChoices":
        return cls(
            rhythms=[(name, locale.text(RHYTHM_NAMES[name])) for name in RHYTHMS],
            weekdays=list(enumerate((name for _, name in locale.weekdays(1)), start=1)),
            hours=[(hour, locale.hour(hour)) for hour in range(24)],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowPage(FormPage):
    template: ClassVar[str] = "follow_form.html"
    about: str
    action: str
    titles: Sequence[str] = ()  # of events; empty: a list
    choices: RhythmChoices
    chosen: Rhythm
    zone: str
    example: str = ""
    email: str = ""
    problem: str = ""


async def show_follow_form(request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show the form with an example of the email. Like other pages, it is cached until an event changes."""
    site = context.transaction.site
    if not (site.follow_by_email and request.state.can_send_links(site)):
        raise errors.no_route()
    page = make_page_context(request, context, keep_dates=False)
    if (ids := _find_ids(page)) is not None:
        events = await _find_events(context, ids)
        model = _make_model(page, chosen=DEFAULT, titles=[read_title(event.title) for event in events])
        tags = [tag for event_id in ids for tag in tags_for_event(event_id)]
        return await show_page(page, model, cache_tags=tuple(tags), expires_at=min(row.end_utc for row in events))
    query = _make_query(page)
    slot = Slot(page.day_start, page.day_start + 7 * DAY)
    content = await read_digest(context, query, slot, None)
    reader = Reader.make(site, request.language, context.base_url)
    example = to_text(make_digest(content, query, slot, reader)) if not content.is_empty else ""
    model = _make_model(page, content, chosen=DEFAULT, example=example[:MAX_EXAMPLE])
    return await show_page(page, model, cache_tags=tuple(content.cache_tags))


def _find_ids(page: PageContext) -> Sequence[int] | None:
    """Return the events that the form is about; None for a list."""
    ids: Sequence[int] | None = page.context.values.get("include")
    return ids


async def _find_events(context: OperationContext, ids: Sequence[int]) -> list[Event]:
    events = await list_followable(context, ids)
    if not events:
        raise errors.no_route()
    return events


def _make_query(page: PageContext) -> str:
    """Return the list as canonical text. Without its unknown place, it would be another list."""
    if page.filters.unknown_place:
        raise errors.invalid("near", "is not a place of this calendar.")
    return make_query(page.links.stable_filters)


def _make_model(page: PageContext, content: DigestContent | None = None, **more: Any) -> FollowPage:
    values = content.values if content is not None else page.context.values
    filters = content.filters if content is not None else page.filters
    locale = page.locale
    return FollowPage(
        title=locale.text(EVENT_HEADING if more.get("titles") else HEADING),
        about=describe_filters(filters, values, locale),
        action=page.request.with_query(FOLLOW_PATH),
        choices=RhythmChoices.make(locale),
        zone=page.site.timezone,
        **more,
    )


async def handle_follow(request: PageRequest) -> Response:
    """Store an unconfirmed follow and send an email, whatever the address is."""
    form = await read_form(request) or {}
    filled = {name: value for name, value in form.items() if value not in ("", [""])}
    values = read_params(LIST_PARAMS, filled)
    typed = read_text(form, "email")
    email, problem = read_email_field(typed, read_ascii_email)
    async with visit_form(FormVisit, request, attrgetter("follow_by_email"), writing=True) as visit:
        if wait := await followings.count_post(visit.tx, request.client_ip):
            return await visit.show_note(HEADING, [TRY_LATER], 429, wait)
        context, request.filters = await resolve_filters(replace(visit.context, values=values))
        page = make_page_context(request, context, keep_dates=False)
        events = await _find_events(context, ids) if (ids := _find_ids(page)) is not None else []
        rhythm = DEFAULT if events else read_form_rhythm(form)
        problem = problem or (Message("Choose a day and an hour.") if rhythm is None else None)
        if problem is not None or rhythm is None:
            more: dict[str, Any] = {"titles": [read_title(event.title) for event in events], "email": typed}
            text = problem.render(page.locale.translate) if problem is not None else ""
            return await visit.show(_make_model(page, problem=text, chosen=rhythm or DEFAULT, **more), 400)
        wanted: Sequence[Any] = [event.id for event in events] or [_make_query(page)]
        if not read_text(form, HONEYPOT):  # A program gets the same answer.
            column: followings.Followable = "event_id" if events else "query"
            await followings.ask(visit.tx, email, column, wanted, language=request.language, rhythm=rhythm)
        return await visit.show_note(CHECK_EMAIL, SENT)


def read_form_rhythm(form: Mapping[str, Any]) -> Rhythm | None:
    """Return the chosen day and hour; None if a field has another value than the form offers."""
    weekday, hour = parse_id(read_text(form, "weekday") or "1"), parse_id(read_text(form, "hour"))
    name = read_text(form, "rhythm")
    if name not in RHYTHMS or weekday not in range(1, 8) or hour not in range(24):
        return None
    return Rhythm(name, weekday or 1, hour or 0)


ROUTES: Final = (PageRoute(FOLLOW_PATH, show_follow_form, LIST_PARAMS, accepts_post=True, handle=handle_follow),)
