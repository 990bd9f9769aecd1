"""The hall display at `/display/`: today's events in large type, for a screen in a foyer.

Its script replaces the main element every minute, or as soon as a live list reports a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import ClassVar, Final
from urllib.parse import urlencode

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import MAX_PER_PAGE
from kalends.calendar.operations.calendar_months import find_day_after, list_day
from kalends.calendar.rules.record_types import CANCELLED, POSTPONED, Event
from kalends.core.messages import gettext_noop as N_
from kalends.rendering.cards import Card, find_origin
from kalends.rendering.page_urls import DISPLAY
from kalends.website.context import (
    PageContext,
    PageRequest,
    PageResponse,
    PageRoute,
    make_page_context,
    show_page,
    with_values,
)
from kalends.website.list_views import LIST_PARAMS, describe_empty_period, make_chips
from kalends.website.models.page_parts import take_fitting
from kalends.website.pages import Page

MAX_PAGES: Final = 4  # pages of events to read of a day, from which those that are over are left out
MAX_BYTES: Final = 26_000
ROW_BYTES: Final = 200  # bytes of markup per row, without the text
UNKNOWN_DURATION: Final = timedelta(hours=1)  # of an event that ends when it starts
# What the page shows of an event, as fields of the live list.
SHOWN_FIELDS: Final = ("id", "title", "event_status", "start_date", "end_date", "all_day", "venue")
OFF_STATUSES: Final = (CANCELLED, POSTPONED)


@dataclass(frozen=True, slots=True)
class DisplayRow:
    card: Card
    begin: str  # empty if the event runs all day
    until: str
    is_now: bool

    @property
    def size(self) -> int:
        return ROW_BYTES + len(f"{self.card.title}{self.card.place}{self.until}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayPage(Page):
    template: ClassVar[str] = "display.html"
    styles: ClassVar[tuple[str, ...]] = ("display.css",)
    scripts: ClassVar[tuple[str, ...]] = ("display.js",)
    kind: str = "hall-display"
    robots: str = "noindex"
    heading: str
    filter_names: Sequence[str]
    rows: Sequence[DisplayRow]
    more_count: int
    empty_text: str
    stream_url: str  # of the live list; empty if there is none


async def show_display(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show what is on today and not over yet or, if nothing is left, the next day with events."""
    page = make_page_context(page_request, context, keep_dates=False)
    now, day = context.transaction.now, page.today
    found, tags = await _list_events(context, day)
    events = [event for event in found if _find_end(event) > now]
    if not events and (next_day := await find_day_after(context, day)) is not None:
        day = next_day
        events, more_tags = await _list_events(context, day)
        tags = (*tags, *more_tags)
    # Exhibitions that began earlier come last.
    events.sort(key=lambda event: event.start_local.date() < day)
    rows = [_make_row(page, event, day) for event in events]
    shown = take_fitting(rows, MAX_BYTES, lambda row: row.size)
    day_name = page.locale.long_day(day)
    model = DisplayPage(
        title=page.locale.text(N_("Today")),
        heading=day_name if day == page.today else page.locale.text(N_("Next: {day}"), day=day_name),
        filter_names=[chip.name for chip in make_chips(page, DISPLAY)],
        rows=shown,
        more_count=len(rows) - len(shown),
        empty_text="" if rows else describe_empty_period(page, day, day),
        stream_url=_make_stream_url(page),
    )
    # The marks change when an event begins or ends.
    changes = [moment for event in events for moment in (event.start_utc, _find_end(event)) if moment > now]
    response = await show_page(page, model, cache_tags=tags, expires_at=min(changes, default=None), categories=())
    return _allow_stream(response, find_origin(model.stream_url))


async def _list_events(context: OperationContext, day: date) -> tuple[list[Event], tuple[str, ...]]:
    """Return the events of a day, and the cache tags of the lists."""
    events, tags = list[Event](), set[str]()
    for number in range(1, MAX_PAGES + 1):
        found = await list_day(with_values(context, per_page=MAX_PER_PAGE, page=number), day)
        events += found.records
        tags.update(found.cache_tags)
        if number >= found.page.total_pages:
            break
    return events, tuple(sorted(tags))


def _make_stream_url(page: PageContext) -> str:
    """Return the URL of the live list of today's events, with what the page shows of them."""
    base_url = page.request.state.stream_url
    dates = [("overlaps_from", "today"), ("overlaps_to", "today")]
    fields = ",".join(f"events.{name}" for name in SHOWN_FIELDS)
    query = urlencode([*page.links.stable_filters, *dates, ("per_page", "50"), ("_fields", fields)])
    return f"{base_url.rstrip('/')}{page.request.canonical_prefix}/events?{query}" if base_url else ""


def _allow_stream(response: PageResponse, origin: str) -> PageResponse:
    policy = response.headers["Content-Security-Policy"].replace("connect-src 'self'", f"connect-src 'self' {origin}")
    return replace(response, headers={**response.headers, "Content-Security-Policy": policy}) if origin else response


def _make_row(page: PageContext, event: Event, day: date) -> DisplayRow:
    card = page.make_card(event)
    when = card.when
    spans_days = when.last > max(when.first, day)
    until = page.locale.text(N_("until {day}"), day=page.locale.short_day(when.last)) if spans_days else when.until
    has_begun = when.first < day or event.all_day
    return DisplayRow(
        card=replace(card, image=None, excerpt=""),
        begin="" if has_begun else page.locale.time(event.start_local),
        until=until,
        is_now=event.event_status not in OFF_STATUSES and _is_current(event, page.context.transaction.now),
    )


def _is_current(event: Event, now: datetime) -> bool:
    return event.start_utc <= now < _find_end(event)


def _find_end(event: Event) -> datetime:
    return event.end_utc if event.end_utc > event.start_utc else event.start_utc + UNKNOWN_DURATION


ROUTES: Final = (PageRoute(DISPLAY, show_display, LIST_PARAMS, embeds=True),)
