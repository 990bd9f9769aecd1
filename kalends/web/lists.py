"""The pages that list events: list, map and search, and what every list of cards has."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import orjson

from kalends.core import errors, params
from kalends.core.params import Param
from kalends.core.sentences import mark
from kalends.core.text import clean_plain, plain_words
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Represented
from kalends.operations import calendar
from kalends.operations.call import Call, Outcome
from kalends.operations.records import list_records
from kalends.pages.cards import Card, by_month, shorten
from kalends.pages.weight import ROOM_FOR_CARDS, lighten
from kalends.web.feeds import FEED_PARAMS
from kalends.web.routes import PAGING
from kalends.web.showing import Frame, make_frame, moment_of, show_page, with_values
from kalends.web.visit import Shown, Visit

DAY: Final = timedelta(days=1)
ON_ONE_PAGE: Final = 24  # cards, at the most
CHOICES_SHOWN: Final = 40
TOWNS_SHOWN: Final = 50
MOST_NAME: Final = 40
MOST_KEY: Final = 40  # letters of a slug that stands for a choice; an ID stands for it where it is longer
# Of pages alone: a town or a venue of this site, and what is over instead of what is to come.
NEAR: Final = Param("near", params.text(lambda text: clean_plain(text, 100)), "")
PAST: Final = Param("past", params.SWITCH, "")
LIST_PARAMS: Final = (*PAGING, *FEED_PARAMS, NEAR, PAST)
# Choices of the search, in the order of the form: parameter, kind, label, the key of a choice.
CHOICES: Final = (
    ("categories", "categories", mark("Category"), "slug"),
    ("tags", "tags", mark("Tag"), "slug"),
    ("venue", "venues", mark("Venue"), "id"),
    ("organizer", "organizers", mark("Organizer"), "id"),
)


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
    frame, call, _unknown = await _settle_place(make_frame(visit, call), call)
    listing = await list_cards(frame, call, "/events/list/")
    return show_page(
        frame, "list.html", kind="list-page", view="list", title=listing["heading"],
        active=await make_chips(frame, "/events/list/"), canonical=f"{call.base_url}/events/list/", **listing,
    )  # fmt: skip


async def show_search(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    frame, call, unknown = await _settle_place(make_frame(visit, call), call)
    # The choices of the form take room too.
    listing = await list_cards(frame, call, "/events/search/", most=ON_ONE_PAGE // 2, room=ROOM_FOR_CARDS // 2)
    sent = dict(visit.query)
    names = ("search", "overlaps_from", "overlaps_to", "near")
    form = {name: sent.get(name, "") for name in names}
    form["geoloc_radius"] = sent.get("geoloc_radius") or "40"
    listing["heading"] = frame.speech.say(mark("Search"))
    # The choices name records of every kind.
    listing["keys"] = (*listing["keys"], *[f"s{frame.site.id}-{kind}" for _, kind, *_ in CHOICES])
    return show_page(
        frame, "search.html", kind="search-page", title=listing["heading"], robots="noindex",
        canonical=f"{call.base_url}/events/search/", active=[], form=form, choices=await _choices(call),
        towns=await calendar.list_towns(call, TOWNS_SHOWN), unknown_place=unknown, **listing,
    )  # fmt: skip


async def show_map(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    if not visit.look.tiles_url:
        raise errors.no_route()
    frame, call, _unknown = await _settle_place(make_frame(visit, call), call)
    # The next ones: a map of more would show nothing, and to count them all takes long.
    asked = with_values(_without(call, "page"), geoloc=True, per_page=ON_ONE_PAGE)
    listing = await list_cards(frame, asked, "/events/map/", counted=False)
    cards = [card for _month, group in listing["groups"] for card in group]
    listing["heading"] = frame.speech.say(mark("Map"))
    return show_page(
        frame, "map.html", kind="map-page", view="map", title=listing["heading"], points=points_of(cards),
        active=await make_chips(frame, "/events/map/"), canonical=f"{call.base_url}/events/map/", **listing,
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
    call = with_values(call, **values)
    outcome = await list_records(EVENTS, _without(call, "past", "near"), counted=counted)
    cards = make_cards(frame, outcome, room)
    heading = mark("Past events") if past else mark("Upcoming events")
    return {
        "keys": outcome.keys,
        "pictures": pictures_of(cards),
        "groups": by_month(cards, None if past or dated else frame.today),
        "paging": make_paging(frame, outcome, path, *([("past", "1")] if past else [])),
        "heading": frame.speech.say(heading if not dated else mark("Events")),
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


async def _settle_place(frame: Frame, call: Call) -> tuple[Frame, Call, str]:
    """A place by name becomes a place on the map; one that is not known is named."""
    near = call.values.get("near", "")
    if not near:
        return frame, call, ""
    found = await calendar.find_place(call, near)
    if found is None:
        return frame, call, near
    latitude, longitude = found
    kept = [pair for pair in frame.links.filters if pair[0] not in ("geoloc_lat", "geoloc_lng")]
    kept += [("geoloc_lat", f"{latitude:.5f}"), ("geoloc_lng", f"{longitude:.5f}")]
    frame = replace(frame, links=frame.links.with_filters(kept))
    return frame, with_values(call, geoloc_lat=latitude, geoloc_lng=longitude), ""


async def _choices(call: Call) -> list[dict[str, Any]]:
    """The most used terms, and the places and people that have something to come."""
    fields: list[dict[str, Any]] = []
    for name, kind_name, label, key in CHOICES:
        kind = BY_NAME[kind_name]
        asked: dict[str, Any] = {"per_page": CHOICES_SHOWN}
        asked |= {"only_with_upcoming": True} if kind.is_post else {"orderby": "count", "order": "desc"}
        outcome = await list_records(kind, _only(call, asked))
        options = [(_key(record, key), _name(record[kind.title])) for record in outcome.body[kind_name]]
        chosen = [str(value) for value in call.values.get(name, [])]
        options += [(value, value) for value in chosen if value not in dict(options)]
        fields.append({"name": name, "label": label, "options": sorted(options, key=_by_name), "chosen": chosen})
    return fields


def _key(record: Represented, key: str) -> str:
    found = str(record[key])
    return found if len(found) <= MOST_KEY else str(record["id"])


def _name(title: str) -> str:
    return shorten(plain_words(title), MOST_NAME)


def _by_name(option: tuple[str, str]) -> str:
    return option[1].casefold()


def _only(call: Call, values: dict[str, Any]) -> Call:
    return replace(call, values=values)


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


async def make_chips(frame: Frame, path: str) -> list[Step]:
    """The filters that are on, each with the address of the page without it."""
    chips: list[Step] = []
    names = await calendar.name_filters(frame.call)
    for name, value in frame.links.filters:
        plain = name.removesuffix("[]")
        if plain in ("search", "near"):
            chips.append(Step(frame.links.without(path, name, value), value))
        elif plain in names:
            chips.append(Step(frame.links.without(path, name, value), ", ".join(names[plain])))
    return chips
