"""Expansion of rules to dates.

Each period between the start and the end is visited at most once, so the time that an expansion takes is bounded,
whatever the rule is.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from math import gcd
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.recurrence.periods import (
    DaysIn,
    days_in_day,
    days_in_month,
    days_in_week,
    days_in_year,
    period_number,
)
from kalends.core.recurrence.rules import Rule

# The calendar repeats after 400 years: these are their periods. If as many periods have no date, none has.
_CYCLES: Final = {"daily": 146_097, "weekly": 20_871, "monthly": 4_800, "yearly": 400}
_DAYS_IN: Final[dict[str, Callable[[Rule, date], DaysIn]]] = {
    "daily": days_in_day,
    "weekly": days_in_week,
    "monthly": days_in_month,
    "yearly": days_in_year,
}
# The years in which `check_start` searches the first date: 29 February on a given weekday occurs within 40 years.
_SEARCHED_YEARS: Final = 40
_EVERY_DAY: Final = tuple(range(1, 32))


def expand(rule: Rule, start: datetime, until: datetime, *, after: datetime | None = None) -> Iterator[datetime]:
    """Yield the dates of a rule from `start` to `until` in order, in local time, at the time of day of `start`.

    `after` leaves out earlier dates. Their periods are skipped without a visit, unless `COUNT` has to count them.
    The start itself is a date only if the rule gives it.
    """
    first = start.toordinal()
    since = first if after is None else max(first, after.toordinal() + (start.time() < after.time()))
    last = until.toordinal() - (start.time() > until.time())
    if rule.until is not None:
        last = min(last, rule.until.toordinal())
    days = _find_days(rule, start.date(), since if rule.count is None else first, last)
    time_of_day = start.time()
    return (datetime.combine(date.fromordinal(day), time_of_day) for day in islice(days, rule.count) if day >= since)


def check_start(rule: Rule, start: datetime) -> None:
    """Raise an error unless the start is a date of the rule."""
    day = start.date()
    if rule.until is not None and rule.until < day:
        raise InvalidValue("The rule ends on {until}, before the start, {start}.", until=rule.until, start=day)
    horizon = start.replace(year=min(day.year + _SEARCHED_YEARS, date.max.year), month=12, day=31)
    first = next(expand(rule, start, horizon), None)
    if first is None:
        raise InvalidValue(
            "This rule has no dates between {start} and {horizon}.",
            start=day,
            horizon=min(horizon.date(), rule.until or date.max),
        )
    if first != start:
        raise InvalidValue(
            "{start} is not a date of this rule. Its first date is {first}.", start=day, first=first.date()
        )


def period_of(rule: Rule, slot: datetime) -> Hashable:
    """Return the day, week, month or year that contains a date, whatever the interval of the rule is."""
    return period_number(rule, slot.toordinal())


def _find_days(rule: Rule, start: date, first: int, last: int) -> Iterator[int]:
    """Yield the days from `first` to `last`."""
    if first > last:
        return iter(())
    if rule.frequency == "daily" and rule.interval < 31 and (rule.months or rule.month_days):
        return _find_days_by_month(rule, start, first, last)
    return _visit_periods(rule, start, first, last)


def _find_days_by_month(rule: Rule, start: date, first: int, last: int) -> Iterator[int]:
    """Yield the days of a daily rule that is limited to few days, without a visit of every day."""
    if rule.set_positions and not {1, -1} & {*rule.set_positions}:
        return iter(())  # The set of a day has a single date.
    monthly = replace(
        rule, frequency="monthly", interval=1, month_days=rule.month_days or _EVERY_DAY, set_positions=()
    )
    begin = start.toordinal()
    return (day for day in _visit_periods(monthly, start, first, last) if (day - begin) % rule.interval == 0)


def _visit_periods(rule: Rule, start: date, first: int, last: int) -> Iterator[int]:
    begin = period_number(rule, start.toordinal())
    skipped = -((begin - period_number(rule, first)) // rule.interval)
    cycle = _CYCLES[rule.frequency] // gcd(_CYCLES[rule.frequency], rule.interval)
    find_days, empty = _DAYS_IN[rule.frequency](rule, start), 0
    for number in range(begin + skipped * rule.interval, period_number(rule, last) + 1, rule.interval):
        days = find_days(number)
        empty = 0 if days else empty + 1
        if empty > cycle:
            return
        for day in days:
            if first <= day <= last:
                yield day
