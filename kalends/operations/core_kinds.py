"""The kinds as the lists of the core routes (`wp/v2`) filter and order them.

They are variants of the kinds of the API: the same rows, visibility and records, with other filters, another order
and no window of dates.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.core import errors, params, times
from kalends.core.date_forms import DateInput, RelativeDate, make_absolute
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import Type, param
from kalends.core.slugs import normalize_lookup
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.event_list.dates import ANY_DATE
from kalends.kinds.event_list.order import ORDERS as EVENT_ORDERS
from kalends.kinds.event_list.queries import build_event_page_query
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import (
    Clause,
    ClauseBuilder,
    Filter,
    Kind,
    LinkCondition,
    ListQuery,
    TextCondition,
    build_page_and_total_query,
    build_page_query,
    value_clause,
)
from kalends.kinds.media import MEDIA
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.terms import ORDERS as TERM_ORDERS
from kalends.kinds.venues import VENUES
from kalends.operations import permissions
from kalends.store.sql import Sql

MAX_PER_PAGE: Final = 100
# The names of filters in requests, where those of the API differ.
NAMES: Final = {"categories": "tribe_events_cat"}
MAX_SLUGS: Final = 100
# The values of `orderby` and their columns.
POST_ORDERS: Final[Mapping[str, LiteralString]] = {
    "date": "r.published_at",
    "modified": "r.modified_utc",
    "title": "r.title",
    "id": "r.id",
    "slug": "r.slug",
    "author": "r.author_id",
}
MEDIA_ORDERS: Final[Mapping[str, LiteralString]] = {
    "date": "r.added_at",
    "modified": "r.modified_utc",
    "title": "r.title",
    "id": "r.id",
    "author": "r.author_id",
}


def _read_slugs(value: object) -> list[str]:
    slugs = [str(entry) for entry in params.read_list(value)]
    if len(slugs) > MAX_SLUGS:
        raise InvalidValue("must have at most {maximum} slugs.", maximum=MAX_SLUGS)
    return [normalize_lookup(slug) for slug in slugs]


SLUGS: Final = Type({"type": "array", "items": {"type": "string"}}, _read_slugs, accepts_lists=True)


def _published(name: str, column: LiteralString, operator: LiteralString) -> ClauseBuilder:
    async def clause(value: DateInput, query: ListQuery) -> Clause:
        zone = query.site.timezone
        try:
            absolute = make_absolute(value, query.transaction.now, zone)
            return Sql(column + " " + operator + " ?", times.to_utc(absolute, zone))
        except (InvalidValue, OverflowError) as error:
            raise errors.invalid(
                name, "must be a date between the years 1 and {last}.", last=times.LAST_YEAR
            ) from error

    return clause


def _ignore_unknown(clause: ClauseBuilder) -> ClauseBuilder:
    """Make a filter that ignores unknown records, which the API rejects. Without a known one it matches nothing."""

    async def build(value: Any, query: ListQuery) -> Clause:
        try:
            return await clause(value, query)
        except ApiError:
            known = [entry for entry in value if await _is_known(entry, query)] if isinstance(value, list) else []
            return await clause(known, query) if known else Sql("false")

    async def _is_known(entry: Any, query: ListQuery) -> bool:
        try:
            await clause([entry], query)
        except ApiError:
            return False
        return True

    return build


def _own_filter(kind: Kind, name: str) -> Filter:
    return next(row for row in kind.filters if row.param.name == name)


def _lenient_filter(kind: Kind, name: str) -> Filter:
    row = _own_filter(kind, name)
    return Filter(row.param, _ignore_unknown(row.clause))


INCLUDE: Final = Filter(
    param("include", params.ids(allow_empty=True), "Limit to these IDs"),
    value_clause(lambda value: Sql("r.id = ANY(?)", value)),
)
EXCLUDE: Final = Filter(
    param("exclude", params.ids(allow_empty=True), "Exclude these IDs"),
    value_clause(lambda value: Sql("NOT r.id = ANY(?)", value)),
)
SLUG: Final = Filter(
    param("slug", SLUGS, "The slug of the record"), value_clause(lambda value: Sql("r.slug = ANY(?)", value))
)
HIDE_EMPTY: Final = Filter(
    param("hide_empty", params.BOOLEAN, "Hide terms not assigned to any published event", default=False),
    value_clause(lambda value: Sql("r.count > 0") if value else Sql("")),
)


def _date_filters(column: LiteralString) -> tuple[Filter, ...]:
    return (
        Filter(
            param("after", params.DATE_TIME, "Only records published after this date"),
            _published("after", column, ">"),
        ),
        Filter(
            param("before", params.DATE_TIME, "Only records published before this date"),
            _published("before", column, "<"),
        ),
    )


def _find_expiry(query: ListQuery) -> datetime | None:
    """Return when a list expires: at once if a date is relative to the current time."""
    is_relative = any(isinstance(query.values.get(name), RelativeDate) for name in ("after", "before"))
    return query.transaction.now if is_relative else None


def _order(columns: Mapping[str, LiteralString], query: ListQuery) -> Sql:
    """Order by a column and the ID, or as `include` lists the IDs."""
    column = columns.get(query.values["orderby"])
    direction: LiteralString = "DESC" if query.values["order"] == "desc" else "ASC"
    if column is None:
        return Sql("array_position(?::bigint[], r.id), r.id " + direction, query.values.get("include") or [])
    return Sql(column + " " + direction + ", r.id " + direction)


def _build_event_page_query(kind: Kind, query: ListQuery, clauses: list[Clause]) -> Sql:
    """Use the indexes of event lists where a filter or the order has one; other lists read the rows themselves."""
    has_index = any(isinstance(clause, LinkCondition | TextCondition) for clause in clauses)
    is_by_date = query.values["orderby"] == "date" and not has_index
    if query.values["orderby"] in EVENT_ORDERS and not is_by_date:
        return build_event_page_query(kind, query, clauses)
    return build_page_query(kind, query, [Sql("NOT r.hide_from_listings"), *clauses])


def _make_post_kind(kind: Kind, *extra: Filter) -> Kind:
    filters = (INCLUDE, EXCLUDE, SLUG, *_date_filters("r.published_at"), *extra)
    reads = replace(
        kind.reads,
        order=lambda query: _order(POST_ORDERS, query),
        next_cursor=None,
        expires_at=_find_expiry,
        max_per_page=MAX_PER_PAGE,
    )
    return replace(kind, filters=(*filters, _own_filter(kind, "search"), _own_filter(kind, "status")), reads=reads)


def _make_term_kind(kind: Kind, *extra: Filter) -> Kind:
    filters = (INCLUDE, EXCLUDE, SLUG, HIDE_EMPTY, _own_filter(kind, "search"), _lenient_filter(kind, "post"), *extra)
    return replace(kind, filters=filters, reads=replace(kind.reads, max_per_page=MAX_PER_PAGE))


def _make_event_kind() -> Kind:
    kind = _make_post_kind(EVENTS, _lenient_filter(EVENTS, "categories"), _lenient_filter(EVENTS, "tags"))
    reads = replace(kind.reads, page_query=_build_event_page_query, page_and_total_query=build_page_and_total_query)
    return replace(kind, reads=reads)


CORE_EVENTS: Final = _make_event_kind()
CORE_VENUES: Final = _make_post_kind(VENUES)
CORE_ORGANIZERS: Final = _make_post_kind(ORGANIZERS)
CORE_CATEGORIES: Final = _make_term_kind(CATEGORIES, _lenient_filter(CATEGORIES, "parent"))
CORE_TAGS: Final = _make_term_kind(TAGS)
CORE_MEDIA: Final = replace(
    MEDIA,
    filters=(INCLUDE, EXCLUDE, *_date_filters("r.added_at"), _own_filter(MEDIA, "search")),
    reads=replace(
        MEDIA.reads,
        order=lambda query: _order(MEDIA_ORDERS, query),
        expires_at=_find_expiry,
        max_per_page=MAX_PER_PAGE,
        visible=permissions.shown_media_condition,
    ),
)


def list_orders(kind: Kind) -> tuple[str, ...]:
    """Return the values of `orderby`."""
    if kind.is_term:
        return (*(name for name in TERM_ORDERS if name not in ("term_id", "parent")), "include")
    return (*(MEDIA_ORDERS if kind.is_media else POST_ORDERS), "include")


def complete_values(kind: Kind, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a list with the defaults of WordPress: published records, newest first; terms by name."""
    filled = {name: value for name, value in values.items() if value not in ("", [])}
    filled |= {name: filled.pop(sent) for name, sent in NAMES.items() if sent in filled}
    if kind.is_term:
        return {"orderby": "name", "order": "asc", "per_page": 10, **filled}
    defaults = {"orderby": "date", "order": "desc", "per_page": 10}
    if kind.is_post:
        defaults["status"] = ["publish"]
    return {**defaults, **filled, **({ANY_DATE: True} if kind.is_event else {})}
