"""The start page: the front page with the events of the coming days, or the calendar."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations import calendar_months, front_page
from kalends.calendar.operations.calendar_months import make_date_filter
from kalends.calendar.operations.front_page import Today
from kalends.calendar.operations.record_verbs import list_events
from kalends.core.messages import gettext_noop as N_
from kalends.core.search_words import EVENING, Meaning, find_weekend
from kalends.core.times import DateTimeInput, day_begins, day_ends, to_utc
from kalends.rendering.cards import Card, pick_hue
from kalends.store import Row
from kalends.website.calendar_views import show_default_view
from kalends.website.context import (
    MAX_CATEGORIES,
    PageContext,
    PageRequest,
    PageResponse,
    list_categories,
    make_category_link,
    make_page_context,
    show_page,
)
from kalends.website.models.front import (
    MAX_FEATURED,
    MAX_TODAY,
    MAX_TOMORROW,
    MAX_WEEKEND,
    CategoryTile,
    DayRows,
    FrontParts,
    Picker,
    Section,
    StripLink,
    fit,
    shrink_image,
)
from kalends.website.models.grid import make_entry
from kalends.website.models.page_parts import find_preview_image
from kalends.website.pages import FrontPage
from kalends.website.word_filters import make_pairs

DAYS: Final = 7
SATURDAY, SUNDAY = 6, 7  # ISO weekdays


async def show_start_page(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show the front page at `/` if the site has one. Embedding or parameters lead to the default view."""
    is_plain = page_request.path == "/" and not page_request.frame and not context.values
    if is_plain and context.transaction.site.start_page == "front":
        return await show_front(page_request, context)
    return await show_default_view(page_request, context, path_params)


async def show_front(page_request: PageRequest, context: OperationContext) -> PageResponse:
    page = make_page_context(page_request, context)
    today = _find_today(page)
    first, rows = await _list_rows(page, today)
    featured_ids = await front_page.list_featured_ids(context, page.today, MAX_TODAY + MAX_FEATURED)
    categories = await list_categories(page)
    pictured = await front_page.find_pictured_events(
        context, [row["id"] for row in categories[:MAX_CATEGORIES]], page.day_start
    )
    picker = Picker(rows)
    plan = [*_plan_sections(page, picker, first), ("", "", picker.pick_featured(featured_ids), True)]
    ids = [event_id for *_, event_ids, _ in plan for event_id in event_ids]
    cards, cache_tags = await _load_cards(page, [*ids, *pictured.values()])
    sections = [
        Section(heading or page.locale.text(N_("Featured events")), url, found, is_dated)
        for heading, url, event_ids, is_dated in plan
        if (found := [cards[event_id] for event_id in event_ids if event_id in cards])
    ]
    parts = fit(
        FrontParts(
            sections,
            [_make_day(page, picker, today.day + timedelta(days=n)) for n in range(DAYS)],
            [_make_category(page, row, cards.get(pictured.get(row["id"], 0))) for row in categories[:MAX_CATEGORIES]],
        )
    )
    shown = [card for section in parts.sections for card in section.cards]
    images = [*[card.image for card in shown], *[tile.image for tile in parts.categories]]
    heading, lead = page.locale.long_day(page.today), _count_events(page, rows[0]["taking_place"] if rows else 0)
    model = FrontPage(
        title=page.site.name,
        heading=heading,
        lead=lead,
        summary=f"{heading} · {lead}",
        strip=_make_strip(page, rows[0]) if rows else [],
        parts=parts,
        canonical=f"{context.base_url}/",
        image=find_preview_image(shown),
    )
    return await show_page(
        page,
        model,
        categories=categories,
        cache_tags=(*caching.tags_for_shown(EVENTS, {}, []), caching.PICTURED, *cache_tags),
        expires_at=today.evening if context.transaction.now < today.evening else None,
        image_urls=tuple(image.src for image in images if image),
    )


def _find_today(page: PageContext) -> Today:
    zone, day = page.site.timezone, page.today
    evening = to_utc(DateTimeInput(datetime.combine(day, EVENING), None, False), zone)
    over = evening if page.context.transaction.now >= evening else page.day_start
    weekend, week = (
        (day_begins(make_date_filter(first), zone), day_ends(make_date_filter(last), zone))
        for first, last in (find_weekend(day), _find_week(day))
    )
    return Today(day, evening, page.midnight, weekend, week, over)


def _find_week(today: date) -> tuple[date, date]:
    return today, today + timedelta(days=DAYS - 1)


async def _list_rows(page: PageContext, today: Today) -> tuple[date, list[Row]]:
    """Return the first day and the events of the coming days or, if there are none, of the next day with events."""
    first, last = _find_week(page.today)
    rows = await front_page.list_coming_days(page.context, first, last, today)
    if rows or (day := await calendar_months.find_day_after(page.context, last)) is None:
        return page.today, rows
    return day, await front_page.list_coming_days(page.context, day, day, today)


def _plan_sections(page: PageContext, picker: Picker, first: date) -> list[tuple[str, str, list[int], bool]]:
    """Return each section's heading, URL and event IDs, and whether its cards show their days."""
    today, tomorrow, links = page.today, page.today + timedelta(days=1), page.links
    days = sorted({row["day"] for row in picker.rows})
    sections: list[tuple[str, str, list[int], bool]] = []
    if today in days:
        sections.append((page.locale.text(N_("Today")), links.day(today), picker.pick([today], MAX_TODAY), False))
    elif days and days[0] != tomorrow:
        sections.append((page.locale.long_day(days[0]), links.day(days[0]), picker.pick(days[:1], MAX_TODAY), False))
    limit = MAX_TOMORROW if today in days else MAX_TODAY
    sections.append((page.locale.text(N_("Tomorrow")), links.day(tomorrow), picker.pick([tomorrow], limit), False))
    saturday, sunday = find_weekend(today)
    if today.isoweekday() < SATURDAY:
        weekend = picker.pick([saturday, sunday], MAX_WEEKEND)
        sections.append((page.locale.text(N_("This weekend")), _make_word_url(page, "weekend"), weekend, True))
    return sections


def _make_word_url(page: PageContext, meaning: Meaning) -> str:
    return page.links.url("/events/list/", *make_pairs(meaning, page.today).items())


async def _load_cards(page: PageContext, ids: list[int]) -> tuple[dict[int, Card], tuple[str, ...]]:
    """Load all of the page's events at once, as cards without excerpts."""
    if not ids:
        return {}, ()
    context = replace(page.context, values={"include": ids, "per_page": len(ids)})
    found = await list_events(context, with_total=False)
    cards = [page.make_card(event) for event in found.records]
    return (
        {card.id: replace(card, excerpt="", image=shrink_image(card.image)) for card in cards},
        found.cache_tags,
    )


def _make_day(page: PageContext, picker: Picker, day: date) -> DayRows:
    shown, more = picker.list_others(day)
    entries = [make_entry(row, page.locale, page.links, page.site.timezone) for row in shown]
    return DayRows(day, page.locale.long_day(day), page.links.day(day), entries, more)


def _make_category(page: PageContext, row: Row, card: Card | None) -> CategoryTile:
    link = make_category_link(page, row)
    return CategoryTile(link.name, link.url, card.image if card else None, pick_hue(row["id"]))


def _count_events(page: PageContext, count: int) -> str:
    if count == 0:
        return page.locale.text(N_("Nothing on today"))
    return (
        page.locale.text(N_("{n} things on today"), n=count)
        if count > 1
        else page.locale.text(N_("One thing on today"))
    )


def _make_strip(page: PageContext, counts: Row) -> list[StripLink]:
    """Return links to filtered lists that have events. On Sundays, the weekend is today."""
    day, links = page.today, page.links
    tomorrow = day + timedelta(days=1)
    first, last = _find_week(day)
    free = links.url("/events/list/", ("free", 1), ("overlaps_from", first), ("overlaps_to", last))
    rows = [
        (N_("Today"), "today", links.day(day)),
        (N_("Tonight"), "tonight", _make_word_url(page, "tonight")),
        (N_("Tomorrow"), "tomorrow", links.day(tomorrow)),
        (N_("This weekend"), "weekend" if day.isoweekday() < SUNDAY else "", _make_word_url(page, "weekend")),
        (N_("Free"), "free", free),
    ]
    return [
        StripLink(page.locale.text(name), counts[column], url)
        for name, column, url in rows
        if column and counts[column]
    ]
