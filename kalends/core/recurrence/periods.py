"""Periods and the days that a rule gives in them.

Days are ordinals of `datetime.date`; day 1 is a Monday. Periods have numbers, too: those of days, weeks, months or
years. The days in a month depend only on its length and first weekday, and those in a year only on the weekday of
1 January and on whether it is a leap year, so each of these cases is computed once per expansion.
"""

from calendar import isleap
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from itertools import accumulate
from typing import Final

from kalends.core.recurrence.rules import Rule, Weekday

LAST_DAY: Final = date.max.toordinal()
MONTHS: Final = range(1, 13)
_MONTH_LENGTHS: Final = {
    is_leap: (31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31) for is_leap in (False, True)
}

type DaysIn = Callable[[int], Sequence[int]]


def period_number(rule: Rule, day: int) -> int:
    """Return the number of the period that contains a day."""
    if rule.frequency == "daily":
        return day
    if rule.frequency == "weekly":
        return (day - 1 - rule.week_start) // 7
    moment = date.fromordinal(day)
    return moment.year if rule.frequency == "yearly" else moment.year * 12 + moment.month - 1


def days_in_day(rule: Rule, start: date) -> DaysIn:
    """Return a function that gives a day if it satisfies all parts of the rule."""
    weekdays = {weekday.day for weekday in rule.weekdays} or range(7)
    if rule.set_positions and not {1, -1} & {*rule.set_positions}:
        return lambda day: ()  # The set of a day has a single date.

    def find(day: int) -> Sequence[int]:
        return (day,) if (day - 1) % 7 in weekdays and _is_in_month(rule, date.fromordinal(day)) else ()

    return find


def days_in_week(rule: Rule, start: date) -> DaysIn:
    weekdays = {weekday.day for weekday in rule.weekdays} or {start.weekday()}
    offsets = sorted((weekday - rule.week_start) % 7 for weekday in weekdays)

    def find(number: int) -> Sequence[int]:
        first = number * 7 + 1 + rule.week_start
        days = [first + offset for offset in offsets]
        return _pick(_limit_to_months(days, rule.months) if rule.months else days, rule.set_positions)

    return find


def days_in_month(rule: Rule, start: date) -> DaysIn:
    @cache
    def find_offsets(weekday: int, length: int) -> Sequence[int]:
        return _pick(sorted(_month_offsets(rule, start, weekday, length)), rule.set_positions)

    def find(number: int) -> Sequence[int]:
        year, month = divmod(number, 12)
        if rule.months and month + 1 not in rule.months:
            return ()
        first = date(year, month + 1, 1).toordinal()
        offsets = find_offsets((first - 1) % 7, _MONTH_LENGTHS[isleap(year)][month])
        return [first + offset for offset in offsets]

    return find


def days_in_year(rule: Rule, start: date) -> DaysIn:
    @cache
    def find_offsets(weekday: int, is_leap: bool) -> Sequence[int]:
        return _pick(sorted(_year_offsets(rule, start, weekday, is_leap)), rule.set_positions)

    def find(year: int) -> Sequence[int]:
        first = date(year, 1, 1).toordinal()
        return [first + offset for offset in find_offsets((first - 1) % 7, isleap(year))]

    return find


def _is_in_month(rule: Rule, day: date) -> bool:
    """Return whether a day satisfies `months` and `month_days`."""
    if rule.months and day.month not in rule.months:
        return False
    length = _MONTH_LENGTHS[isleap(day.year)][day.month - 1]
    return not rule.month_days or day.day in rule.month_days or day.day - length - 1 in rule.month_days


def _limit_to_months(days: Sequence[int], months: tuple[int, ...]) -> Sequence[int]:
    """Return the days of a week that are in the months."""
    inside = [day for day in days if 1 <= day <= LAST_DAY]
    ends = {date.fromordinal(day).month in months for day in (inside[0], inside[-1])} if inside else {False}
    if len(ends) == 1:  # A week touches at most two months, so both of its ends decide for the days between.
        return inside if ends == {True} else ()
    return [day for day in inside if date.fromordinal(day).month in months]


def _year_offsets(rule: Rule, start: date, weekday: int, is_leap: bool) -> set[int]:
    """Return the days that a rule gives in a year, as distances from 1 January, before `set_positions`."""
    if rule.weekdays and not rule.months:
        # Without months the weekdays are numbered within the year; days of the month only limit them.
        days = _weekday_offsets(rule.weekdays, weekday, 366 if is_leap else 365)
        return days & _days_of_months(is_leap, rule.month_days) if rule.month_days else days
    months = rule.months or (MONTHS if rule.month_days else (start.month,))
    return {
        begin + offset
        for month, (begin, length) in enumerate(_spans_of_months(is_leap), 1)
        if month in months
        for offset in _month_offsets(rule, start, (weekday + begin) % 7, length)
    }


def _days_of_months(is_leap: bool, month_days: tuple[int, ...]) -> set[int]:
    return {
        begin + offset
        for begin, length in _spans_of_months(is_leap)
        for offset in _month_day_offsets(month_days, length)
    }


def _spans_of_months(is_leap: bool) -> Iterator[tuple[int, int]]:
    """Yield the distance from 1 January and the length of each month."""
    lengths = _MONTH_LENGTHS[is_leap]
    return zip(accumulate(lengths, initial=0), lengths, strict=False)


def _month_offsets(rule: Rule, start: date, weekday: int, length: int) -> set[int]:
    """Return the days that a rule gives in a month, as distances from the first, before `set_positions`."""
    if not rule.weekdays:
        return _month_day_offsets(rule.month_days or (start.day,), length)
    days = _weekday_offsets(rule.weekdays, weekday, length)
    return days & _month_day_offsets(rule.month_days, length) if rule.month_days else days


def _month_day_offsets(month_days: tuple[int, ...], length: int) -> set[int]:
    offsets = {number - 1 if number > 0 else length + number for number in month_days}
    return {offset for offset in offsets if 0 <= offset < length}


def _weekday_offsets(weekdays: tuple[Weekday, ...], first_weekday: int, length: int) -> set[int]:
    """Return the days of a month or year that are one of the weekdays."""
    offsets: set[int] = set()
    for weekday in weekdays:
        every = range((weekday.day - first_weekday) % 7, length, 7)
        offsets |= {*every} if weekday.ordinal is None else {*_pick(every, (weekday.ordinal,))}
    return offsets


def _pick(days: Sequence[int], positions: tuple[int, ...]) -> Sequence[int]:
    """Return the days at the positions, which count from 1, or from the end if negative; without any, all days."""
    if not positions:
        return days
    indices = {position - 1 if position > 0 else len(days) + position for position in positions}
    return [days[index] for index in sorted(indices) if 0 <= index < len(days)]
