"""The month, week, weekend and day views, and the home page."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import groupby
from math import log2
from typing import Final

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import MAX_PER_PAGE
from kalends.calendar.operations import calendar_months
from kalends.calendar.operations.calendar_months import make_date_filter
from kalends.calendar.operations.record_verbs import list_events
from kalends.core import errors
from kalends.core.messages import gettext_noop as N_
from kalends.core.search_words import EVENING, find_weekend
from kalends.rendering.cards import Card
from kalends.rendering.page_urls import has_page
from kalends.store import Row
from kalends.website import list_views, map_views
from kalends.website.context import PageContext, PageRequest, PageResponse, make_page_context, show_page, with_values
from kalends.website.list_views import (
    MAX_CARDS,
    describe_empty_period,
    make_cards,
    make_chips,
    make_empty_state,
    make_paging,
)
from kalends.website.models.grid import Entry, find_month_bounds, find_week_start, lay_out_month, make_entry
from kalends.website.models.page_parts import (
    MAX_ENTRIES_BYTES,
    MAX_FEATURED_BYTES,
    Highlights,
    find_preview_image,
    fit_rows,
    measure_month,
    trim,
    week_fits,
)
from kalends.website.models.week import MAX_COLUMNS, MAX_LANES, HourGrid, make_hour_grid
from kalends.website.pages import CardList, EmptyState, ListPage, MonthPage, PeriodLink, WeekendPage, WeekPage

DAY: Final = timedelta(days=1)
# Each combination limits three things: events per day below the bars, stacked bars, and agenda days on small screens.
# A page uses the first combination that fits the size budget.
MONTH_SIZES: Final = (
    (3, 5, 6), (2, 4, 5), (2, 3, 5), (1, 3, 4), (1, 2, 4), (1, 1, 4), (1, 1, 2), (1, 1, 1), (0, 1, 1),
)  # fmt: skip
MAX_PER_MONTH_DAY: Final = 4
MAX_PER_WEEK_DAY: Final = 40
# Maximum number of events side by side and per day, and of rows of bars. The fuller a week is, the lower the limits.
WEEK_LIMITS: Final = (
    (MAX_COLUMNS, MAX_PER_WEEK_DAY, MAX_LANES), (1, 20, 5), (1, 10, 5), (1, 5, 5), (1, 1, 5), (1, 1, 3),
)  # fmt: skip
MAX_WEEKEND_EVENTS: Final = MAX_PER_PAGE
MAX_RUNNING: Final = 12  # events that started before the weekend
MAX_FEATURED: Final = 3
MAX_WEEKEND: Final = 4


async def show_month(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show a month, by default the current one. A full month lists fewer events per day to keep the page small."""
    page = make_page_context(page_request, context, keep_dates=False)
    month = read_day(f"{path_params['month']}-01") if "month" in path_params else page.today.replace(day=1)
    last_day = (month.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    first, last = find_month_bounds(month, page.site.first_weekday)
    rows = await calendar_months.list_days(context, first, last, MAX_PER_MONTH_DAY)
    entries = [make_entry(row, page.locale, page.links, page.site.timezone) for row in rows]
    before, after = await _find_neighbors(context, month, last_day, [(entry.first, entry.last) for entry in entries])
    is_empty = not any(entry.first <= last_day and entry.last >= month for entry in entries)
    path, heading = f"/events/month/{month.isoformat()[:7]}/", page.locale.month(month)
    at, last_size = 0, len(MONTH_SIZES) - 1
    while True:
        layout = lay_out_month(first, last, rows, entries, MONTH_SIZES[at], today=page.today, month=month)
        excess = measure_month(layout, page_request.highlights) / MAX_ENTRIES_BYTES
        if excess <= 1 or at == last_size:
            break
        # Each combination yields about seven eighths of the size of the previous one.
        at = min(last_size, at + max(1, int(5 * log2(excess))))
    model = MonthPage(
        title=heading,
        heading=heading,
        weeks=layout.weeks,
        agenda=layout.agenda,
        has_more_days=layout.has_more_days,
        empty=make_empty_state(
            page,
            page.locale.text(N_("Nothing in {month}"), month=heading),
            (before, after),
            page.links.month,
            page.links,
        )
        if is_empty
        else None,
        current_day=page.today if month <= page.today <= last_day else month,
        before=_make_link(page.links.month, before, page.locale.abbreviated_month),
        after=_make_link(page.links.month, after, page.locale.abbreviated_month),
        today_url=page.links.url("/events/month/"),
        active_filters=make_chips(page, path),
        robots="noindex, nofollow" if is_empty and "month" in path_params else "",
        canonical=context.base_url + (path if "month" in path_params else "/events/month/"),
    )
    return await show_page(page, model, cache_tags=_list_cache_tags(context))


async def show_week(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show the week that contains a day, by default the current week."""
    page = make_page_context(page_request, context, keep_dates=False)
    first = find_week_start(
        read_day(path_params["day"]) if "day" in path_params else page.today, page.site.first_weekday
    )
    last = first + 6 * DAY
    rows = await calendar_months.list_days(context, first, last, MAX_PER_WEEK_DAY, with_venues=True)
    entries = [make_entry(row, page.locale, page.links, page.site.timezone, with_place=True) for row in rows]
    before, after = await _find_neighbors(context, first, last, [(entry.first, entry.last) for entry in entries])
    path, heading = f"/events/week/{first.isoformat()}/", page.locale.days(first, last)

    def name_week(day: date) -> str:
        first = page.locale.short_day(find_week_start(day, page.site.first_weekday))
        return page.locale.text(N_("Week of {day}"), day=first)

    model = WeekPage(
        title=heading,
        heading=heading,
        grid=_make_fitting_grid(page, first, rows, entries),
        empty=None if entries else _describe_empty(page, first, last, (before, after), page.links.week),
        current_day=first,
        before=_make_link(page.links.week, before, name_week),
        after=_make_link(page.links.week, after, name_week),
        today_url=page.links.url("/events/week/"),
        active_filters=make_chips(page, path),
        robots="noindex",
        canonical=context.base_url + path,
    )
    # The script shows pictures of events.
    return await show_page(
        page, model, cache_tags=(*_list_cache_tags(context), "venues"), image_urls=(context.media_url,)
    )


async def show_day(page_request: PageRequest, context: OperationContext, path_params: dict[str, str]) -> PageResponse:
    """Show a day, by default today."""
    page = make_page_context(page_request, context, keep_dates=False)
    day = read_day(path_params["day"]) if "day" in path_params else page.today
    found = await calendar_months.list_day(with_values(context, per_page=MAX_CARDS), day)
    cards = make_cards(page, found)
    before, after = await _find_neighbors(context, day, day, [(card.when.first, card.when.last) for card in cards])
    path, heading = f"/events/day/{day.isoformat()}/", page.locale.day(day)
    card_list = CardList(
        heading=heading,
        groups=[("", cards)] if cards else [],
        paging=make_paging(page, found.page, path),
        total=found.page.total,
        empty=None if cards else _describe_empty(page, day, day, (before, after), page.links.day),
        cache_tags=found.cache_tags,
    )
    model = ListPage(
        kind="day-page",
        view="day",
        title=heading,
        heading=heading,
        card_list=card_list,
        current_day=day,
        before=_make_link(page.links.day, before, page.locale.short_day),
        after=_make_link(page.links.day, after, page.locale.short_day),
        today_url=page.links.url("/events/day/"),
        active_filters=make_chips(page, path),
        robots="noindex",
        canonical=context.base_url + path,
    )
    return await show_page(page, model, cache_tags=card_list.cache_tags, image_urls=card_list.image_urls)


async def show_weekend(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show a weekend from Friday evening to Sunday. Without a date, show what is left of this one, or the next."""
    page = make_page_context(page_request, context, keep_dates=False)
    is_dated = "day" in path_params
    first, sunday = find_weekend(read_day(path_params["day"]) if is_dated else page.today)
    saturday, friday = sunday - DAY, sunday - 2 * DAY
    has_friday = is_dated or page.today <= friday
    if is_dated:
        first = saturday
    begin = datetime.combine(friday, EVENING) if has_friday else datetime.combine(first, time())
    starting = await calendar_months.list_starting(context, begin, sunday, MAX_WEEKEND_EVENTS)
    running = await calendar_months.list_running(context, begin, first, MAX_RUNNING)
    cards = [page.make_card(event) for event in (*starting.records, *running.records)]
    rows, count = fit_rows(cards), len(starting.records)
    headings = {friday: page.locale.text(N_("Friday evening"))}
    groups = [
        (headings.get(day, page.locale.day(day)), list(group))
        for day, group in groupby(sorted(rows[:count], key=_first_day), key=_first_day)
    ]
    if rows[count:]:
        groups.append((page.locale.text(N_("Ongoing")), rows[count:]))
    dates = page.locale.days(begin.date(), sunday)
    path = f"/events/weekend/{saturday.isoformat()}/" if is_dated else "/events/weekend/"

    def link(day: date) -> PeriodLink | None:
        name = page.locale.text(N_("Weekend of {day}"), day=page.locale.short_day(day))
        return PeriodLink(page.links.url(f"/events/weekend/{day.isoformat()}/"), name) if has_page(day) else None

    model = WeekendPage(
        title=dates if is_dated else page.locale.text(N_("This weekend")),
        heading=dates if is_dated else page.locale.text(N_("This weekend")),
        summary="" if is_dated else dates,
        dates="" if is_dated else dates,
        groups=groups,
        more_count=starting.page.total + running.page.total - len(rows),
        more_url=page.links.url("/events/list/", ("overlaps_from", begin.date()), ("overlaps_to", sunday)),
        image=find_preview_image(cards),
        current_day=saturday,
        before=link(saturday - 7 * DAY),
        after=link(saturday + 7 * DAY),
        today_url=page.links.url("/events/weekend/"),
        empty=None if rows else await _describe_empty_weekend(page, begin.date(), sunday),
        active_filters=make_chips(page, path),
        robots="" if not is_dated else "noindex" if rows else "noindex, nofollow",
        canonical=context.base_url + path,
    )
    image_urls = tuple(card.image.src for card in rows if card.image)
    cache_tags = (*starting.cache_tags, *running.cache_tags)
    return await show_page(page, model, cache_tags=cache_tags, image_urls=image_urls)


def _first_day(card: Card) -> date:
    return card.when.first


async def list_today(page: PageContext, limit: int) -> list[Card]:
    """List today's events without images and excerpts: first events that start today, then ongoing events."""
    begin = datetime.combine(page.today, time())
    events = list(
        (await calendar_months.list_starting(page.context, begin, page.today, limit, with_total=False)).records
    )
    if rest := limit - len(events):
        events += (
            await calendar_months.list_running(page.context, begin, page.today, rest, with_total=False)
        ).records
    return [replace(page.make_card(event), image=None, excerpt="") for event in events]


def read_day(text: str) -> date:
    """Parse the day in a path. Raise 404 if the day does not exist or has no page."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise errors.no_route() from None
    if not has_page(day):
        raise errors.no_route()
    return day


def _make_fitting_grid(page: PageContext, first: date, rows: list[Row], entries: list[Entry]) -> HourGrid:
    """Arrange a week. If the week is full, show fewer events to keep the page small."""
    zone = page.site.timezone
    grids = (
        make_hour_grid(
            first,
            rows,
            entries,
            today=page.today,
            zone=zone,
            max_columns=max_columns,
            max_entries=max_entries,
            max_lanes=max_lanes,
        )
        for max_columns, max_entries, max_lanes in WEEK_LIMITS
    )
    grid = next(grids)
    while not week_fits(grid) and (smaller := next(grids, None)):
        grid = smaller
    return grid


def _list_cache_tags(context: OperationContext) -> tuple[str, ...]:
    """Return the cache tags for a page that shows titles, times and statuses of events, but no descriptions."""
    return caching.tags_for_shown(EVENTS, context.values, [])


async def _find_neighbors(
    context: OperationContext, first: date, last: date, spans: list[tuple[date, date]]
) -> tuple[date | None, date | None]:
    """Return the nearest days with events before and after a period.

    No query is needed if `spans`, the days of known events, reach beyond the period.
    """
    before = max((min(end, first - DAY) for begin, end in spans if begin < first), default=None)
    if before is None:
        before = await calendar_months.find_day_before(context, first)
    after = min((max(begin, last + DAY) for begin, end in spans if end > last), default=None)
    if after is None:
        after = await calendar_months.find_day_after(context, last)
    return before, after


def _describe_empty(
    page: PageContext,
    first: date,
    last: date,
    nearest: tuple[date | None, date | None],
    make_url: Callable[[date], str],
) -> EmptyState:
    return make_empty_state(page, describe_empty_period(page, first, last), nearest, make_url, page.links)


async def _describe_empty_weekend(page: PageContext, first: date, last: date) -> EmptyState:
    nearest = await _find_neighbors(page.context, first, last, [])
    return _describe_empty(page, first, last, nearest, page.links.day)


def _make_link(
    make_url: Callable[[date], str], day: date | None, make_name: Callable[[date], str]
) -> PeriodLink | None:
    return PeriodLink(make_url(day), make_name(day)) if day is not None and has_page(day) else None


async def load_highlights(page_request: PageRequest, context: OperationContext) -> Highlights:
    """Return the highlights of the home page.

    There are none if the page is embedded, filtered or not the first of a list.
    """
    if page_request.frame or context.values:
        return Highlights()
    page = make_page_context(page_request, context)
    featured, featured_tags = await _list(
        page, MAX_FEATURED, featured=True, overlaps_from=make_date_filter(page.today)
    )
    first, last = find_weekend(page.today)
    days = {"starts_after": make_date_filter(first - DAY), "starts_before": make_date_filter(last)}
    weekend, weekend_tags = await _list(page, MAX_FEATURED + MAX_WEEKEND, **days)
    shown = {card.id for card in featured}
    others = [card for card in weekend if card.id not in shown][:MAX_WEEKEND]
    return Highlights(trim(featured, MAX_FEATURED_BYTES), others, (*featured_tags, *weekend_tags))


async def _list(page: PageContext, limit: int, **values: object) -> tuple[list[Card], tuple[str, ...]]:
    found = await list_events(replace(page.context, values={**values, "per_page": limit}), with_total=False)
    return [replace(page.make_card(event), excerpt="") for event in found.records], found.cache_tags


VIEWS: Final = {
    "month": show_month,
    "week": show_week,
    "day": show_day,
    "list": list_views.show_list,
    "map": map_views.show_map,
}


async def show_default_view(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show the site's default view, below its highlights if the site has no front page."""
    if context.transaction.site.start_page == "calendar":
        page_request.highlights = await load_highlights(page_request, context)
    return await VIEWS[find_default_view(page_request, context)](page_request, context, {})


def find_default_view(page_request: PageRequest, context: OperationContext) -> str:
    view: str = context.transaction.site.default_view
    return "list" if view == "map" and not page_request.map_settings.tiles_url else view
