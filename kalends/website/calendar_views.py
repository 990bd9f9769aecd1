"""The pages of a time: month, week and day."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from kalends.core import errors
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.events import EVENTS
from kalends.operations import cache_tags, calendar
from kalends.operations.context import OperationContext
from kalends.website.context import make_page_context, show_page, with_values
from kalends.website.filter_views import make_category_nav, make_chips
from kalends.website.handler import PageRequest, PageResponse
from kalends.website.list_views import MAX_CARDS, NO_EVENTS, PeriodLink, list_image_urls, make_cards, make_paging
from kalends.website.models.grid import find_month_bounds, find_week_start, make_agenda, make_entry, make_weeks
from kalends.website.models.page_budget import fits
from kalends.website.models.urls import has_page

DAY: Final = timedelta(days=1)
MAX_PER_MONTH_DAY: Final = 3  # events that a day of the month shows by name
MAX_PER_WEEK_DAY: Final = 12
MAX_AGENDA_DAYS: Final = 6  # days that a phone lists below the month


async def show_month(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page = make_page_context(page_request, context, keep_dates=False)
    month = _read_day(f"{path_params['month']}-01") if "month" in path_params else page.today.replace(day=1)
    last_day = (month.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    first, last = find_month_bounds(month, page.site.first_weekday)
    rows = await calendar.list_days(context, first, last, MAX_PER_MONTH_DAY)
    entries = [make_entry(row, page.locale, page.links, page.site.timezone) for row in rows]
    before, after = await _find_neighbors(context, month, last_day, [(entry.first, entry.last) for entry in entries])
    is_empty = not any(entry.first <= last_day and entry.last >= month for entry in entries)
    path, heading = f"/events/month/{month.isoformat()[:7]}/", page.locale.month(month)
    max_entries, max_days = MAX_PER_MONTH_DAY, MAX_AGENDA_DAYS
    while True:
        weeks = make_weeks(first, last, rows, entries, today=page.today, month=month, max_entries=max_entries)
        agenda = make_agenda(weeks, page.today)
        if max_entries * max_days == 1 or fits(weeks, agenda[:max_days]):
            break
        max_entries, max_days = (max_entries - 1, max_days) if max_entries > 1 else (max_entries, max_days - 1)
    return show_page(
        page,
        "month.html",
        category_nav=await make_category_nav(page),
        cache_tags=_list_cache_tags(context),
        kind="month-page",
        view="month",
        title=heading,
        heading=heading,
        weeks=weeks,
        agenda=agenda[:max_days],
        agenda_goes_on=len(agenda) > max_days,
        is_empty=is_empty,
        shown_day=page.today if month <= page.today <= last_day else month,
        before=_make_link(page.links.month, before, page.locale.abbreviated_month),
        after=_make_link(page.links.month, after, page.locale.abbreviated_month),
        today_url=page.links.url("/events/month/"),
        active=make_chips(page, path),
        robots="noindex, nofollow" if is_empty and "month" in path_params else "",
        canonical=context.base_url + (path if "month" in path_params else "/events/month/"),
    )


async def show_week(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page = make_page_context(page_request, context, keep_dates=False)
    first = find_week_start(
        _read_day(path_params["day"]) if "day" in path_params else page.today, page.site.first_weekday
    )
    last = first + 6 * DAY
    rows = await calendar.list_days(context, first, last, MAX_PER_WEEK_DAY)
    entries = [make_entry(row, page.locale, page.links, page.site.timezone) for row in rows]
    before, after = await _find_neighbors(context, first, last, [(entry.first, entry.last) for entry in entries])
    path, heading = f"/events/week/{first.isoformat()}/", page.locale.days(first, last)

    def name_week(day: date) -> str:
        first = page.locale.short_day(find_week_start(day, page.site.first_weekday))
        return page.locale.text(N_("Week of {day}"), day=first)

    return show_page(
        page,
        "week.html",
        category_nav=await make_category_nav(page),
        cache_tags=_list_cache_tags(context),
        kind="week-page",
        view="week",
        title=heading,
        heading=heading,
        week=make_weeks(first, last, rows, entries, today=page.today, max_entries=MAX_PER_WEEK_DAY)[0],
        is_empty=not entries,
        shown_day=first,
        before=_make_link(page.links.week, before, name_week),
        after=_make_link(page.links.week, after, name_week),
        today_url=page.links.url("/events/week/"),
        active=make_chips(page, path),
        robots="noindex",
        canonical=context.base_url + path,
    )


async def show_day(page_request: PageRequest, context: OperationContext, path_params: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context, keep_dates=False)
    day = _read_day(path_params["day"]) if "day" in path_params else page.today
    found = await calendar.list_day(with_values(context, per_page=MAX_CARDS), day)
    cards = make_cards(page, found)
    before, after = await _find_neighbors(context, day, day, [(card.when.first, card.when.last) for card in cards])
    path, heading = f"/events/day/{day.isoformat()}/", page.locale.day(day)
    return show_page(
        page,
        "list.html",
        category_nav=await make_category_nav(page),
        cache_tags=found.cache_tags,
        image_urls=list_image_urls(cards),
        kind="day-page",
        view="day",
        title=heading,
        heading=heading,
        groups=[(None, cards)] if cards else [],
        shown_day=day,
        paging=make_paging(page, found.page, path),
        before=_make_link(page.links.day, before, page.locale.short_day),
        after=_make_link(page.links.day, after, page.locale.short_day),
        today_url=page.links.url("/events/day/"),
        active=make_chips(page, path),
        robots="noindex",
        canonical=context.base_url + path,
        past_url="",
        coming_url="",
        nothing=NO_EVENTS,
    )


# Helpers, in the order they are called -----------------------------------------------------------


def _read_day(text: str) -> date:
    """A day of the address."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise errors.no_route() from None
    if not has_page(day):
        raise errors.no_route()
    return day


def _list_cache_tags(context: OperationContext) -> tuple[str, ...]:
    return cache_tags.tags_for_list(EVENTS, context.transaction.site, [], context.values)


async def _find_neighbors(
    context: OperationContext, first: date, last: date, spans: list[tuple[date, date]]
) -> tuple[date | None, date | None]:
    """The nearest days before and after that have something; what goes beyond these days is there already."""
    before: date | None = first - DAY
    if not any(begin < first for begin, _ in spans):
        before = await calendar.find_day_before(context, first)
    after: date | None = last + DAY
    if not any(end > last for _, end in spans):
        after = await calendar.find_day_after(context, last)
    return before, after


def _make_link(
    make_url: Callable[[date], str], day: date | None, make_name: Callable[[date], str]
) -> PeriodLink | None:
    return PeriodLink(make_url(day), make_name(day)) if day is not None and has_page(day) else None
