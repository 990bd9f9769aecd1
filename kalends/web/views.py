"""The pages of a calendar: month, week, day, list, map and search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

import orjson

from kalends.core import errors, params
from kalends.core.params import Param
from kalends.core.sentences import mark
from kalends.core.text import clean_plain
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.operations import calendar, keys
from kalends.operations.call import Call, Outcome
from kalends.operations.records import list_records
from kalends.pages.cards import Card, by_month
from kalends.pages.grid import make_agenda, make_entry, make_weeks, month_span, week_start
from kalends.web.feeds import FEED_PARAMS
from kalends.web.routes import PAGING
from kalends.web.showing import Frame, make_frame, moment_of, show_page, with_values
from kalends.web.visit import Shown, Visit

DAY: Final = timedelta(days=1)
IN_A_MONTH: Final = 3  # events that a day of the month shows by name
IN_A_WEEK: Final = 12
IN_AN_AGENDA: Final = 8  # days that a phone lists below the month
ON_ONE_PAGE: Final = 50
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


# Times -------------------------------------------------------------------------------------------


async def show_month(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    month = _read_day(f"{address['month']}-01") if "month" in address else frame.today.replace(day=1)
    last_day = (month.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    first, last = month_span(month, frame.site.first_weekday)
    rows = await calendar.list_days(call, first, last, IN_A_MONTH)
    entries = [make_entry(row, frame.speech, frame.links, frame.site.timezone) for row in rows]
    before, after = await _around(call, month, last_day, [(entry.first, entry.last) for entry in entries])
    is_empty = not any(entry.first <= last_day and entry.last >= month for entry in entries)
    path, heading = f"/events/month/{month:%Y-%m}/", frame.speech.month(month)
    weeks = make_weeks(first, last, rows, entries, today=frame.today, month=month)
    agenda = make_agenda(weeks, frame.today)
    return show_page(
        frame, "month.html", keys=_list_keys(call), kind="month-page", view="month", title=heading, heading=heading,
        weeks=weeks, agenda=agenda[:IN_AN_AGENDA], agenda_goes_on=len(agenda) > IN_AN_AGENDA, is_empty=is_empty,
        shown_day=frame.today if month <= frame.today <= last_day else month,
        before=_step(frame.links.month, before, frame.speech.month_step),
        after=_step(frame.links.month, after, frame.speech.month_step), today_url=frame.links.of("/events/month/"),
        active=await _chips(frame, path), robots="noindex, nofollow" if is_empty else "",
        canonical=call.base_url + path,
    )  # fmt: skip


async def show_week(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    first = week_start(_read_day(address["day"]) if "day" in address else frame.today, frame.site.first_weekday)
    last = first + 6 * DAY
    rows = await calendar.list_days(call, first, last, IN_A_WEEK)
    entries = [make_entry(row, frame.speech, frame.links, frame.site.timezone) for row in rows]
    before, after = await _around(call, first, last, [(entry.first, entry.last) for entry in entries])
    path, heading = f"/events/week/{first.isoformat()}/", frame.speech.days(first, last)

    def name(day: date) -> str:
        return frame.speech.short_day(week_start(day, frame.site.first_weekday))

    return show_page(
        frame, "week.html", keys=_list_keys(call), kind="week-page", view="week", title=heading, heading=heading,
        week=make_weeks(first, last, rows, entries, today=frame.today)[0], is_empty=not entries,
        shown_day=first, before=_step(frame.links.week, before, name), after=_step(frame.links.week, after, name),
        today_url=frame.links.of("/events/week/"), active=await _chips(frame, path), robots="noindex",
        canonical=call.base_url + path,
    )  # fmt: skip


async def show_day(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    day = _read_day(address["day"]) if "day" in address else frame.today
    outcome = await calendar.list_day(with_values(call, per_page=ON_ONE_PAGE), day)
    cards = _cards(frame, outcome)
    before, after = await _around(call, day, day, [(card.when.first, card.when.last) for card in cards])
    path, heading = f"/events/day/{day.isoformat()}/", frame.speech.day(day)
    return show_page(
        frame, "list.html", keys=outcome.keys, pictures=_pictures(cards), kind="day-page", view="day", title=heading,
        heading=heading, groups=[(None, cards)] if cards else [], paging=_paging(frame, outcome, path), shown_day=day,
        before=_step(frame.links.day, before, frame.speech.short_day),
        after=_step(frame.links.day, after, frame.speech.short_day), today_url=frame.links.of("/events/day/"),
        active=await _chips(frame, path), robots="noindex", canonical=call.base_url + path, past_url="",
        coming_url="",
    )  # fmt: skip


# Lists -------------------------------------------------------------------------------------------


async def show_list(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    frame, call, _unknown = await _settle_place(make_frame(visit, call), call)
    listing = await list_cards(frame, call, "/events/list/")
    return show_page(
        frame, "list.html", kind="list-page", view="list", title=listing["heading"],
        active=await _chips(frame, "/events/list/"), canonical=f"{call.base_url}/events/list/", **listing,
    )  # fmt: skip


async def show_search(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    frame, call, unknown = await _settle_place(make_frame(visit, call), call)
    listing = await list_cards(frame, call, "/events/search/")
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
        towns=await calendar.list_towns(call), unknown_place=unknown, **listing,
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
        active=await _chips(frame, "/events/map/"), canonical=f"{call.base_url}/events/map/", **listing,
    )  # fmt: skip


async def list_cards(frame: Frame, call: Call, path: str, *, counted: bool = True) -> dict[str, Any]:
    """What a page with a list of cards shows: what runs and comes, or what is over, unless dates are asked for."""
    values = dict(call.values)
    past = values.pop("past", False)
    dated = bool(calendar.DATES & set(values))
    if past:
        values |= {"ends_before": moment_of(frame.today - DAY), "order": "desc"}
    elif not dated:
        values["overlaps_from"] = moment_of(frame.today)
    call = with_values(call, **values)
    outcome = await list_records(EVENTS, _without(call, "past", "near"), counted=counted)
    cards = _cards(frame, outcome)
    heading = mark("Past events") if past else mark("Upcoming events")
    return {
        "keys": outcome.keys,
        "pictures": _pictures(cards),
        "groups": _as_written(cards) if past else by_month(cards, frame.today),
        "paging": _paging(frame, outcome, path, *([("past", "1")] if past else [])),
        "heading": frame.speech.say(heading if not dated else mark("Events")),
        "before": None,
        "after": None,
        "today_url": "",
        "past_url": "" if past or dated else frame.links.of(path, ("past", "1")),
        "coming_url": frame.links.of(path) if past else "",
    }


def points_of(cards: list[Card]) -> str:
    """For the map: each place once, with the title, address and time of what happens there."""
    places: dict[tuple[float, float], list[tuple[str, str, str]]] = {}
    for card in cards:
        if card.latitude is not None and card.longitude is not None:
            said = (card.title, card.url, f"{card.when.day} {card.when.clock}".strip())
            places.setdefault((card.latitude, card.longitude), []).append(said)
    return orjson.dumps([[*place, said] for place, said in places.items()]).decode()


# Helpers, in the order they are called -----------------------------------------------------------


def _read_day(text: str) -> date:
    """A day of the address; far ones have no calendar around them."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise errors.no_route() from None
    if not 1000 <= day.year <= 9000:
        raise errors.no_route()
    return day


def _list_keys(call: Call) -> tuple[str, ...]:
    return keys.of_list(EVENTS, call.transaction.site, [], call.values)


async def _around(
    call: Call, first: date, last: date, spans: list[tuple[date, date]]
) -> tuple[date | None, date | None]:
    """The nearest days before and after that have something; what goes beyond these days is there already."""
    before: date | None = first - DAY
    if not any(begin < first for begin, _ in spans):
        before = await calendar.find_before(call, first)
    after: date | None = last + DAY
    if not any(end > last for _, end in spans):
        after = await calendar.find_after(call, last)
    return before, after


def _step(address: Callable[[date], str], day: date | None, name: Callable[[date], str]) -> Step | None:
    return Step(address(day), name(day)) if day is not None else None


def _cards(frame: Frame, outcome: Outcome) -> list[Card]:
    return [frame.card(record) for record in outcome.body["events"]]


def _as_written(cards: list[Card]) -> list[tuple[date, list[Card]]]:
    groups: list[tuple[date, list[Card]]] = []
    for card in cards:
        month = card.when.first.replace(day=1)
        if not groups or groups[-1][0] != month:
            groups.append((month, []))
        groups[-1][1].append(card)
    return groups


def _pictures(cards: list[Card]) -> tuple[str, ...]:
    return tuple(card.picture.src for card in cards if card.picture)


def _paging(frame: Frame, outcome: Outcome, path: str, *more: tuple[str, str]) -> Paging:
    if outcome.page is None:
        return Paging()
    page: int = frame.call.values.get("page", 1)
    total, pages = outcome.page.total, outcome.page.total_pages
    return Paging(
        page=page,
        total=total,
        total_pages=pages,
        before=frame.links.of(path, *more, *([("page", page - 1)] if page > 2 else [])) if page > 1 else "",
        after=frame.links.of(path, *more, ("page", page + 1)) if page < pages else "",
    )


def _without(call: Call, *names: str) -> Call:
    return replace(call, values={name: value for name, value in call.values.items() if name not in names})


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


async def _chips(frame: Frame, path: str) -> list[Step]:
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


async def _choices(call: Call) -> list[dict[str, Any]]:
    """The most used terms, and the places and people that have something to come."""
    fields: list[dict[str, Any]] = []
    for name, kind_name, label, key in CHOICES:
        kind = BY_NAME[kind_name]
        asked: dict[str, Any] = {"per_page": 50}
        asked |= {"only_with_upcoming": True} if kind.is_post else {"orderby": "count", "order": "desc"}
        outcome = await list_records(kind, _only(call, asked))
        options = [(str(record[key]), str(record[kind.title])) for record in outcome.body[kind_name]]
        chosen = [str(value) for value in call.values.get(name, [])]
        options += [(value, value) for value in chosen if value not in dict(options)]
        fields.append({"name": name, "label": label, "options": sorted(options, key=_by_name), "chosen": chosen})
    return fields


def _by_name(option: tuple[str, str]) -> str:
    return option[1].casefold()


def _only(call: Call, values: dict[str, Any]) -> Call:
    return replace(call, values=values)
