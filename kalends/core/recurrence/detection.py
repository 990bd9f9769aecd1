"""Find the rule behind a list of dates.

A rule competes with the plain list. Each date in the list has a price, and so do the parts of a rule and the dates
that it skips, moves or adds. The cheapest description wins.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from kalends.core.recurrence.rule_dates import expand, pair_by, period_number
from kalends.core.recurrence.rule_parts import Rule, Weekday
from kalends.core.recurrence.rule_reading import format_rule, read_rule

MAX_INTERVAL: Final = 12
MAX_DAYS: Final = 7  # weekdays or days of the month in a rule
MAX_MOVE: Final = timedelta(days=7)  # by which a date can differ from its slot
RULE_PRICE: Final = 2
DATE_PRICE: Final = 2  # of a date in a list, and of a missing or extra date of a rule
MOVED_PRICE: Final = 3


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule and its exceptions. Without a rule, the dates are a list.

    A slot is the time that the rule gives to a date. An extra date, for which the rule has no slot, is its own slot.
    """

    rule: Rule | None
    start: datetime  # the first slot
    length: timedelta
    slots: Mapping[datetime, datetime]  # by the start of each date
    missing: tuple[datetime, ...]  # slots without a date
    extra: tuple[datetime, ...]
    price: int

    @property
    def moved(self) -> dict[datetime, datetime]:
        """Return the slots of the dates that differ from their slots, by the starts of these dates."""
        return {start: slot for start, slot in self.slots.items() if start != slot}


def find_pattern(moments: Iterable[tuple[datetime, timedelta]]) -> Pattern:
    """Find the simplest rule that explains the most of these dates, given as distinct local starts with lengths."""
    lengths = dict(sorted(moments))
    starts, usual_time = list(lengths), find_usual(start.time() for start in lengths)
    length = find_usual(entry for start, entry in lengths.items() if start.time() == usual_time)
    alone = {start: start for start in starts}
    best = Pattern(None, starts[0], length, alone, missing=(), extra=tuple(starts), price=DATE_PRICE * len(starts))
    for candidate in _list_candidates([start.date() for start in starts]):
        pattern = _fit(candidate, starts, usual_time, length)
        best = pattern if pattern is not None and pattern.price < best.price else best
    return best


def find_usual[T: Hashable](values: Iterable[T]) -> T:
    """Return the most frequent value; of several, the first."""
    counts = Counter(values)
    return max(counts, key=lambda value: counts[value])


# Rules that could explain the dates ----------------------------------------------------------


class _Candidate(NamedTuple):
    rule: Rule
    phase: int  # the remainder when the number of one of its periods is divided by its interval
    price: int


# A frequency, a part of a rule, and the value of this part for a date. Of equally good rules, the first wins.
_FAMILIES: Final[tuple[tuple[str, str, Callable[[date], Any]], ...]] = (
    ("weekly", "weekdays", lambda day: Weekday(day.weekday())),
    ("monthly", "weekdays", lambda day: Weekday(day.weekday(), (day.day + 6) // 7)),
    ("monthly", "weekdays", lambda day: Weekday(day.weekday(), -1 if _is_last(day, 7) else (day.day + 6) // 7)),
    ("monthly", "month_days", lambda day: day.day),
    ("monthly", "month_days", lambda day: -1 if _is_last(day, 1) else day.day),
    ("daily", "", lambda _: None),
)


def _is_last(day: date, days: int) -> bool:
    """Return whether a day is one of the last days of its month."""
    return (day + timedelta(days=days)).month != day.month


def _list_candidates(days: Sequence[date]) -> Iterator[_Candidate]:
    """Yield rules with the most frequent days that explain at least half of the dates. Longer intervals cost more."""
    for frequency, part, find_value in _FAMILIES:
        values = [find_value(day) for day in days]
        for interval in range(1, MAX_INTERVAL + 1):
            rule = Rule(frequency, interval)
            phases = [period_number(rule, day.toordinal()) % interval for day in days]
            phase = find_usual(phases)
            fitting = Counter(value for value, entry in zip(values, phases, strict=True) if entry == phase)
            repeated = [value for value, count in fitting.items() if count > 1]
            chosen = sorted(repeated, key=lambda value: -fitting[value])[:MAX_DAYS]
            for size in range(1, len(chosen) + 1):
                if sum(fitting[value] for value in chosen[:size]) * 2 >= len(days):
                    parts: dict[str, Any] = {part: tuple(chosen[:size])} if part else {}
                    yield _Candidate(replace(rule, **parts), phase, RULE_PRICE + (interval - 1).bit_length() + size)


# How well a rule explains the dates ----------------------------------------------------------


def _fit(candidate: _Candidate, starts: Sequence[datetime], usual_time: time, length: timedelta) -> Pattern | None:
    """Pair the dates with the slots of a rule; None if it has more than one exception for two dates."""
    rule, phase, price = candidate
    first, last = (period_number(rule, start.toordinal()) for start in (starts[0], starts[-1]))
    # The first and the last date may have been moved to a neighbouring period.
    begin = _find_first_day(rule, first - rule.interval + (phase - first) % rule.interval)
    until = datetime.combine(_find_first_day(rule, last + rule.interval + 1), time.min)
    slots = list(islice(expand(rule, datetime.combine(begin, usual_time), until), 2 * len(starts) + 4 * MAX_DAYS))
    pairs, extra, missing = list[tuple[datetime, datetime]](), [*starts], slots
    for key in (datetime.isoformat, datetime.date, partial(_find_nearest, slots)):
        found, extra, missing = pair_by(key, extra, missing)
        pairs += found
    paired, moved = [slot for _, slot in pairs], sum(start != slot for start, slot in pairs)
    missing = [slot for slot in missing if paired and min(paired) < slot < max(paired)]
    if 2 * (len(missing) + len(extra) + moved) > len(starts):
        return None
    return Pattern(
        read_rule(format_rule(replace(rule, until=max(paired).date())), "UTC"),  # sorts the days
        min(paired),
        length,
        dict(sorted([*pairs, *zip(extra, extra, strict=True)])),
        tuple(missing),
        tuple(extra),
        price + DATE_PRICE * (len(missing) + len(extra)) + MOVED_PRICE * moved,
    )


def _find_nearest(slots: Sequence[datetime], moment: datetime) -> datetime:
    """Return the nearest slot, or the moment itself if no slot is near enough."""
    index = bisect_left(slots, moment)
    nearest = min(slots[max(index - 1, 0) : index + 1], key=lambda slot: abs(slot - moment), default=moment)
    return nearest if abs(nearest - moment) <= MAX_MOVE else moment


def _find_first_day(rule: Rule, period: int) -> date:
    if rule.frequency == "monthly":
        return date(period // 12, period % 12 + 1, 1)
    return date.fromordinal(period if rule.frequency == "daily" else period * 7 + 1)
