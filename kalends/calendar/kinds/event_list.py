"""List parameters for events, each with the function that builds the parameter's condition."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from html import unescape
from typing import Any, Final, LiteralString

from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.event_window import (
    ORDERS,
    Bound,
    Window,
    read_cursor,
    read_order,
    read_radius,
)
from kalends.calendar.kinds.kind import (
    Clause,
    ClauseBuilder,
    Filter,
    LinkCondition,
    ListQuery,
    SeriesCondition,
    TextCondition,
    no_condition,
    validates_only,
    value_clause,
)
from kalends.calendar.kinds.posts import SEARCH, search_clause
from kalends.calendar.kinds.terms import find_event
from kalends.calendar.rules.record_types import SCHEDULED, STATES
from kalends.core import date_forms, errors, params, times
from kalends.core.date_forms import RelativeDate
from kalends.core.errors import InvalidValue
from kalends.core.params import BOOLEAN, DATE_TIME, Type, param
from kalends.core.sanitize import fold
from kalends.core.slugs import normalize_lookup
from kalends.core.times import SECOND, DateTimeInput, day_begins, day_ends
from kalends.store.sql import Sql

# Not an API parameter: the IDs from `series` that a page or feed has resolved. Unknown IDs match nothing, whereas the
# API rejects them.
RESOLVED_SERIES: Final = "resolved_series"


def _make_link_clause(name: str, kind: LiteralString, table: LiteralString, column: LiteralString) -> ClauseBuilder:
    async def clause(ids: list[int], query: ListQuery) -> Clause:
        rows = await query.transaction.fetch_all(
            Sql("SELECT r.id, (")
            + query.readable
            + Sql(") AS readable FROM " + kind + " r WHERE r.site_id = ? AND r.id = ANY(?)", query.site.id, ids)
        )
        known = {row["id"] for row in rows}
        unknown = [str(entry) for entry in ids if entry not in known]
        if unknown:
            raise errors.unknown_ids(name, kind, ", ".join(unknown))
        # Existing clients may filter by an unpublished record, but only users who may read it get its events.
        readable = {row["id"] for row in rows if row["readable"]}
        return LinkCondition(query.site.id, table, column, [entry for entry in ids if entry in readable])

    return clause


async def _resolve_terms(query: ListQuery, table: LiteralString, terms: list[int | str]) -> list[int]:
    """Return the IDs of terms given by ID, slug or unique name. Raise if a term is unknown."""
    slugs = {normalize_lookup(entry): entry for entry in terms if isinstance(entry, str)}
    numbers = [entry for entry in terms if isinstance(entry, int)]
    rows = await query.transaction.fetch_all(
        Sql(
            "SELECT id, slug FROM " + table + " WHERE site_id = ? AND (id = ANY(?) OR slug = ANY(?))",
            *(query.site.id, numbers, [*slugs, *map(str, numbers)]),
        )
    )
    by_id, by_slug = {row["id"] for row in rows}, {row["slug"]: row["id"] for row in rows}
    if unknown := {slug: name for slug, name in slugs.items() if slug not in by_slug}:
        by_slug |= await _find_names(query, table, unknown)
    ids = [n if n in by_id else by_slug.get(str(n)) for n in numbers] + [by_slug.get(slug) for slug in slugs]
    if None in ids:
        raise errors.unknown_term(table, [*numbers, *slugs.values()][ids.index(None)])
    return list(dict.fromkeys(entry for entry in ids if entry is not None))


async def _find_names(query: ListQuery, table: LiteralString, names: dict[str, str]) -> dict[str, int]:
    """Map the keys of `names` to term IDs. Skip unknown and ambiguous names."""
    # Some clients send names with HTML entities, as other servers return them. PostgreSQL text cannot contain NUL.
    folded = {key: fold(unescape(name)) for key, name in names.items() if "\0" not in name}
    rows = await query.transaction.fetch_all(
        Sql(
            "SELECT name_folded, min(id) AS id FROM "
            + table
            + " WHERE site_id = ? AND name_folded = ANY(?) GROUP BY name_folded HAVING count(*) = 1",
            query.site.id,
            [*folded.values()],
        )
    )
    ids = {row["name_folded"]: row["id"] for row in rows}
    return {key: ids[name] for key, name in folded.items() if name in ids}


async def _category_clause(terms: list[int | str], query: ListQuery) -> Clause:
    """Match events in the categories or in any of their descendants."""
    ids = await _resolve_terms(query, "categories", terms)
    rows = await query.transaction.fetch_all(
        Sql(
            """
            WITH RECURSIVE tree (id) AS (
                SELECT unnest((SELECT ?::bigint[]))
                UNION
                SELECT c.id FROM categories c JOIN tree ON c.site_id = ? AND c.parent = tree.id
            )
            SELECT id FROM tree
            """,
            ids,
            query.site.id,
        )
    )
    return LinkCondition(query.site.id, "event_categories", "category_id", [row["id"] for row in rows])


async def _tag_clause(terms: list[int | str], query: ListQuery) -> Clause:
    return LinkCondition(query.site.id, "event_tags", "tag_id", await _resolve_terms(query, "tags", terms))


async def _series_clause(ids: list[int], query: ListQuery) -> Clause:
    """Match the dates of the series. Hide from callers that a series exists if they may not read it."""
    if RESOLVED_SERIES in query.values:
        return SeriesCondition(query.values[RESOLVED_SERIES])
    rows = await query.transaction.fetch_all(
        Sql("SELECT r.id FROM series r WHERE r.site_id = ? AND r.id = ANY(?) AND", query.site.id, ids)
        + query.readable
    )
    known = {row["id"] for row in rows}
    if unknown := [str(entry) for entry in ids if entry not in known]:
        raise errors.unknown_ids("series", "series", ", ".join(unknown))
    return SeriesCondition(ids)


async def _parent_clause(value: int, query: ListQuery) -> Clause:
    """Check that the event exists. Events have no parents, so no event matches."""
    await find_event(value, query, "post_parent")
    return Sql("false")


def _state_clause(states: list[str]) -> Sql:
    """Match events in any of these states. Excluding `scheduled` allows the planner to use the partial index."""
    matches = Sql("r.event_status = ANY(?)", states)
    return matches if SCHEDULED in states else Sql("r.event_status <> 'scheduled' AND") + matches


async def _search_clause(value: str, _: ListQuery) -> Clause:
    return TextCondition(search_clause(value))


async def _geoloc_clause(value: bool, query: ListQuery) -> Clause:
    """Match events with coordinates. While `geoloc_known` is outdated, check the events' venues instead."""
    if not value:
        return Sql("")
    site_id = query.site.id
    is_outdated = Sql("SELECT EXISTS (SELECT FROM venues v WHERE v.site_id = ? AND v.geoloc_pending)", site_id)
    condition = Sql("r.geoloc_known")
    if await query.transaction.fetch_value(is_outdated):
        condition = Sql(
            """EXISTS (SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
                WHERE l.site_id = ? AND l.event_id = r.id AND v.status = 'publish' AND v.location IS NOT NULL
                OFFSET 0)""",
            site_id,
        )
    return condition


async def _near_clause(_: float, query: ListQuery) -> Clause:
    """Find the venues inside the circle through the spatial index, then match their events."""
    values = query.values
    await _check_coordinates(None, query)
    rows = await query.transaction.fetch_all(
        Sql(
            """SELECT v.id FROM venues v WHERE v.site_id = ? AND v.status = 'publish'
                AND ST_DWithin(v.location, ST_MakePoint(?, ?)::geography, ?)""",
            *(query.site.id, values["geoloc_lng"], values["geoloc_lat"], read_radius(query)),
        )
    )
    return LinkCondition(query.site.id, "event_venues", "venue_id", [row["id"] for row in rows])


async def _check_coordinates(_: Any, query: ListQuery) -> None:
    values = query.values
    if "geoloc_lat" not in values or "geoloc_lng" not in values:
        lone = "geoloc_lat" if "geoloc_lat" in values else "geoloc_lng"
        raise errors.invalid(lone, "`geoloc_lat` and `geoloc_lng` must be sent together.")


async def _check_orderby(value: str, query: ListQuery) -> None:
    if value == "distance" and "geoloc_lat" not in query.values:
        raise errors.invalid("orderby", "distance requires `geoloc_lat` and `geoloc_lng`.")


async def _check_cursor(cursor: Any, query: ListQuery) -> None:
    if (cursor.orderby, cursor.order) != read_order(query):
        raise errors.invalid("cursor", "is a cursor of a list with a different order.")


def _read_cursor(value: object) -> Any:
    if not isinstance(value, str) or len(value) > 2000:
        raise InvalidValue("must be a `next_cursor` from a response.")
    return read_cursor(value)


CURSOR = Type({"type": "string"}, _read_cursor)


def _date(name: LiteralString, description: str, bound: Bound, **options: Any) -> Filter:
    return Filter(param(name, DATE_TIME, description, **options), bound)


# Filters on fields that password protection hides.
PASSWORD_GUARDED_FILTERS = frozenset(
    {
        "search",
        "categories",
        "tags",
        "venue",
        "organizer",
        "series",
        "featured",
        "ticketed",
        "free",
        "event_status",
        "geoloc",
        "geoloc_lat",
        "geoloc_lng",
    }
)
EVENT_FILTERS: tuple[Filter, ...] = (
    _date("start_date", "Events that start on or after this date; by default today",
          Bound("start_from", day_begins)),
    _date("end_date", "Events that end on or before this date; by default two years from now",
          Bound("end_to", day_ends)),
    _date("starts_before", "Events that start before the date",
          Bound("start_to", day_ends, -SECOND, replaces_default=True)),
    _date("starts_after", "Events that start after the date",
          Bound("start_from", day_ends, SECOND, replaces_default=True)),
    _date("ends_before", "Events that end before the date",
          Bound("end_to", day_ends, -SECOND, replaces_default=True)),
    _date("ends_after", "Events that end after the date",
          Bound("end_from", day_ends, SECOND, replaces_default=True)),
    Filter(param("strict_dates", BOOLEAN, "Use the exact times instead of whole days", default=False),
           no_condition),
    Filter(param("search", SEARCH, "Events whose title, excerpt or description contains the words"),
           _search_clause),
    Filter(param("categories", params.terms(), "Events in any of these categories, by ID, slug or name"),
           _category_clause),
    Filter(param("tags", params.terms(), "Events with any of these tags, by ID, slug or name"), _tag_clause),
    Filter(param("venue", params.ids(), "Events at any of these venues"),
           _make_link_clause("venue", "venues", "event_venues", "venue_id")),
    Filter(param("organizer", params.ids(), "Events of any of these organizers"),
           _make_link_clause("organizer", "organizers", "event_organizers", "organizer_id")),
    Filter(param("featured", BOOLEAN, "Only featured events; false: only the others"),
           value_clause(lambda value: Sql("r.featured") if value else Sql("NOT r.featured"))),
    Filter(param("status", params.STATUS_LIST, "Events with this post status"), no_condition),
    Filter(param("geoloc", BOOLEAN, "Only events whose venue has coordinates; false: no filter"),
           _geoloc_clause),
    Filter(param("geoloc_lat", params.number(-90, 90), "Latitude of the search centre; requires geoloc_lng"),
           _near_clause),
    Filter(param("geoloc_lng", params.number(-180, 180), "Longitude of the search centre; requires geoloc_lat"),
           validates_only(_check_coordinates)),
    Filter(param("include", params.ids(), "Only these IDs; date filters are then ignored"),
           value_clause(lambda value: Sql("r.id = ANY(?)", value))),
    Filter(param("series", params.ids(), "Events of any of these series", is_extension=True),
           _series_clause),
    Filter(param(HIDE_SUBSEQUENT, BOOLEAN, "Of each series only the first date of the list; false: no filter",
                 is_extension=True), no_condition),
    Filter(param("post_parent", params.integer(minimum=1), "Events whose post parent is this ID"), _parent_clause),
    Filter(param("ticketed", BOOLEAN, "Only events with tickets; false: no filter"),
           value_clause(lambda value: Sql("r.ticket_url <> ''") if value else Sql(""))),
    Filter(param("free", BOOLEAN, "Only events that cost nothing; false: only the others", is_extension=True),
           value_clause(lambda value: Sql("r.is_free") if value else Sql("NOT r.is_free"))),
    Filter(param("event_status", params.several_of(*STATES), "Events with this status, or with any of several",
                 is_extension=True), value_clause(_state_clause)),
    Filter(param("geoloc_radius", params.number(0.001, 20_038), "Radius in kilometres", default=40,
                 is_extension=True), no_condition),
    _date("overlaps_from", "Events that are still running after this date",
          Bound("end_from", day_begins, SECOND, replaces_default=True), is_extension=True),
    _date("overlaps_to", "Events that start on or before this date",
          Bound("start_to", day_ends, replaces_default=True), is_extension=True),
    # Existing clients send values that only WordPress knows, and still expect a list.
    Filter(param("order", params.one_of("asc", "desc", ignore_others=True), "Sort direction, asc or desc",
                 default="asc", is_extension=True),
           no_condition),
    Filter(param("orderby", params.one_of(*ORDERS, ignore_others=True), "Sort key", is_extension=True),
           validates_only(_check_orderby)),
    Filter(param("cursor", CURSOR, "`next_cursor` of the previous page, instead of `page`", is_extension=True),
           validates_only(_check_cursor)),
)  # fmt: skip


async def link_clauses(query: ListQuery) -> list[Clause]:
    """Build the conditions for the category, tag, venue and organizer filters."""
    values = query.values
    names = ("categories", "tags", "venue", "organizer")
    rows = [row for row in EVENT_FILTERS if row.param.name in names and row.param.name in values]
    return [await row.clause(values[row.param.name], query) for row in rows]


# The time window of an event list, built from its date parameters.

# Not an API parameter. Operations set it to list events regardless of date.
ANY_DATE: Final = "any_date"
BOUNDS: Final = {row.param.name: row.clause for row in EVENT_FILTERS if isinstance(row.clause, Bound)}


def build_window(query: ListQuery) -> Window:
    """Return a list's window. The window determines the list's page, total and cache tags."""
    window: Window | None = query.derived.get("window")
    if window is None:
        window = query.derived["window"] = _combine_bounds(query)
    return window


def _combine_bounds(query: ListQuery) -> Window:
    """Combine the limits that the parameters set. The default window begins today and lasts two years."""
    values, zone, now = query.values, query.site.timezone, query.transaction.now
    if "include" in values or ANY_DATE in values:
        return Window()
    window = Window()
    dates: dict[str, Any] = dict(values)
    if not _replaces_default_window(query):
        first, last = times.default_window(now, zone)
        dates = {
            "start_date": DateTimeInput(first, None, True),
            "end_date": DateTimeInput(last, None, True),
            **values,
        }
    is_strict = bool(values.get("strict_dates"))
    for name, bound in BOUNDS.items():
        if name not in dates:
            continue
        is_exact = is_strict and name in values
        try:
            moment = date_forms.make_absolute(dates[name], now, zone)
            value = (times.to_utc if is_exact else bound.read_day)(moment, zone) + bound.step
            # An event that starts exactly at the end of an exact period does not overlap the period.
            value -= SECOND if is_exact and name == "overlaps_to" else timedelta(0)
        except (errors.InvalidValue, OverflowError) as error:
            raise errors.invalid(
                name, "must be a date between the years 1 and {last}.", last=times.LAST_YEAR
            ) from error
        current: datetime | None = getattr(window, bound.limit)
        narrower = max if bound.limit.endswith("from") else min
        limits: dict[str, Any] = {bound.limit: value if current is None else narrower(current, value)}
        if name == "overlaps_from":
            # A zero-length event at midnight, such as a deadline, belongs to the day that begins at that moment.
            limits["include_zero_length"] = limits[bound.limit] == value and current != value
        window = replace(window, **limits)
    return window


def has_dates(values: Mapping[str, Any]) -> bool:
    """Return whether a parameter replaces all or part of the default window."""
    return any(name in values for name in BOUNDS) or "include" in values


def expires_at_midnight(query: ListQuery) -> datetime | None:
    """Return when the default window or a relative date moves, usually at midnight in the site's time zone."""
    zone, now = query.site.timezone, query.transaction.now
    if (expires_at := find_relative_expiry(query.values, now, zone)) is not None:
        return expires_at
    if "include" in query.values or ANY_DATE in query.values or _replaces_default_window(query):
        return None
    if "start_date" in query.values and "end_date" in query.values:
        return None
    return times.next_midnight(now, zone)


def find_relative_expiry(values: Mapping[str, Any], now: datetime, zone: str) -> datetime | None:
    """Return when a response with relative dates expires; `now` prevents caching. Without such dates, return None."""
    relative = [value for name in BOUNDS if isinstance(value := values.get(name), RelativeDate)]
    if not relative:
        return None
    is_exact = bool(values.get("strict_dates"))
    changes = any(value.changes_within_day(is_exact=is_exact) for value in relative)
    return now if changes else times.next_midnight(now, zone)


def _replaces_default_window(query: ListQuery) -> bool:
    return any(bound.replaces_default and name in query.values for name, bound in BOUNDS.items())
