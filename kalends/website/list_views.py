"""The pages that list events: list, map and search, and what every list of cards has."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import orjson

from kalends.core import errors, params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.core.record_types import Event
from kalends.core.sanitize import clean_plain
from kalends.kinds.kind import PAGING
from kalends.operations import calendar
from kalends.operations.context import OperationContext, PageInfo
from kalends.operations.page_filters import list_towns
from kalends.operations.typed_records import RecordList, list_events
from kalends.website.context import PageContext, make_date_filter, make_page_context, show_page, with_values
from kalends.website.feed_views import FEED_PARAMS
from kalends.website.filter_views import CHOICES, make_category_nav, make_chips, make_choices
from kalends.website.handler import PageRequest, PageResponse
from kalends.website.models.cards import Card, group_by_month
from kalends.website.models.page_budget import MAX_CARDS_BYTES, trim

DAY: Final = timedelta(days=1)
MAX_CARDS: Final = 24  # cards, at the most
MAX_TOWNS: Final = 50
NO_EVENTS: Final = N_("No events in this period.")
# Of pages alone: a town or a venue of this site, and what is over instead of what is to come.
NEAR: Final = Param("near", params.text(lambda text: clean_plain(text, 100)), "")
PAST: Final = Param("past", params.BOOLEAN, "")
LIST_PARAMS: Final = (*PAGING, *FEED_PARAMS, NEAR, PAST)


@dataclass(frozen=True, slots=True)
class PeriodLink:
    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Paging:
    page: int = 1
    total: int = 0
    total_pages: int = 0
    before: str = ""
    after: str = ""


async def show_list(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    model = await list_cards(page, context, "/events/list/")
    return show_page(
        page,
        "list.html",
        category_nav=await make_category_nav(page),
        kind="list-page",
        view="list",
        title=model["heading"],
        active=make_chips(page, "/events/list/"),
        canonical=f"{context.base_url}/events/list/",
        **model,
    )


async def show_search(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    # The choices of the form take room too.
    model = await list_cards(page, context, "/events/search/", max_cards=MAX_CARDS // 2, budget=MAX_CARDS_BYTES // 2)
    query = dict(page_request.query)
    names = ("search", "overlaps_from", "overlaps_to", "near")
    form = {name: query.get(name, "") for name in names}
    form["geoloc_radius"] = query.get("geoloc_radius") or "40"
    model["heading"] = page.locale.gettext(N_("Search"))
    # The choices name records of every kind.
    model["cache_tags"] = (*model["cache_tags"], *[f"s{page.site.id}-{kind}" for _, kind, *_ in CHOICES])
    return show_page(
        page,
        "search.html",
        category_nav=await make_category_nav(page),
        kind="search-page",
        title=model["heading"],
        robots="noindex",
        canonical=f"{context.base_url}/events/search/",
        active=[],
        form=form,
        choices=await make_choices(page, context),
        towns=await list_towns(context, MAX_TOWNS),
        **model,
    )


async def show_map(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    if not page_request.map_settings.tiles_url:
        raise errors.no_route()
    page = make_page_context(page_request, context)
    # The next ones: a map of more would show nothing, and to count them all takes long.
    map_context = with_values(_without_values(context, "page"), geoloc=True, per_page=MAX_CARDS)
    model = await list_cards(page, map_context, "/events/map/", counted=False)
    cards = [card for _month, group in model["groups"] for card in group]
    model["heading"] = page.locale.gettext(N_("Map"))
    return show_page(
        page,
        "map.html",
        category_nav=await make_category_nav(page),
        kind="map-page",
        view="map",
        title=model["heading"],
        points=make_points(cards),
        active=make_chips(page, "/events/map/"),
        canonical=f"{context.base_url}/events/map/",
        **model,
    )


async def list_cards(
    page: PageContext,
    context: OperationContext,
    path: str,
    *,
    counted: bool = True,
    max_cards: int = MAX_CARDS,
    budget: int = MAX_CARDS_BYTES,
) -> dict[str, Any]:
    """What a page with a list of cards shows: what runs and comes, or what is over, unless dates are asked for."""
    values = dict(context.values)
    values["per_page"] = min(values.get("per_page", context.transaction.site.per_page), max_cards)
    is_past = values.pop("past", False)
    has_dates = bool(calendar.DATE_PARAMS & set(values))
    if is_past:
        values |= {"ends_before": make_date_filter(page.today - DAY), "order": "desc"}
    elif not has_dates:
        values["overlaps_from"] = make_date_filter(page.today)
    found = await list_events(replace(context, values=values), with_total=counted)
    cards = make_cards(page, found, budget)
    heading = N_("Past events") if is_past else N_("Upcoming events")
    return {
        "cache_tags": found.cache_tags,
        "image_urls": list_image_urls(cards),
        "groups": group_by_month(cards, None if is_past or has_dates else page.today),
        "paging": make_paging(page, found.page, path, *([("past", "1")] if is_past else [])),
        "heading": page.locale.gettext(heading if not has_dates else N_("Events")),
        "nothing": NO_EVENTS if is_past or has_dates else N_("No upcoming events."),
        "before": None,
        "after": None,
        "today_url": "",
        "past_url": "" if is_past or has_dates else page.links.url(path, ("past", "1")),
        "coming_url": page.links.url(path) if is_past else "",
    }


def make_points(cards: list[Card]) -> str:
    """For the map: each place once, with the numbers of the cards beside it that happen there."""
    places: dict[tuple[float, float], list[int]] = {}
    for number, card in enumerate(cards):
        if card.latitude is not None and card.longitude is not None:
            places.setdefault((card.latitude, card.longitude), []).append(number)
    return orjson.dumps([[*place, numbers] for place, numbers in places.items()]).decode()


# Helpers, in the order they are called -----------------------------------------------------------


def _without_values(context: OperationContext, *names: str) -> OperationContext:
    return replace(context, values={name: value for name, value in context.values.items() if name not in names})


def make_cards(page: PageContext, found: RecordList[Event], budget: int = MAX_CARDS_BYTES) -> list[Card]:
    return trim([page.make_card(event) for event in found.records], budget)


def list_image_urls(cards: list[Card]) -> tuple[str, ...]:
    return tuple(card.image.src for card in cards if card.image)


def make_paging(page: PageContext, info: PageInfo, path: str, *more: tuple[str, str]) -> Paging:
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
