"""Periods and the days that a rule gives in them.

Days are ordinals of `datetime.date`; day 1 is a Monday. Periods have numbers, too: those of days, weeks, months or
years. What a rule gives in a year depends only on the weekday of 1 January and on whether it is a leap year, so
there are fourteen kinds of years. Functions for a kind of year count days and periods from 0; the first week is the
first one that begins in the year.
"""

from calendar import isleap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from itertools import accumulate
from typing import Final, NamedTuple

from kalends.core.recurrence.rules import Rule, Weekday

MONTHS: Final = range(1, 13)
MAX_PERIODS: Final = {"daily": 366, "weekly": 53, "monthly": 12, "yearly": 1}  # in a year
_EVERY_DAY: Final = range(1, 32)

type DaysByPeriod = Iterator[tuple[int, Sequence[int]]]


class YearKind(NamedTuple):
    weekday: int
    is_leap: bool

    @property
    def length(self) -> int:
        return 366 if self.is_leap else 365

    def find_months(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the first day and the length of each month."""
        lengths = (31, 29 if self.is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
        return zip(MONTHS, accumulate(lengths, initial=0), lengths, strict=False)


def period_number(rule: Rule, day: int) -> int:
    """Return the number of the period that contains a day."""
    if rule.frequency == "daily":
        return day
    if rule.frequency == "weekly":
        return (day - 1 - rule.week_start) // 7
    moment = date.fromordinal(day)
    return moment.year if rule.frequency == "yearly" else moment.year * 12 + moment.month - 1


def first_period(rule: Rule, year: int, first_day: int) -> int:
    """Return the number of the first period that begins in a year."""
    if rule.frequency == "daily":
        return first_day
    if rule.frequency == "weekly":
        return (first_day + 5 - rule.week_start) // 7
    return year if rule.frequency == "yearly" else year * 12


def find_first_day(year: int) -> int:
    """Return 1 January, also of the year 0, in which the first week of the calendar may begin."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + 1


# The calendar repeats after 400 years, which are 20,871 weeks.
KINDS_OF_YEARS: Final = tuple(YearKind((find_first_day(year) - 1) % 7, isleap(year)) for year in range(400))


def find_days_by_period(rule: Rule, start: date, kind: YearKind) -> dict[int, Sequence[int]]:
    """Return the days that a rule gives in a kind of year, in order, for each period that has any."""
    return {period: days for period, days in _FINDERS[rule.frequency](rule, start, kind) if days}


def _find_by_day(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    if rule.set_positions and not {1, -1} & {*rule.set_positions}:
        return  # There is one date in a day.
    for _, days in _find_in_months(rule, kind, rule.months, rule.month_days or _EVERY_DAY):
        for day in days:
            yield day, (day,)


def _find_by_week(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    weekdays = {weekday.day for weekday in rule.weekdays} or {start.weekday()}
    offsets = sorted((weekday - rule.week_start) % 7 for weekday in weekdays)
    # The last week may end in January of the next year.
    months = [month for month, _, length in kind.find_months() for _ in range(length)] + [1] * 6
    for week, first in enumerate(range((rule.week_start - kind.weekday) % 7, kind.length, 7)):
        days = [first + offset for offset in offsets]
        if rule.months:
            days = [day for day in days if months[day] in rule.months]
        yield week, _pick(days, rule.set_positions)


def _find_by_month(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    for month, days in _find_in_months(rule, kind, rule.months, _find_month_days(rule, start)):
        yield month - 1, _pick(days, rule.set_positions)


def _find_by_year(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    if rule.weekdays and not rule.months:
        # Without months the weekdays are numbered within the year; days of the month only limit them.
        days = _find_weekdays(rule.weekdays, kind.weekday, kind.length)
        yield 0, _pick(sorted(days & _limit_to_month_days(rule, kind)), rule.set_positions)
        return
    months = rule.months or (MONTHS if rule.month_days else (start.month,))
    found = _find_in_months(rule, kind, months, _find_month_days(rule, start))
    yield 0, _pick([day for _, days in found for day in days], rule.set_positions)


_FINDERS: Final[dict[str, Callable[[Rule, date, YearKind], DaysByPeriod]]] = {
    "daily": _find_by_day,
    "weekly": _find_by_week,
    "monthly": _find_by_month,
    "yearly": _find_by_year,
}


def _find_month_days(rule: Rule, start: date) -> Collection[int]:
    return rule.month_days or (_EVERY_DAY if rule.weekdays else (start.day,))


def _limit_to_month_days(rule: Rule, kind: YearKind) -> set[int]:
    month_days = rule.month_days or _EVERY_DAY
    return {first + day for _, first, length in kind.find_months() for day in _find_positions(month_days, length)}


def _find_in_months(
    rule: Rule, kind: YearKind, months: Collection[int], month_days: Collection[int]
) -> Iterator[tuple[int, list[int]]]:
    """Yield the months with the days that are among the month days and the weekdays of the rule."""
    for month, first, length in kind.find_months():
        if month in (months or MONTHS):
            days = _find_positions(month_days, length)
            if rule.weekdays:
                days &= _find_weekdays(rule.weekdays, (kind.weekday + first) % 7, length)
            yield month, [first + day for day in sorted(days)]


def _find_weekdays(weekdays: Iterable[Weekday], first_weekday: int, length: int) -> set[int]:
    """Return the days of a month or year that are one of the weekdays."""
    days: set[int] = set()
    for weekday in weekdays:
        every = range((weekday.day - first_weekday) % 7, length, 7)
        if weekday.ordinal is None:
            days.update(every)
        elif abs(weekday.ordinal) <= len(every):
            days.add(every[weekday.ordinal - (weekday.ordinal > 0)])
    return days


def _pick(days: Sequence[int], positions: Collection[int]) -> Sequence[int]:
    """Return the days at the positions; without positions, all days."""
    return [days[index] for index in sorted(_find_positions(positions, len(days)))] if positions else days


def _find_positions(positions: Iterable[int], length: int) -> set[int]:
    """Return the indices of positions that count from 1, or from the end if negative."""
    indices = (position - 1 if position > 0 else length + position for position in positions)
    return {index for index in indices if 0 <= index < length}
