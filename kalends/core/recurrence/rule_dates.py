"""Expand rules to dates, and change rules.

An expansion visits each year once, from the first requested date to the end. It computes the days only once per kind
of year (its first weekday, and whether it is a leap year). This limits the time that any rule can take.
"""

from calendar import isleap
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from itertools import accumulate, islice, takewhile
from typing import Final, NamedTuple

from kalends.core.errors import InvalidValue
from kalends.core.recurrence.rule_parts import Rule, Weekday

MONTHS: Final = range(1, 13)
MAX_PERIODS: Final = {"daily": 366, "weekly": 53, "monthly": 12, "yearly": 1}  # per year
_EVERY_DAY: Final = range(1, 32)

type DaysByPeriod = Iterator[tuple[int, Sequence[int]]]


class YearKind(NamedTuple):
    weekday: int
    is_leap: bool

    @property
    def length(self) -> int:
        return 366 if self.is_leap else 365

    def find_months(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, first day and length of each month."""
        lengths = (31, 29 if self.is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
        return zip(MONTHS, accumulate(lengths, initial=0), lengths, strict=False)


def period_number(rule: Rule, day: int) -> int:
    if rule.frequency == "daily":
        return day
    if rule.frequency == "weekly":
        return (day - 1 - rule.week_start) // 7
    moment = date.fromordinal(day)
    return moment.year if rule.frequency == "yearly" else moment.year * 12 + moment.month - 1


def first_period(rule: Rule, year: int, first_day: int) -> int:
    if rule.frequency == "daily":
        return first_day
    if rule.frequency == "weekly":
        return (first_day + 5 - rule.week_start) // 7
    return year if rule.frequency == "yearly" else year * 12


def find_first_day(year: int) -> int:
    """Return the ordinal of January 1. Year 0 is allowed, because the calendar's first week can begin in it."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + 1


# The calendar repeats every 400 years (exactly 20,871 weeks).
KINDS_OF_YEARS: Final = tuple(YearKind((find_first_day(year) - 1) % 7, isleap(year)) for year in range(400))


def find_days_by_period(rule: Rule, start: date, kind: YearKind) -> dict[int, Sequence[int]]:
    """Return a rule's days in a kind of year, in order, by period."""
    return {period: days for period, days in _FINDERS[rule.frequency](rule, start, kind) if days}


def _find_by_day(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    if rule.set_positions and not {1, -1} & {*rule.set_positions}:
        return  # no other position matches anything, because each set contains a single day
    for _, days in _find_in_months(rule, kind, rule.months, rule.month_days or _EVERY_DAY):
        for day in days:
            yield day, (day,)


def _find_by_week(rule: Rule, start: date, kind: YearKind) -> DaysByPeriod:
    weekdays = {weekday.day for weekday in rule.weekdays} or {start.weekday()}
    offsets = sorted((weekday - rule.week_start) % 7 for weekday in weekdays)
    # The last week can end in the following January.
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
        # Without months, weekday ordinals count within the year, and month days only filter them.
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
    """Yield each month with the days that match both the given month days and the rule's weekdays."""
    for month, first, length in kind.find_months():
        if month in (months or MONTHS):
            days = _find_positions(month_days, length)
            if rule.weekdays:
                days &= _find_weekdays(rule.weekdays, (kind.weekday + first) % 7, length)
            yield month, [first + day for day in sorted(days)]


def _find_weekdays(weekdays: Iterable[Weekday], first_weekday: int, length: int) -> set[int]:
    days: set[int] = set()
    for weekday in weekdays:
        every = range((weekday.day - first_weekday) % 7, length, 7)
        if weekday.ordinal is None:
            days.update(every)
        elif abs(weekday.ordinal) <= len(every):
            days.add(every[weekday.ordinal - (weekday.ordinal > 0)])
    return days


def _pick(days: Sequence[int], positions: Collection[int]) -> Sequence[int]:
    return [days[index] for index in sorted(_find_positions(positions, len(days)))] if positions else days


def _find_positions(positions: Iterable[int], length: int) -> set[int]:
    """Convert positions to indices. Positions start at 1, or at -1 if counted from the end."""
    indices = (position - 1 if position > 0 else length + position for position in positions)
    return {index for index in indices if 0 <= index < length}


# The calendar repeats every 400 years. With an interval, dates repeat after 400 years times the interval.
_CYCLE: Final = 400
# Years that `check_start` searches for the first date. February 29 falls on every weekday within 40 years.
_SEARCHED_YEARS: Final = 40


def expand(rule: Rule, start: datetime, until: datetime, *, after: datetime | None = None) -> Iterator[datetime]:
    """Yield a rule's dates from `start` to `until` in order, in local time, at the same time of day as `start`.

    Omit dates before `after`. They are not even computed, unless the rule has a `COUNT`. The start itself is a date
    only if it matches the rule.
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
    """Raise InvalidValue unless the start matches the rule."""
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
    """Return a key for the day, week, month or year that contains a date. The rule's interval does not matter."""
    return period_number(rule, slot.toordinal())


type Pairing = tuple[list[tuple[datetime, datetime]], list[datetime], list[datetime]]


def pair_by(key: Callable[[datetime], Hashable], old: Iterable[datetime], new: Sequence[datetime]) -> Pairing:
    """Pair old and new dates with the same key, in order; return the pairs and the rest of both."""
    waiting: dict[Hashable, list[datetime]] = {}
    for moment in reversed(new):
        waiting.setdefault(key(moment), []).append(moment)
    pairs: list[tuple[datetime, datetime]] = []
    left: list[datetime] = []
    for moment in old:
        if found := waiting.get(key(moment)):
            pairs.append((moment, found.pop()))
        else:
            left.append(moment)
    unused = {moment for moments in waiting.values() for moment in moments}
    return pairs, left, [moment for moment in new if moment in unused]


def _find_days(rule: Rule, start: date, first: int, last: int) -> Iterator[int]:
    if first > last:
        return
    find_days, begin = _make_finder(rule, start), period_number(rule, start.toordinal())
    max_periods, empty_years = MAX_PERIODS[rule.frequency], 0
    first_year = date.fromordinal(first).year - (rule.frequency == "weekly")  # A week can begin in the previous year.
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


# Rule changes for a series that moves to another day, ends earlier or continues at a date.


def shift_rule(rule: Rule, days: int) -> Rule:
    """Return the rule of a series that moves by whole days. The rule's weekdays and `until` move too."""
    if days == 0:
        return rule
    if rule.month_days or rule.months or (rule.weekdays and rule.frequency not in ("daily", "weekly")):
        raise InvalidValue("Moving this series to another day changes its rule. Send the new `rule` as well.")
    weekdays = sorted((weekday.day + days) % 7 for weekday in rule.weekdays)
    # Move the start of the week too, so the dates of a week stay together.
    moves_weeks = len(weekdays) > 1 and (rule.interval > 1 or bool(rule.set_positions))
    return replace(
        rule,
        weekdays=tuple(Weekday(day, None) for day in weekdays),
        week_start=(rule.week_start + days) % 7 if moves_weeks else rule.week_start,
        until=rule.until and _shift_day(rule.until, days),
    )


def end_before(rule: Rule, start: datetime, slot: datetime) -> Rule:
    """Return the rule, changed to end before `slot`. Its earlier dates stay the same."""
    count = _count_before(rule, start, slot) if rule.count else 0
    if count:
        return replace(rule, count=count)
    # Rules end on whole days, so there can still be a date at an earlier time on the slot's day.
    last_day = slot.date() if start.time() < slot.time() else _shift_day(slot.date(), -1)
    return replace(rule, count=None, until=min(last_day, rule.until or date.max))


def rest_from(rule: Rule, start: datetime, slot: datetime) -> Rule:
    """Return the rule for the remaining dates, starting at `slot`, which must be one of the rule's dates."""
    if rule.count is None:
        return rule
    return replace(rule, count=max(1, rule.count - _count_before(rule, start, slot)))


def _count_before(rule: Rule, start: datetime, slot: datetime) -> int:
    return sum(1 for _ in takewhile(lambda moment: moment < slot, expand(rule, start, slot)))


def _shift_day(day: date, days: int) -> date:
    return date.fromordinal(min(max(1, day.toordinal() + days), date.max.toordinal()))
