"""Pairing of existing events with the dates of a new rule, so that events keep their identity."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import partial

from kalends.core.recurrence import period_of
from kalends.core.series import Date


def pair_slots(old: Sequence[datetime], new: Sequence[Date]) -> list[tuple[datetime | None, Date | None]]:
    """Pair the slots of existing events with new dates: same slot, same day, same period of the rule, in order."""
    pairs: list[tuple[datetime | None, Date | None]] = []
    left_old, left_new = list(old), list(new)
    for key in (_identity, _day):
        found, left_old, left_new = _pair_by(left_old, left_new, key, _by_slot(key))
        pairs += found
    # The periods are those of the new rule, so that old slots are grouped by it as well.
    for rule in dict.fromkeys(date.part.rule for date in left_new if date.part.rule is not None):
        dates = [date for date in left_new if date.part.rule == rule]
        found, left_old, unused = _pair_by(
            left_old, dates, partial(period_of, rule), _by_slot(partial(period_of, rule))
        )
        pairs += found
        left_new = [date for date in left_new if date.part.rule != rule or date in unused]
    return [*pairs, *[(slot, None) for slot in left_old], *[(None, date) for date in left_new]]


def _pair_by(
    old: list[datetime],
    new: list[Date],
    old_key: Callable[[datetime], Hashable],
    new_key: Callable[[Date], Hashable],
) -> tuple[list[tuple[datetime | None, Date | None]], list[datetime], list[Date]]:
    waiting: dict[Hashable, list[Date]] = {}
    for date in reversed(new):
        waiting.setdefault(new_key(date), []).append(date)
    pairs: list[tuple[datetime | None, Date | None]] = []
    left_old: list[datetime] = []
    for slot in old:
        dates = waiting.get(old_key(slot))
        if dates:
            pairs.append((slot, dates.pop()))
        else:
            left_old.append(slot)
    left = {date.slot for dates in waiting.values() for date in dates}
    return pairs, left_old, [date for date in new if date.slot in left]


def _by_slot(key: Callable[[datetime], Hashable]) -> Callable[[Date], Hashable]:
    return lambda date: key(date.slot)


def _identity(slot: datetime) -> Hashable:
    return slot


def _day(slot: datetime) -> Hashable:
    return slot.date()
