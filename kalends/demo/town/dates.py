"""The dates of the programme around a day."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from kalends.demo.town.programme import PROGRAMME, Item, Slot

WEEKS_BACK: Final = 4
WEEKS_AHEAD: Final = 10
# Exhibitions that opened before the first week may still be running.
LONGEST_RUN: Final = 7
FIRST_MONDAY: Final = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Occurrence:
    slot: Slot
    item: Item
    start: datetime
    end: datetime

    @property
    def all_day(self) -> bool:
        return self.slot.days > 0


def list_occurrences(today: date) -> list[Occurrence]:
    """Return the programme from four weeks before today to ten weeks after it, by start."""
    this_week = (today - FIRST_MONDAY).days // 7
    first_day = FIRST_MONDAY + timedelta(weeks=this_week - WEEKS_BACK)
    found = [
        occurrence
        for slot in PROGRAMME
        for occurrence in _repeat(slot, this_week - WEEKS_BACK - LONGEST_RUN, this_week + WEEKS_AHEAD)
        if occurrence.end.date() >= first_day
    ]
    return sorted(found, key=lambda occurrence: occurrence.start)


def _repeat(slot: Slot, first_week: int, last_week: int) -> Iterator[Occurrence]:
    for week in range(first_week, last_week + 1):
        turn, rest = divmod(week - slot.phase, slot.every)
        day = FIRST_MONDAY + timedelta(weeks=week, days=slot.weekday)
        if rest or (slot.months and day.month not in slot.months):
            continue
        start = datetime.combine(day, time.fromisoformat(slot.start or "00:00"))
        length = timedelta(days=slot.days - 1) if slot.days else timedelta(minutes=slot.minutes)
        yield Occurrence(slot, slot.items[turn % len(slot.items)], start, start + length)
