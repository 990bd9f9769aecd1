"""Slows guessing down: so many wrong tries at once, then one in a while. The time is an argument."""

from collections import OrderedDict
from datetime import datetime


class Throttle:
    """A bucket per key. The oldest keys are forgotten, so that memory stays bounded."""

    def __init__(self, burst: int, seconds: float, most_keys: int = 10_000) -> None:
        self._burst = burst
        self._seconds = seconds
        self._most_keys = most_keys
        self._spent: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def wait(self, key: object, now: datetime) -> int:
        """Seconds until another try is allowed; 0: now."""
        spent = self._now_spent(key, now)
        return 0 if spent < self._burst else int((spent - self._burst + 1) * self._seconds) + 1

    def note(self, key: object, now: datetime) -> None:
        """One more wrong try."""
        self._spent[key] = (self._now_spent(key, now) + 1, now.timestamp())
        self._spent.move_to_end(key)
        while len(self._spent) > self._most_keys:
            self._spent.popitem(last=False)

    def _now_spent(self, key: object, now: datetime) -> float:
        spent, at = self._spent.get(key, (0.0, 0.0))
        return max(0.0, spent - (now.timestamp() - at) / self._seconds)
