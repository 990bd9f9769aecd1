"""The list, map and search views, and the list of event cards that other pages share."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

import orjson

from kalends.core import errors, params
from kalends.core.event_states import MOVED_ONLINE, STATES
from kalends.core.html.sanitize import clean_plain
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.core.record_types import Event
from kalends.kinds.event_list.first_dates import HIDE_SUBSEQUENT
from kalends.kinds.kind import PAGING
from kalends.operations import calendar
from kalends.operations.context import OperationContext, PageInfo
from kalends.operations.feeds import past_filters
from kalends.operations.page_filters import list_towns
from kalends.operations.typed_records import RecordList, list_events
from kalends.website.context import PageContext, make_date_filter, make_page_context, show_page, with_values
from kalends.website.feed_views import FEED_PARAMS, PAST
from kalends.website.filter_views import (
    CHOICES,
    FIND,
    make_category_nav,
    make_chips,
    make_facets,
    make_quick_filters,
)
from kalends.website.handler import PageRequest, PageResponse
from kalends.website.models.cards import Card, group_by_day
from kalends.website.models.page_budget import MAX_CARDS_BYTES, MAX_RESULTS_BYTES, trim
from kalends.website.pages import CardList, ListPage, MapPage, Paging, SearchForm, SearchPage

DAY: Final = timedelta(days=1)
MAX_CARDS: Final = 24
MAX_TOWNS: Final = 50
NO_EVENTS: Final = N_("No events in this period.")
# A parameter of pages only: a town or venue of the site to search near.
NEAR: Final = Param("near", params.text(lambda text: clean_plain(text, 100)), "")
LIST_PARAMS: Final = (*PAGING, *FEED_PARAMS, NEAR, PAST)
# Parts of the names of categories, tags, venues and organizers that the search form lists.
FIND_PARAMS: Final = tuple(f"{FIND}{name}" for name, *_ in CHOICES)


async def show_list(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    card_list = await list_cards(page, context, "/events/list/")
    model = ListPage(
        category_nav=await make_category_nav(page),
        view="list",
        title=card_list.heading,
        heading=card_list.heading,
        card_list=card_list,
        active_filters=make_chips(page, "/events/list/"),
        canonical=f"{context.base_url}/events/list/",
    )
    return show_page(page, model, cache_tags=card_list.cache_tags, image_urls=card_list.image_urls)


async def show_search(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    # The choices of the form count against the size budget of the page, too.
    max_cards, budget = MAX_CARDS // 2, MAX_RESULTS_BYTES
    card_list = await list_cards(page, context, "/events/search/", max_cards=max_cards, budget=budget)
    heading = page.locale.gettext(N_("Search"))
    model = SearchPage(
        category_nav=await make_category_nav(page),
        title=heading,
        heading=heading,
        card_list=card_list,
        robots="noindex",
        canonical=f"{context.base_url}/events/search/",
        active_filters=make_chips(page, "/events/search/"),
        form=_read_form(page, dict(page_request.query)),
        facets=await make_facets(page, replace(context, values=_make_list_values(page, context))),
        quick_filters=make_quick_filters(page, "/events/search/"),
        towns=await list_towns(context, MAX_TOWNS),
    )
    # The choices contain records of all linked kinds.
    choice_tags = [kind for _, kind, *_ in CHOICES]
    cache_tags = (*card_list.cache_tags, *choice_tags)
    # The script replaces the results, so images that are not on the page yet have to be allowed, too.
    image_urls = (context.media_url, *card_list.image_urls)
    return show_page(page, model, cache_tags=cache_tags, image_urls=image_urls)


async def show_map(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    if not page_request.map_settings.tiles_url:
        raise errors.no_route()
    page = make_page_context(page_request, context)
    # Only the next events: more markers would be unreadable, and counting all events is slow.
    # An event that has moved online is no longer at its venue.
    states = [state for state in context.values.get("event_status", STATES) if state != MOVED_ONLINE]
    map_context = with_values(_without_values(context, "page"), geoloc=True, event_status=states, per_page=MAX_CARDS)
    card_list = await list_cards(page, map_context, "/events/map/", counted=False)
    heading = page.locale.gettext(N_("Map"))
    model = MapPage(
        category_nav=await make_category_nav(page),
        title=heading,
        heading=heading,
        card_list=card_list,
        points=make_points(card_list.cards),
        active_filters=make_chips(page, "/events/map/"),
        canonical=f"{context.base_url}/events/map/",
    )
    return show_page(page, model, cache_tags=card_list.cache_tags, image_urls=card_list.image_urls)


async def list_cards(
    page: PageContext,
    context: OperationContext,
    path: str,
    *,
    counted: bool = True,
    max_cards: int = MAX_CARDS,
    budget: int = MAX_CARDS_BYTES,
) -> CardList:
    """List events as cards: current and upcoming ones, past ones, or those of the requested dates."""
    values = _make_list_values(page, context)
    values["per_page"] = min(values.get("per_page", context.transaction.site.per_page), max_cards)
    is_past, has_dates = context.values.get("past", False), bool(calendar.DATE_PARAMS & set(context.values))
    found = await list_events(replace(context, values=values), with_total=counted)
    cards = make_cards(page, found, budget)
    heading = N_("Past events") if is_past else N_("Upcoming events")
    can_reduce = not (is_past or values.get(HIDE_SUBSEQUENT)) and any(card.repeats for card in cards)
    return CardList(
        heading=page.locale.gettext(heading if not has_dates else N_("Events")),
        groups=_name_groups(page, group_by_day(cards, None if is_past or has_dates else page.today)),
        paging=make_paging(page, found.page, path, *([("past", "1")] if is_past else [])),
        empty_text=NO_EVENTS if is_past or has_dates else N_("No upcoming events."),
        past_url="" if is_past or has_dates else page.links.url(path, ("past", "1")),
        upcoming_url=page.links.url(path) if is_past else "",
        cache_tags=found.cache_tags,
        first_only_url=page.links.url(path, (HIDE_SUBSEQUENT, 1)) if can_reduce else "",
    )


def make_points(cards: list[Card]) -> str:
    """Return the markers of the map as JSON: each location once, with the indexes of its cards."""
    places: dict[tuple[float, float], list[int]] = {}
    for number, card in enumerate(cards):
        if card.latitude is not None and card.longitude is not None:
            places.setdefault((card.latitude, card.longitude), []).append(number)
    return orjson.dumps([[*place, numbers] for place, numbers in places.items()]).decode()


# Helpers, in the order they are called -----------------------------------------------------------


def _make_list_values(page: PageContext, context: OperationContext) -> dict[str, Any]:
    """Return the parameters of the list: without dates, it has the current and upcoming or the past events."""
    values = dict(context.values)
    if values.pop("past", False):
        # The first of all past dates is of no interest.
        values.pop(HIDE_SUBSEQUENT, None)
        # The exact limit of the other case would make dates of the request exact, too.
        has_dates = calendar.DATE_PARAMS & set(values)
        day_before = {"ends_before": make_date_filter(page.today - DAY), "order": "desc"}
        values |= day_before if has_dates else past_filters(context)
    elif not calendar.DATE_PARAMS & set(values):
        values["overlaps_from"] = make_date_filter(page.today)
    return values


def _name_groups(page: PageContext, groups: list[tuple[date | None, list[Card]]]) -> list[tuple[str, list[Card]]]:
    ongoing = page.locale.text(N_("Ongoing"))
    return [(page.locale.day(day) if day else ongoing, cards) for day, cards in groups]


def _read_form(page: PageContext, query: dict[str, str]) -> SearchForm:
    return SearchForm(
        search=query.get("search", ""),
        overlaps_from=str(page.find_day("overlaps_from") or ""),
        overlaps_to=str(page.find_day("overlaps_to") or ""),
        near=query.get("near", ""),
        geoloc_radius=query.get("geoloc_radius") or "40",
        free=bool(query.get("free")),
    )


def _without_values(context: OperationContext, *names: str) -> OperationContext:
    return replace(context, values={name: value for name, value in context.values.items() if name not in names})


def make_cards(page: PageContext, found: RecordList[Event], budget: int = MAX_CARDS_BYTES) -> list[Card]:
    """Return the cards of a list of events, trimmed to a size budget in bytes."""
    return trim([page.make_card(event) for event in found.records], budget)


def make_paging(page: PageContext, info: PageInfo, path: str, *more: tuple[str, str]) -> Paging:
    """Return the position in the list; the links keep `per_page` and the query parameters in `more`."""
    number: int = page.context.values.get("page", 1)
    total, pages = info.total, info.total_pages
    extra = [*more, *[(name, value) for name, value in page.request.query if name == "per_page"]]
    return Paging(
        page=number,
        total=total,
        total_pages=pages,
        before=page.links.url(path, *extra, *([("page", number - 1)] if number > 2 else [])) if number > 1 else "",
        after=page.links.url(path, *extra, ("page", number + 1)) if number < pages else "",
    )
