"""The list of events, slow and obvious: every event is looked at, one condition after the other."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tests.lists.dataset import Event, Place, Query, Refused, Term, World, gather
from tests.lists.geodesy import Point, metres_between
from tests.lists.permission_model import is_listed, may_edit, may_read, statuses_of
from tests.lists.search_words import is_found
from tests.lists.zone_model import read_date, seconds_of_day, two_years_after, wall_of

RELATIVE = ("starts_after", "starts_before", "ends_after", "ends_before", "overlaps_from", "overlaps_to")
DATES = ("start_date", "end_date", *RELATIVE)
# Filters by what a list does not show of a protected event.
GUARDED = (
    "search", "categories", "tags", "venue", "organizer", "featured", "ticketed", "geoloc",
    "geoloc_lat", "geoloc_lng",
)  # fmt: skip

type Condition = Callable[[Event], bool]


def list_events(world: World, query: Query) -> list[Event]:
    """All events of the list, in order, whatever its pages."""
    conditions = gather(PARTS, world, query)
    found = [event for event in world.events if all(condition(event) for condition in conditions)]
    found.sort(key=_order(world, query), reverse=(query.last("order") or "").lower() == "desc")
    return found


def is_shut(query: Query, event: Event) -> bool:
    """Whether a list shows only the outside of this event."""
    return bool(event.password) and query.last("password") != event.password


def _visible(_: World, query: Query) -> list[Condition]:
    statuses_of(query)
    return [lambda event: is_listed(query, event) and not event.hidden]


# When ----------------------------------------------------------------------------------------


def _dates(world: World, query: Query) -> list[Condition]:
    if query.all("include") is not None:
        return []
    sent = {name: text for name in DATES if (text := query.last(name)) is not None}
    conditions = [_date(name, text, world, bool(query.is_on("strict_dates"))) for name, text in sent.items()]
    if any(name in sent for name in RELATIVE):
        return conditions
    today = wall_of(world.now, world.zone).date()
    if "start_date" not in sent:
        conditions.append(_date("start_date", today.isoformat(), world, False))
    if "end_date" not in sent:
        conditions.append(_date("end_date", two_years_after(today).isoformat(), world, False))
    return conditions


def _date(name: str, text: str, world: World, strict: bool) -> Condition:
    instant, day = read_date(text, world.zone)
    first, last = (instant, instant) if strict else seconds_of_day(day, world.zone)
    table: dict[str, Condition] = {
        "start_date": lambda event: event.start >= first,
        "end_date": lambda event: event.end <= last,
        "starts_after": lambda event: event.start > last,
        "starts_before": lambda event: event.start < last,
        "ends_after": lambda event: event.end > last,
        "ends_before": lambda event: event.end < last,
        "overlaps_from": lambda event: event.end > first or event.start == event.end == first,
        "overlaps_to": lambda event: event.start < last or (not strict and event.start == last),
    }
    return table[name]


# What ----------------------------------------------------------------------------------------


def _words(_: World, query: Query) -> list[Condition]:
    search = query.last("search")
    if search is None:
        return []
    return [lambda event: is_found(search, [event.title, event.excerpt, event.description])]


def _guarded(_: World, query: Query) -> list[Condition]:
    """A hit would tell what is inside a protected event, so only those find it who may look inside."""
    if not any(query.all(name) for name in GUARDED):
        return []
    return [lambda event: not is_shut(query, event) or may_edit(query.role, event)]


def _flags(_: World, query: Query) -> list[Condition]:
    conditions: list[Condition] = []
    if (featured := query.is_on("featured")) is not None:
        conditions.append(lambda event: event.featured == featured)
    if (ticketed := query.is_on("ticketed")) is not None:
        conditions.append(lambda event: bool(event.ticket_url) == ticketed)
    if (included := query.all("include")) is not None:
        conditions.append(lambda event: str(event.id) in included)
    return conditions


def _parent(world: World, query: Query) -> list[Condition]:
    parent = query.last("post_parent")
    if parent is None:
        return []
    if world.event(int(parent)) is None:
        raise Refused("post_parent")
    return [lambda event: event.parent == int(parent)]


def _venue(world: World, query: Query) -> list[Condition]:
    sent = query.all("venue")
    wanted = _readable(query, world.venues, _known(sent or [], {venue.id for venue in world.venues}, "venue"))
    return [] if sent is None else [lambda event: bool(wanted & set(event.venues))]


def _organizer(world: World, query: Query) -> list[Condition]:
    sent = query.all("organizer")
    known = _known(sent or [], {organizer.id for organizer in world.organizers}, "organizer")
    wanted = _readable(query, world.organizers, known)
    return [] if sent is None else [lambda event: bool(wanted & set(event.organizers))]


def _readable(query: Query, places: tuple[Place, ...], wanted: set[int]) -> set[int]:
    """Which events are linked to a hidden record is told to those who may read it."""
    return {place.id for place in places if place.id in wanted and may_read(query.role, place)}


def _categories(world: World, query: Query) -> list[Condition]:
    sent = query.all("categories")
    asked = {find_term(entry, world.categories, "categories").id for entry in sent or []}
    wanted = {term.id for term in world.categories if asked & line_of(term, world.categories)}
    return [] if sent is None else [lambda event: bool(wanted & set(event.categories))]


def _tags(world: World, query: Query) -> list[Condition]:
    sent = query.all("tags")
    wanted = {find_term(entry, world.tags, "tags").id for entry in sent or []}
    return [] if sent is None else [lambda event: bool(wanted & set(event.tags))]


def _known(sent: list[str], ids: set[int], name: str) -> set[int]:
    asked = {int(entry) for entry in sent}
    if asked - ids:
        raise Refused(name)
    return asked


def find_term(entry: str, terms: tuple[Term, ...], name: str) -> Term:
    """By ID; where no term has it, or it is no number, by slug."""
    for term in terms:
        if entry == str(term.id):
            return term
    for term in terms:
        if entry.lower() in (term.slug, unquote(term.slug)):
            return term
    raise Refused(name)


def line_of(term: Term, terms: tuple[Term, ...]) -> set[int]:
    """The category and all that stand above it."""
    above = next((other for other in terms if other.id == term.parent), None)
    return {term.id} | (line_of(above, terms) if above else set())


# Where ---------------------------------------------------------------------------------------


def _points(world: World, event: Event) -> list[Point]:
    """Where the event is: at those of its venues that are published and have coordinates."""
    return [
        venue.point
        for venue in world.venues
        if venue.id in event.venues and venue.status == "publish" and venue.point is not None
    ]


def _asked_point(query: Query) -> Point | None:
    latitude, longitude = query.last("geoloc_lat"), query.last("geoloc_lng")
    if (latitude is None) != (longitude is None):
        raise Refused("geoloc_lat", "geoloc_lng")
    return (float(latitude), float(longitude)) if latitude and longitude else None


def _located(world: World, query: Query) -> list[Condition]:
    located = query.is_on("geoloc")
    return [] if located is None else [lambda event: bool(_points(world, event)) == located]


def _near(world: World, query: Query) -> list[Condition]:
    point = _asked_point(query)
    if point is None:
        return []
    metres = float(query.last("geoloc_radius") or 40) * 1000
    return [lambda event: any(metres_between(point, place) <= metres for place in _points(world, event))]


# In which order ------------------------------------------------------------------------------


def _orderable(_: World, query: Query) -> list[Condition]:
    # Half a point is refused for itself; without its latitude it is none.
    if query.last("orderby") == "distance" and query.last("geoloc_lat") is None:
        raise Refused("orderby")
    return []


def _order(world: World, query: Query) -> Callable[[Event], tuple[Any, ...]]:
    def distance(event: Event) -> float:
        point = _asked_point(query)
        assert point is not None
        return min(metres_between(point, place) for place in _points(world, event))

    keys: dict[str, Callable[[Event], tuple[Any, ...]]] = {
        "start_date": lambda event: (event.start, event.published, event.id),
        "end_date": lambda event: (event.end, event.id),
        "title": lambda event: (event.title[:200], event.id),
        "date": lambda event: (event.published, event.id),
        "modified": lambda event: (event.modified, event.id),
        "distance": lambda event: (distance(event), event.id),
    }
    return keys[query.last("orderby") or ("date" if query.all("include") is not None else "start_date")]


PARTS = (
    _visible, _dates, _words, _guarded, _flags, _parent, _venue, _organizer, _categories, _tags, _located, _near,
    _orderable,
)  # fmt: skip


def day_counts(world: World) -> dict[tuple[str, datetime], tuple[int, int]]:
    """How many events, hidden ones aside, start and end on each day of UTC, by status."""
    counts: dict[tuple[str, datetime], tuple[int, int]] = {}
    for event in world.events:
        if event.hidden:
            continue
        for instant, is_start in ((event.start, True), (event.end, False)):
            key = (event.status, instant.replace(hour=0, minute=0, second=0))
            starts, ends = counts.get(key, (0, 0))
            counts[key] = (starts + is_start, ends + (not is_start))
    return counts
