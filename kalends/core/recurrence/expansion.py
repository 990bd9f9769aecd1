"""Expansion of rules to dates.

Each year from the start, or from the first date that is wanted, to the end is visited once, and the days of each kind
of year are computed once. So the time that an expansion takes is bounded, whatever the rule is.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import date, datetime
from functools import cache
from itertools import islice
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.recurrence.periods import (
    KINDS_OF_YEARS,
    MAX_PERIODS,
    YearKind,
    find_days_by_period,
    find_first_day,
    first_period,
    period_number,
)
from kalends.core.recurrence.rules import Rule

# The calendar repeats after 400 years. With an interval, so do the dates after as many times 400 years.
_CYCLE: Final = 400
# The years in which `check_start` searches the first date: 29 February on a given weekday occurs within 40 years.
_SEARCHED_YEARS: Final = 40


def expand(rule: Rule, start: datetime, until: datetime, *, after: datetime | None = None) -> Iterator[datetime]:
    """Yield the dates of a rule from `start` to `until` in order, in local time, at the time of day of `start`.

    `after` leaves out earlier dates. Their years are skipped without a visit, unless `COUNT` has to count them.
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
    """Yield the days from `first` to `last`, both of which are days of the calendar unless `first` is the later."""
    if first > last:
        return
    find_days, begin = _make_finder(rule, start), period_number(rule, start.toordinal())
    max_periods, empty_years = MAX_PERIODS[rule.frequency], 0
    first_year = date.fromordinal(first).year - (rule.frequency == "weekly")  # A week may begin in the year before.
    new_year = find_first_day(first_year)
    for year in range(first_year, date.fromordinal(last).year + 1):
        kind = KINDS_OF_YEARS[year % _CYCLE]
        distance = (begin - first_period(rule, year, new_year)) % rule.interval
        days = find_days(kind, distance) if distance < max_periods else ()
        empty_years = 0 if days else empty_years + 1
        if empty_years > _CYCLE * rule.interval:
            return
        for day in days:
            if first <= new_year + day <= last:
                yield new_year + day
        new_year += kind.length


def _make_finder(rule: Rule, start: date) -> Callable[[YearKind, int], Sequence[int]]:
    """Return a function that finds the days in a kind of year, given the first period that the interval selects."""

    @cache
    def find_by_period(kind: YearKind) -> dict[int, Sequence[int]]:
        return find_days_by_period(rule, start, kind)

    @cache
    def find_days(kind: YearKind, first_period: int) -> Sequence[int]:
        by_period = find_by_period(kind)
        periods = range(first_period, MAX_PERIODS[rule.frequency], rule.interval)
        return [day for period in periods for day in by_period.get(period, ())]

    return find_days
