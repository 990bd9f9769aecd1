"""The window of a list of events: from its date parameters to limits of start and end."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.kinds.event_list.filters import EVENT_FILTERS
from kalends.kinds.event_list.window import Bound, Window
from kalends.kinds.kind import ListQuery

BOUNDS: Final = {row.param.name: row.clause for row in EVENT_FILTERS if isinstance(row.clause, Bound)}


def build_window(query: ListQuery) -> Window:
    """Combine the limits that the parameters set. The default window begins today and lasts two years."""
    values, zone = query.values, query.site.timezone
    if "include" in values:
        return Window()
    window = Window()
    dates: dict[str, Any] = dict(values)
    if not _has_relative_date(query):
        first, last = times.default_window(query.transaction.now, zone)
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
            value = (times.to_utc if is_exact else bound.read_day)(dates[name], zone) + bound.step
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
    """Return when the default window moves: at the next midnight in the time zone of the site."""
    if "include" in query.values or _has_relative_date(query):
        return None
    if "start_date" in query.values and "end_date" in query.values:
        return None
    zone, now = query.site.timezone, query.transaction.now
    today = DateTimeInput(times.local_of(now, zone), None, True)
    return times.day_ends(today, zone) + SECOND


def _has_relative_date(query: ListQuery) -> bool:
    return any(bound.is_relative and name in query.values for name, bound in BOUNDS.items())
