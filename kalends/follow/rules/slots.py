"""When digests are due: one slot per local day or week, and windows without gaps between slots."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, LiteralString

from kalends.core.times import DateTimeInput, local_of, resolve

RHYTHMS: Final = ("weekly", "daily")
DAY: Final = timedelta(days=1)
# A digest that is later than this is skipped; the next one covers its changes.
MAX_DELAY: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A local hour, every day or on one weekday (1 is Monday)."""

    name: str
    weekday: int
    hour: int

    @property
    def columns(self) -> dict[LiteralString, object]:
        return {"rhythm": self.name, "weekday": self.weekday, "hour": self.hour}

    @property
    def step(self) -> timedelta:
        return DAY if self.name == "daily" else 7 * DAY

    def falls_on(self, day: date) -> bool:
        return self.name == "daily" or day.isoweekday() == self.weekday


@dataclass(frozen=True, slots=True)
class Slot:
    """A digest's time, and the end of its window, which is the next slot."""

    begin: datetime
    end: datetime


def find_slot(rhythm: Rhythm, moment: datetime, zone: str) -> Slot:
    """Return the last slot at or before a moment."""
    begin = max(start for start in _list_starts(rhythm, moment, zone) if start <= moment)
    return Slot(begin, find_next(rhythm, begin, zone))


def find_next(rhythm: Rhythm, moment: datetime, zone: str) -> datetime:
    """Return the first slot after a moment."""
    return min(start for start in _list_starts(rhythm, moment, zone) if start > moment)


def _list_starts(rhythm: Rhythm, moment: datetime, zone: str) -> list[datetime]:
    """Return the slots around a moment. A local time that a change skips moves forward."""
    today = local_of(moment, zone).date()
    # A zone can skip a whole day, so that two days have the same slot.
    span = 2 * rhythm.step // DAY + 1
    days = [today + DAY * number for number in range(-span, span + 1)]
    return [_start_of(day, rhythm.hour, zone) for day in days if rhythm.falls_on(day)]


def _start_of(day: date, hour: int, zone: str) -> datetime:
    return resolve(DateTimeInput(datetime.combine(day, time(hour)), None, False), zone).utc
