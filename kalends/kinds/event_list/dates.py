"""The window of a list of events: from its date parameters to limits of start and end."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.times import DateTimeInput, RelativeDate
from kalends.core.zones import SECOND
from kalends.kinds.event_list.filters import EVENT_FILTERS
from kalends.kinds.event_list.window import Bound, Window
from kalends.kinds.kind import ListQuery

# Not an API parameter: the value by which an operation asks for the events of all times.
ANY_DATE: Final = "any_date"
BOUNDS: Final = {row.param.name: row.clause for row in EVENT_FILTERS if isinstance(row.clause, Bound)}


def build_window(query: ListQuery) -> Window:
    """Return the window of a list; its page, its total and its cache tags all depend on it."""
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
            moment = times.make_absolute(dates[name], now, zone)
            value = (times.to_utc if is_exact else bound.read_day)(moment, zone) + bound.step
            # An event that starts at the very end of an exact period does not overlap it.
            value -= SECOND if is_exact and name == "overlaps_to" else timedelta(0)
        except (errors.InvalidValue, OverflowError) as error:
            raise errors.invalid(
                name, "must be a date between the years 1 and {last}.", last=times.LAST_YEAR
            ) from error
        current: datetime | None = getattr(window, bound.limit)
        narrower = max if bound.limit.endswith("from") else min
        limits: dict[str, Any] = {bound.limit: value if current is None else narrower(current, value)}
        if name == "overlaps_from":
            # A zero-length event, such as a deadline at midnight, overlaps the day that it begins.
            limits["include_zero_length"] = limits[bound.limit] == value and current != value
        window = replace(window, **limits)
    return window


def has_dates(values: Mapping[str, Any]) -> bool:
    """Return whether a parameter replaces the default window or a part of it."""
    return any(name in values for name in BOUNDS) or "include" in values


def expires_at_midnight(query: ListQuery) -> datetime | None:
    """Return when the default window or a relative date moves: at the next midnight in the time zone of the site."""
    zone, now = query.site.timezone, query.transaction.now
    if (expires_at := find_relative_expiry(query.values, now, zone)) is not None:
        return expires_at
    if "include" in query.values or ANY_DATE in query.values or _replaces_default_window(query):
        return None
    if "start_date" in query.values and "end_date" in query.values:
        return None
    return times.next_midnight(now, zone)


def find_relative_expiry(values: Mapping[str, Any], now: datetime, zone: str) -> datetime | None:
    """Return when a response with relative dates expires; `now` if it must not be stored, None without such dates."""
    relative = [value for name in BOUNDS if isinstance(value := values.get(name), RelativeDate)]
    if not relative:
        return None
    is_exact = bool(values.get("strict_dates"))
    changes = any(value.changes_within_day(is_exact=is_exact) for value in relative)
    return now if changes else times.next_midnight(now, zone)


def _replaces_default_window(query: ListQuery) -> bool:
    return any(bound.replaces_default and name in query.values for name, bound in BOUNDS.items())
