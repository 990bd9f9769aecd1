"""Limits of the times of a series. Within them, computations with its dates never leave the years of the calendar."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from kalends.core import times
from kalends.core.errors import InvalidValue

FIRST_YEAR: Final = 2  # No time zone moves a date before the year 1.
# Dates are computed for a century after the last one that exists.
LAST_YEAR: Final = times.LAST_YEAR - 200
MAX_DAYS: Final = 3660
# Slots that are further apart are looked up separately.
MAX_GAP: Final = timedelta(days=400)


def check_slot(slot: datetime) -> datetime:
    """Return a slot; raise unless it is within the years of series."""
    if not FIRST_YEAR <= slot.year <= LAST_YEAR:
        raise make_year_error()
    return slot


def check_length(length: timedelta) -> None:
    """Raise if the dates of a series last too long."""
    if length > timedelta(days=MAX_DAYS):
        raise InvalidValue("a date of a series can last at most {days} days.", days=MAX_DAYS)


def make_year_error() -> InvalidValue:
    return InvalidValue("must be a date between the years {first} and {last}.", first=FIRST_YEAR, last=LAST_YEAR)


def group_slots(slots: Iterable[datetime]) -> Iterator[Sequence[datetime]]:
    """Yield slots in order, those together that are close to each other."""
    ordered = sorted(slots)
    ends = [index for index, (first, second) in enumerate(pairwise(ordered), 1) if second - first > MAX_GAP]
    for begin, end in pairwise([0, *ends, len(ordered)]):
        yield ordered[begin:end]
