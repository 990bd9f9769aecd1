"""The series page and the rule-based series calendar."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import PASSWORD
from kalends.calendar.kinds.json_ld import describe_series
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.record_verbs import read_locked_series, read_series
from kalends.calendar.operations.site_feeds import PAST
from kalends.calendar.rules.record_types import Series
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html_text import to_plain_text, to_single_line
from kalends.core.messages import Translate, gettext_noop as N_, translator
from kalends.core.params import Param, Type
from kalends.feeds import ics, series_ics
from kalends.feeds.series_ics import Content, SeriesCalendar, SeriesDate, list_sections
from kalends.rendering.cards import make_page_image, make_state_badge, pick_hue, read_title, shorten
from kalends.series.operations.series_dates import Cursor, DatePage, SeriesContents, list_dates, load_contents
from kalends.website.context import (
    SLUG,
    PageContext,
    PageRequest,
    PageResponse,
    PageRoute,
    make_page_context,
    show_page,
)
from kalends.website.detail_views import (
    MAX_SUMMARY,
    find_own_hosts,
    make_badges,
    make_category_url,
    make_event_facts,
)
from kalends.website.feed_views import CALENDAR_TYPE, ICAL, as_download, mark
from kalends.website.map_views import format_points, list_mapped, make_places
from kalends.website.models.page_parts import adapt
from kalends.website.models.series_models import describe_current_rules, make_date_item
from kalends.website.pages import MessagePage, SeriesPage

MAX_DATES: Final = 24  # per page
_CURSOR: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z-(\d{1,18})", re.ASCII)


def _read_cursor(value: object) -> Cursor:
    match = _CURSOR.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is None:
            raise ValueError(value)
        return Cursor(datetime.fromisoformat(match[1]).replace(tzinfo=UTC), int(match[2]))
    except ValueError:
        raise InvalidValue("must come from the link to the next dates.") from None


AFTER: Final = Param("after", Type({}, _read_cursor), "The date after which the page begins")
SERIES_PARAMS: Final = (PASSWORD, PAST, AFTER)


async def show_series(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show a series with its upcoming or past dates, or ask for its password."""
    page = make_page_context(page_request, replace(context, slug=path_params["slug"]))
    try:
        read = await read_series(page.context)
    except ApiError as error:
        if error.code != "event-password-protected":
            raise
        return await _password_page(page)
    series = read.record
    values, now = context.values, context.transaction.now
    found = await list_dates(context, series, MAX_DATES, past=values.get("past", False), cursor=values.get("after"))
    image = make_page_image(series.content.image)
    ends = [event.end_utc for event in found.events if event.end_utc > now]
    return await show_page(
        page,
        replace(_make_page(page, series), image=image, **_make_list(page, series, found)),
        cache_tags=(*read.cache_tags, "events"),
        expires_at=min(ends, default=None),
        is_cacheable="password" not in values,
        image_urls=(image.src,) if image else (),
    )


async def show_series_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    read = await read_series(replace(context, slug=path_params["slug"]))
    series, translate = read.record, translator(page_request.language)
    loaded = await load_contents(context, series)
    calendar = ics.Calendar(to_plain_text(series.title), f"{series.url.rstrip('/')}.ics", series.content.timezone)
    body = await asyncio.to_thread(_write_calendar, calendar, series, loaded, translate)
    headers = {"Content-Disposition": 'attachment; filename="series.ics"'}
    tags = (*read.cache_tags, "events")
    return PageResponse(body, CALENDAR_TYPE, None, tags, headers=headers)


# The page ------------------------------------------------------------------------------------


async def _password_page(page: PageContext) -> PageResponse:
    """Ask for the password. The page shows the series' title, which is public even if the series is protected."""
    series = await read_locked_series(page.context)
    is_wrong = "password" in page.context.values
    message = N_("Wrong password.") if is_wrong else N_("Enter the password to see the details.")
    model = MessagePage(
        title=read_title(series.title), message=page.locale.gettext(message), asks_password=True, robots="noindex"
    )
    return await show_page(page, model, status=403, is_cacheable=False)


def _make_page(page: PageContext, series: Series) -> SeriesPage:
    content, now = series.content, page.context.transaction.now
    rules = describe_current_rules(series.definition.parts, now, page.locale)
    is_past = series.upcoming == 0 and series.created_until is None
    text = to_single_line(content.excerpt or content.description)
    timezone = series.definition.parts[-1].timezone
    mapped = list_mapped(page, content.places if content.show_map else ())
    return SeriesPage(
        title=read_title(series.title),
        summary=shorten(text or " · ".join(rule.text for rule in rules), MAX_SUMMARY),
        canonical=series.url,
        rules=rules,
        timezone=timezone if timezone != page.site.timezone or content.is_online else "",
        state=make_state_badge(content.event_status, page.locale.translate),
        reason=content.reason,
        badges=make_badges(page, content, is_past=False),
        description=adapt(content.description or content.excerpt, find_own_hosts(page)),
        calendar_url="" if is_past else f"/series/{series.slug}.ics",
        series_links=page.links.with_filters([("series", str(series.id))]),
        ticket_url="" if is_past else content.ticket_url,
        facts=make_event_facts(page, content),
        points=format_points(mapped),
        places=make_places(page, mapped),
        hue=pick_hue(content.categories[0].id if content.categories else None),
        categories=[(term.name, make_category_url(page, term)) for term in content.categories],
        tags=[(term.name, page.links.top_level(f"/tag/{term.slug}/")) for term in content.tags],
        json_ld=orjson.dumps(describe_series(series, page.context.render_context)).decode(),
    )


def _make_list(page: PageContext, series: Series, found: DatePage) -> dict[str, Any]:
    values, path = page.context.values, unquote(urlsplit(series.url).path)
    is_past = values.get("past", False)
    past = [("past", "1")] if is_past else []
    heading = N_("Past dates") if is_past else N_("Upcoming dates")
    return {
        "dates": [
            make_date_item(event, series, page.locale, page.links, page.site.timezone) for event in found.events
        ],
        "dates_heading": page.locale.gettext(heading),
        "empty_text": N_("No past dates.") if is_past else N_("No upcoming dates."),
        "next_url": page.links.url(path, *past, ("after", _format_cursor(found.next))) if found.next else "",
        "first_url": page.links.url(path, *past) if "after" in values else "",
        "past_url": page.links.url(path, ("past", "1")) if not is_past and series.total > series.upcoming else "",
        "upcoming_url": page.links.url(path) if is_past else "",
        "has_more": not is_past and not found.next and series.created_until is not None,
    }


def _format_cursor(cursor: Cursor) -> str:
    return f"{cursor.start_utc.replace(tzinfo=None).isoformat()}Z-{cursor.event_id}"


# The calendar --------------------------------------------------------------------------------


def _write_calendar(calendar: ics.Calendar, series: Series, loaded: SeriesContents, translate: Translate) -> str:
    sections = list_sections(loaded.definition, [Content(since, event) for since, event in loaded.contents])
    dates = {slot: SeriesDate(slot, event, mark(event, translate)) for slot, event in loaded.dates.items()}
    titles = {section.part.uid: mark(section.content, translate) for section in sections if section.content}
    return series_ics.write_series(
        calendar,
        SeriesCalendar(sections, dates, loaded.definition.removed, series.created_until, loaded.sequence, titles),
    )


async def show_dates_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    return as_download(await show_series_calendar(page_request, context, path_params), "series.ics")


ROUTES: Final = (
    PageRoute(rf"/series/{SLUG}/", show_series, SERIES_PARAMS, accepts_post=True, kind=SERIES, embeds=True),
    PageRoute(r"/series/(?P<slug>[^/]+)\.ics", show_series_calendar, is_page=False, kind=SERIES, is_feed=True),
)
CALENDARS: Final = (
    PageRoute(
        rf"/series/{SLUG}/", show_dates_calendar, is_page=False, kind=SERIES, is_feed=True, extra_names=(ICAL,)
    ),
)
