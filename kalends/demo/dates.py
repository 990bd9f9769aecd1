"""Dates of demo events and of their publication: from eleven years ago to two years ahead."""

from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Final

from kalends.core.times import DateTimeInput, Span, event_span
from kalends.demo.texts import Chance, pick
from kalends.demo.words import Theme

DAYS_BACK: Final = 11 * 365 + 3
DAYS_AHEAD: Final = 600  # A long exhibition that starts then still ends within the default window of lists.
DAY_SECONDS: Final = 86_400

_BITS: Final = 16
_MIDDLE: Final = 1 << (_BITS - 1)


def plan_days(chance: Chance, past: int, upcoming: int) -> list[int]:
    """Return the publication time and the day of each event, packed, in the order of publication.

    Editors enter events weeks ahead, so IDs follow the calendar only roughly, as on a real site. Packing two numbers
    into one keeps two million entries small and fast to sort.
    """
    days = [-1 - int(chance() * DAYS_BACK) for _ in range(past)]
    days += [int(DAYS_AHEAD * chance() ** 2.5) for _ in range(upcoming)]
    return sorted(pack(_publication_time(chance, day), day) for day in days)


def unpack(plan: int) -> tuple[int, int]:
    """Return the seconds from the start of today to the publication, and the days from today to the event."""
    return plan >> _BITS, (plan & ((1 << _BITS) - 1)) - _MIDDLE


def pack(published: int, day: int) -> int:
    """Return the publication time and the day of an event as one number."""
    return published << _BITS | (day + _MIDDLE)


def _publication_time(chance: Chance, day: int) -> int:
    """Choose a publication time before the start of today."""
    ahead = 3 + int(120 * chance() ** 2)
    latest = min(day - ahead, -1 - int(200 * chance() ** 2) if day - ahead >= 0 else -1)
    return latest * DAY_SECONDS + int(chance() * DAY_SECONDS)


def choose_span(chance: Chance, theme: Theme, midnight: datetime, zone: str) -> tuple[Span, bool]:
    """Choose start and end of an event on a day, and whether it is an all-day event."""
    roll = chance()
    if theme.category == "Exhibitions" and roll < 0.12:
        # Exhibitions run for weeks, a few of them for most of a year.
        days = int(14 + 110 * chance() ** 2) if roll < 0.115 else 150 + int(200 * chance())
        return _span(midnight, midnight + timedelta(days=days), zone, True), True
    if roll > 0.94:
        days = 0 if roll > 0.965 else 1 + int(3 * chance())
        return _span(midnight, midnight + timedelta(days=days), zone, True), True
    minutes = pick(chance, theme.hours) * 60 + (30 if chance() < 0.3 else 0)
    start = midnight + timedelta(minutes=minutes)
    # Two or three days, from the first evening to the last afternoon.
    length = 60 * 24 * (1 + int(2 * chance())) if roll < 0.02 else 0
    return _span(start, start + timedelta(minutes=length + pick(chance, theme.lengths)), zone, False), False


@lru_cache(maxsize=1 << 17)
def _span(start: datetime, end: datetime, zone: str, all_day: bool) -> Span:
    return event_span(DateTimeInput(start, None, all_day), DateTimeInput(end, None, all_day), zone, all_day)


def start_of_day(day: datetime) -> datetime:
    return datetime.combine(day, time())
