"""The list of events, slow and obvious: every event is looked at, one condition after the other."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tests.lists.dataset import Dataset, Event, Place, Query, RejectedQuery, Term, collect_conditions
from tests.lists.geodesy import Point, distance_in_metres
from tests.lists.permission_model import is_listed, may_edit, may_read, requested_statuses
from tests.lists.search_words import matches_search
from tests.lists.zone_model import day_bounds, read_date, to_local, two_years_after

RELATIVE_DATES = ("starts_after", "starts_before", "ends_after", "ends_before", "overlaps_from", "overlaps_to")
DATE_PARAMS = ("start_date", "end_date", *RELATIVE_DATES)
# Filters by what a list does not show of a protected event.
PASSWORD_GUARDED = (
    "search", "categories", "tags", "venue", "organizer", "featured", "ticketed", "free", "event_status", "geoloc",
    "geoloc_lat", "geoloc_lng",
)  # fmt: skip
# Filters whose false is no filter.
TRUE_ONLY = ("ticketed", "geoloc")

type Condition = Callable[[Event], bool]


def list_events(dataset: Dataset, query: Query) -> list[Event]:
    """All events of the list, in order, whatever its pages."""
    conditions = collect_conditions(CONDITION_BUILDERS, dataset, query)
    matches = [event for event in dataset.events if all(condition(event) for condition in conditions)]
    matches.sort(key=_sort_key(dataset, query), reverse=(query.last_value("order") or "").lower() == "desc")
    return matches


def is_locked(query: Query, event: Event) -> bool:
    """Whether a list shows only the outside of this event."""
    return bool(event.password) and query.last_value("password") != event.password


def _visibility_conditions(_: Dataset, query: Query) -> list[Condition]:
    requested_statuses(query)
    return [lambda event: is_listed(query, event) and not event.hidden]


# When ----------------------------------------------------------------------------------------


def _date_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    if query.all_values("include") is not None:
        return []
    bounds = {name: text for name in DATE_PARAMS if (text := query.last_value(name)) is not None}
    conditions = [
        _date_condition(name, text, dataset, bool(query.boolean("strict_dates"))) for name, text in bounds.items()
    ]
    if any(name in bounds for name in RELATIVE_DATES):
        return conditions
    today = to_local(dataset.now, dataset.zone).date()
    if "start_date" not in bounds:
        conditions.append(_date_condition("start_date", today.isoformat(), dataset, False))
    if "end_date" not in bounds:
        conditions.append(_date_condition("end_date", two_years_after(today).isoformat(), dataset, False))
    return conditions


def _date_condition(name: str, text: str, dataset: Dataset, strict: bool) -> Condition:
    instant, day = read_date(text, dataset.zone)
    first, last = (instant, instant) if strict else day_bounds(day, dataset.zone)
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


# Filters -------------------------------------------------------------------------------------


def _search_conditions(_: Dataset, query: Query) -> list[Condition]:
    search = query.last_value("search")
    if search is None:
        return []
    return [lambda event: matches_search(search, [event.title, event.excerpt, event.description])]


def _guarded_conditions(_: Dataset, query: Query) -> list[Condition]:
    """A hit would tell what is inside a protected event, so only those find it who may look inside."""
    names = [name for name in PASSWORD_GUARDED if name not in TRUE_ONLY or query.boolean(name)]
    if not any(query.all_values(name) for name in names):
        return []
    return [lambda event: not is_locked(query, event) or may_edit(query.role, event)]


def _flag_conditions(_: Dataset, query: Query) -> list[Condition]:
    conditions: list[Condition] = []
    if (featured := query.boolean("featured")) is not None:
        conditions.append(lambda event: event.featured == featured)
    if query.boolean("ticketed"):
        conditions.append(lambda event: bool(event.ticket_url))
    if (included := query.all_values("include")) is not None:
        conditions.append(lambda event: str(event.id) in included)
    return conditions


def _parent_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    parent = query.last_value("post_parent")
    if parent is None:
        return []
    if dataset.event(int(parent)) is None:
        raise RejectedQuery("post_parent")
    return [lambda _: False]


def _venue_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    values = query.all_values("venue")
    ids = _filter_readable(
        query, dataset.venues, _check_ids(values or [], {venue.id for venue in dataset.venues}, "venue")
    )
    return [] if values is None else [lambda event: bool(ids & set(event.venues))]


def _organizer_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    values = query.all_values("organizer")
    known = _check_ids(values or [], {organizer.id for organizer in dataset.organizers}, "organizer")
    ids = _filter_readable(query, dataset.organizers, known)
    return [] if values is None else [lambda event: bool(ids & set(event.organizers))]


def _filter_readable(query: Query, places: tuple[Place, ...], ids: set[int]) -> set[int]:
    """Match links to a hidden record only for callers who may read it."""
    return {place.id for place in places if place.id in ids and may_read(query.role, place)}


def _category_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    values = query.all_values("categories")
    selected = {find_term(entry, dataset.categories, "categories").id for entry in values or []}
    ids = {term.id for term in dataset.categories if selected & ancestor_ids(term, dataset.categories)}
    return [] if values is None else [lambda event: bool(ids & set(event.categories))]


def _tag_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    values = query.all_values("tags")
    ids = {find_term(entry, dataset.tags, "tags").id for entry in values or []}
    return [] if values is None else [lambda event: bool(ids & set(event.tags))]


def _check_ids(values: list[str], ids: set[int], name: str) -> set[int]:
    selected = {int(entry) for entry in values}
    if selected - ids:
        raise RejectedQuery(name)
    return selected


def find_term(entry: str, terms: tuple[Term, ...], name: str) -> Term:
    """By ID; where no term has it, or it is no number, by slug."""
    for term in terms:
        if entry == str(term.id):
            return term
    for term in terms:
        if entry.lower() in (term.slug, unquote(term.slug)):
            return term
    raise RejectedQuery(name)


def ancestor_ids(term: Term, terms: tuple[Term, ...]) -> set[int]:
    """The category and all that stand above it."""
    parent = next((other for other in terms if other.id == term.parent), None)
    return {term.id} | (ancestor_ids(parent, terms) if parent else set())


# Where ---------------------------------------------------------------------------------------


def _event_points(dataset: Dataset, event: Event) -> list[Point]:
    """Where the event is: at those of its venues that are published and have coordinates."""
    return [
        venue.point
        for venue in dataset.venues
        if venue.id in event.venues and venue.status == "publish" and venue.point is not None
    ]


def _requested_point(query: Query) -> Point | None:
    latitude, longitude = query.last_value("geoloc_lat"), query.last_value("geoloc_lng")
    if (latitude is None) != (longitude is None):
        raise RejectedQuery("geoloc_lat", "geoloc_lng")
    return (float(latitude), float(longitude)) if latitude and longitude else None


def _location_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    return [lambda event: bool(_event_points(dataset, event))] if query.boolean("geoloc") else []


def _distance_conditions(dataset: Dataset, query: Query) -> list[Condition]:
    point = _requested_point(query)
    if point is None:
        return []
    metres = float(query.last_value("geoloc_radius") or 40) * 1000
    return [lambda event: any(distance_in_metres(point, place) <= metres for place in _event_points(dataset, event))]


# In which order ------------------------------------------------------------------------------


def _check_order(_: Dataset, query: Query) -> list[Condition]:
    # Half a point is refused for itself; without its latitude it is none.
    if query.last_value("orderby") == "distance" and query.last_value("geoloc_lat") is None:
        raise RejectedQuery("orderby")
    return []


def _sort_key(dataset: Dataset, query: Query) -> Callable[[Event], tuple[Any, ...]]:
    def distance(event: Event) -> float:
        point = _requested_point(query)
        assert point is not None
        return min(distance_in_metres(point, place) for place in _event_points(dataset, event))

    keys: dict[str, Callable[[Event], tuple[Any, ...]]] = {
        "start_date": lambda event: (event.start, event.published, event.id),
        "end_date": lambda event: (event.end, event.id),
        "title": lambda event: (event.title[:200], event.id),
        "date": lambda event: (event.published, event.id),
        "modified": lambda event: (event.modified, event.id),
        "distance": lambda event: (distance(event), event.id),
    }
    return keys[query.last_value("orderby") or ("date" if query.all_values("include") is not None else "start_date")]


CONDITION_BUILDERS = (
    _visibility_conditions, _date_conditions, _search_conditions, _guarded_conditions, _flag_conditions,
    _parent_conditions, _venue_conditions, _organizer_conditions, _category_conditions, _tag_conditions,
    _location_conditions, _distance_conditions,
    _check_order,
)  # fmt: skip


def day_counts(dataset: Dataset) -> dict[tuple[str, datetime], tuple[int, int]]:
    """How many events, hidden ones aside, start and end on each day of UTC, by status."""
    counts: dict[tuple[str, datetime], tuple[int, int]] = {}
    for event in dataset.events:
        if event.hidden:
            continue
        for instant, is_start in ((event.start, True), (event.end, False)):
            key = (event.status, instant.replace(hour=0, minute=0, second=0))
            starts, ends = counts.get(key, (0, 0))
            counts[key] = (starts + is_start, ends + (not is_start))
    return counts
