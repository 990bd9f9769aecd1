"""The pages that list events: list, map and search, and what every list of cards has."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import orjson

from kalends.core import errors, params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.core.sanitize import clean_plain
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import PAGING
from kalends.operations import calendar
from kalends.operations.context import Call, Outcome
from kalends.operations.page_filters import list_towns
from kalends.operations.records import list_records
from kalends.website.context import Frame, make_frame, moment_of, show_page, with_values
from kalends.website.feed_views import FEED_PARAMS
from kalends.website.filter_views import CHOICES, browse, make_chips, make_choices
from kalends.website.handler import Shown, Visit
from kalends.website.models.cards import Card, by_month
from kalends.website.models.page_budget import ROOM_FOR_CARDS, lighten

DAY: Final = timedelta(days=1)
ON_ONE_PAGE: Final = 24  # cards, at the most
TOWNS_SHOWN: Final = 50
NOTHING: Final = N_("No events in this period.")
# Of pages alone: a town or a venue of this site, and what is over instead of what is to come.
NEAR: Final = Param("near", params.text(lambda text: clean_plain(text, 100)), "")
PAST: Final = Param("past", params.BOOLEAN, "")
LIST_PARAMS: Final = (*PAGING, *FEED_PARAMS, NEAR, PAST)


@dataclass(frozen=True, slots=True)
class Step:
    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Paging:
    page: int = 1
    total: int = 0
    total_pages: int = 0
    before: str = ""
    after: str = ""


async def show_list(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    frame = make_frame(visit, call)
    listing = await list_cards(frame, call, "/events/list/")
    return show_page(
        frame, "list.html", browse=await browse(frame),
        kind="list-page", view="list", title=listing["heading"],
        active=make_chips(frame, "/events/list/"), canonical=f"{call.base_url}/events/list/", **listing,
    )  # fmt: skip


async def show_search(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    frame = make_frame(visit, call)
    # The choices of the form take room too.
    listing = await list_cards(frame, call, "/events/search/", most=ON_ONE_PAGE // 2, room=ROOM_FOR_CARDS // 2)
    sent = dict(visit.query)
    names = ("search", "overlaps_from", "overlaps_to", "near")
    form = {name: sent.get(name, "") for name in names}
    form["geoloc_radius"] = sent.get("geoloc_radius") or "40"
    listing["heading"] = frame.speech.say(N_("Search"))
    # The choices name records of every kind.
    listing["keys"] = (*listing["keys"], *[f"s{frame.site.id}-{kind}" for _, kind, *_ in CHOICES])
    return show_page(
        frame, "search.html", browse=await browse(frame),
        kind="search-page", title=listing["heading"], robots="noindex",
        canonical=f"{call.base_url}/events/search/", active=[], form=form, choices=await make_choices(frame, call),
        towns=await list_towns(call, TOWNS_SHOWN), **listing,
    )  # fmt: skip


async def show_map(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    if not visit.look.tiles_url:
        raise errors.no_route()
    frame = make_frame(visit, call)
    # The next ones: a map of more would show nothing, and to count them all takes long.
    asked = with_values(_without(call, "page"), geoloc=True, per_page=ON_ONE_PAGE)
    listing = await list_cards(frame, asked, "/events/map/", counted=False)
    cards = [card for _month, group in listing["groups"] for card in group]
    listing["heading"] = frame.speech.say(N_("Map"))
    return show_page(
        frame, "map.html", browse=await browse(frame),
        kind="map-page", view="map", title=listing["heading"], points=points_of(cards),
        active=make_chips(frame, "/events/map/"), canonical=f"{call.base_url}/events/map/", **listing,
    )  # fmt: skip


async def list_cards(
    frame: Frame, call: Call, path: str, *, counted: bool = True, most: int = ON_ONE_PAGE, room: int = ROOM_FOR_CARDS
) -> dict[str, Any]:
    """What a page with a list of cards shows: what runs and comes, or what is over, unless dates are asked for."""
    values = dict(call.values)
    values["per_page"] = min(values.get("per_page", call.transaction.site.per_page), most)
    past = values.pop("past", False)
    dated = bool(calendar.DATES & set(values))
    if past:
        values |= {"ends_before": moment_of(frame.today - DAY), "order": "desc"}
    elif not dated:
        values["overlaps_from"] = moment_of(frame.today)
    outcome = await list_records(EVENTS, replace(call, values=values), counted=counted)
    cards = make_cards(frame, outcome, room)
    heading = N_("Past events") if past else N_("Upcoming events")
    return {
        "keys": outcome.keys,
        "pictures": pictures_of(cards),
        "groups": by_month(cards, None if past or dated else frame.today),
        "paging": make_paging(frame, outcome, path, *([("past", "1")] if past else [])),
        "heading": frame.speech.say(heading if not dated else N_("Events")),
        "nothing": NOTHING if past or dated else N_("No upcoming events."),
        "before": None,
        "after": None,
        "today_url": "",
        "past_url": "" if past or dated else frame.links.of(path, ("past", "1")),
        "coming_url": frame.links.of(path) if past else "",
    }


def points_of(cards: list[Card]) -> str:
    """For the map: each place once, with the numbers of the cards beside it that happen there."""
    places: dict[tuple[float, float], list[int]] = {}
    for number, card in enumerate(cards):
        if card.latitude is not None and card.longitude is not None:
            places.setdefault((card.latitude, card.longitude), []).append(number)
    return orjson.dumps([[*place, numbers] for place, numbers in places.items()]).decode()


# Helpers, in the order they are called -----------------------------------------------------------


def _without(call: Call, *names: str) -> Call:
    return replace(call, values={name: value for name, value in call.values.items() if name not in names})


def make_cards(frame: Frame, outcome: Outcome, room: int = ROOM_FOR_CARDS) -> list[Card]:
    return lighten([frame.card(record) for record in outcome.body["events"]], room)


def pictures_of(cards: list[Card]) -> tuple[str, ...]:
    return tuple(card.picture.src for card in cards if card.picture)


def make_paging(frame: Frame, outcome: Outcome, path: str, *more: tuple[str, str]) -> Paging:
    if outcome.page is None:
        return Paging()
    page: int = frame.call.values.get("page", 1)
    total, pages = outcome.page.total, outcome.page.total_pages
    kept = [*more, *[(name, value) for name, value in frame.visit.query if name == "per_page"]]
    return Paging(
        page=page,
        total=total,
        total_pages=pages,
        before=frame.links.of(path, *kept, *([("page", page - 1)] if page > 2 else [])) if page > 1 else "",
        after=frame.links.of(path, *kept, ("page", page + 1)) if page < pages else "",
    )
