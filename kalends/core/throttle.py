"""Slows guessing down: so many wrong tries at once, then one in a while. The time is an argument."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from math import ceil


@dataclass(frozen=True, slots=True)
class Limit:
    """So many wrong tries are free; one is forgiven every so many seconds."""

    burst: int
    seconds: float


def forgiven(limit: Limit, count: float, at: datetime, now: datetime) -> float:
    """What is left of a count that was taken some time ago. A clock that was set back adds nothing."""
    elapsed = max(0.0, (now - at).total_seconds())
    return max(0.0, count - elapsed / limit.seconds)


def seconds_to_wait(limit: Limit, count: float, at: datetime, now: datetime) -> int:
    """Until there is room for one more whole try; 0: now."""
    too_many = forgiven(limit, count, at, now) - (limit.burst - 1)
    return ceil(round(too_many * limit.seconds, 3)) if too_many > 0 else 0


class Throttle:
    """Counts by key in memory. The oldest keys are forgotten, so that memory stays bounded."""

    def __init__(self, limit: Limit, most_keys: int = 10_000) -> None:
        self._limit = limit
        self._most_keys = most_keys
        self._counts: OrderedDict[object, tuple[float, datetime]] = OrderedDict()

    def wait(self, key: object, now: datetime) -> int:
        held = self._counts.get(key)
        return seconds_to_wait(self._limit, *held, now) if held else 0

    def note(self, key: object, now: datetime) -> None:
        """One more wrong try."""
        held = self._counts.get(key)
        self._counts[key] = (forgiven(self._limit, *held, now) + 1 if held else 1.0, now)
        self._counts.move_to_end(key)
        while len(self._counts) > self._most_keys:
            self._counts.popitem(last=False)
