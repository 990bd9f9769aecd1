"""The lists that people follow: a canonical text for equal filters, and the filters as values."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.operations.calendar_months import DATE_PARAMS
from kalends.calendar.operations.page_filters import ResolvedFilters, resolve_filters
from kalends.calendar.operations.site_feeds import FEED_PARAMS
from kalends.core import errors
from kalends.core.params import Param, parse_id, read_params
from kalends.core.sanitize import fold

MAX_QUERY: Final = 1000  # characters
COORDINATES: Final = ("geoloc_lat", "geoloc_lng")
# Filters without dates, because the window of a digest sets them.
LIST_PARAMS: Final[tuple[Param, ...]] = tuple(
    param for param in FEED_PARAMS if param.name not in DATE_PARAMS | {HIDE_SUBSEQUENT, "post_parent"}
)
NAMES: Final = frozenset(param.name for param in LIST_PARAMS)


def make_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Return filters as canonical text. Coordinates are rounded to about a kilometre.

    Raise ApiError if the text is too long.
    """
    values: dict[str, list[str]] = {}
    for sent_name, value in pairs:
        name = sent_name.partition("[")[0]
        if name in NAMES and value.strip():
            values.setdefault(name, []).append(value)
    pairs = [(name, _normalize(name, ",".join(texts))) for name, texts in sorted(values.items())]
    query = urlencode(pairs, safe=",")
    if len(query) > MAX_QUERY:
        raise errors.invalid("query", "has more than {maximum} characters; use fewer filters.", maximum=MAX_QUERY)
    return query


def _normalize(name: str, value: str) -> str:
    if name == "search":
        return fold(value)
    if name in COORDINATES:
        try:
            return f"{round(float(value), 2) + 0.0:.2f}"
        except ValueError:
            return value
    entries = {entry.strip() for entry in value.split(",") if entry.strip()}
    return ",".join(sorted(entries, key=lambda entry: (parse_id(entry) or 0, entry)))


def read_query(query: str) -> dict[str, Any]:
    """Return the parsed filters of a canonical text. Raise ApiError if a later version does not know them."""
    return read_params(LIST_PARAMS, dict(parse_qsl(query)))


async def resolve_query(context: OperationContext, query: str) -> tuple[OperationContext, ResolvedFilters]:
    """Return the context with the filters of a canonical text. Raise ApiError like `read_query`."""
    return await resolve_filters(replace(context, values=read_query(query)))


def list_names(resolved: ResolvedFilters) -> list[str]:
    """Return the names of the records that a list is about."""
    return [entry.name for name in resolved.named for entry in resolved.list_named(name)]
