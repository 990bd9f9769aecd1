"""The values of the model of a series: its rules, its dates and edits of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

FAR = datetime(2040, 1, 1)
# The rule of a segment for an added date alone.
SINGLE = "FREQ=DAILY;COUNT=1"


class Refused(Exception):
    """The edit is refused with this status and code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(status, code)
        self.status, self.code = status, code


def settle(start: datetime, end: datetime, zone: str) -> tuple[datetime, datetime]:
    """Return the local times of an event. A time that a clock change skips moves forward, an end up to its start."""
    begin, finish = to_utc(start, zone), to_utc(end, zone)
    return _to_local(begin, zone), _to_local(max(begin, finish), zone)


def to_utc(local: datetime, zone: str) -> datetime:
    """Return the instant of a local time; of one that comes twice it is the first."""
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def _to_local(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


@lru_cache(maxsize=10_000)
def _expand(rule: str, start: datetime) -> Any:
    """Return the dates of a rule, which dateutil computes once and keeps."""
    return rrulestr(f"{rule}T235959" if "UNTIL" in rule else rule, dtstart=start, cache=True)


@dataclass(frozen=True)
class Segment:
    """The dates of a rule between two local times, moved by a difference."""

    rule: str
    start: datetime
    length: timedelta
    zone: str
    since: datetime = datetime.min
    before: datetime = datetime.max
    moved: timedelta = timedelta()

    def slots(self, until: datetime = FAR) -> Iterator[datetime]:
        dates = _expand(self.rule, self.start)
        for date in takewhile(lambda entry: entry < self.before and entry + self.moved <= until, dates):
            if date >= self.since:
                yield date + self.moved

    def times_at(self, slot: datetime) -> tuple[datetime, datetime, str]:
        """Return start, end and zone of the date at a slot."""
        return *settle(slot, slot + self.length, self.zone), self.zone

    def has_ended(self, slot: datetime, now: datetime) -> bool:
        _, end, zone = self.times_at(slot)
        return to_utc(end, zone) < now

    def is_between(self, slot: datetime, begin: datetime, until: datetime) -> bool:
        """Return whether a slot is after an instant and not after another one."""
        return begin < slot.replace(tzinfo=ZoneInfo(self.zone)) <= until

    @property
    def is_single(self) -> bool:
        return self.rule == SINGLE

    @property
    def first(self) -> datetime:
        return next(self.slots(datetime.max), datetime.max)

    def cut(self, slot: datetime) -> list["Segment"]:
        """Return the dates before a slot and those from it on, without empty segments."""
        border = slot - self.moved
        halves = replace(self, before=min(self.before, border)), replace(self, since=max(self.since, border))
        return [half for half in halves if half.first < datetime.max]


@dataclass
class Occurrence:
    id: int
    slot: datetime
    start: datetime
    end: datetime
    zone: str
    fields: dict[str, Any]
    own: set[str] = field(default_factory=set)
    trashed: bool = False

    @property
    def times(self) -> tuple[datetime, datetime, str]:
        return self.start, self.end, self.zone

    def instant(self) -> datetime:
        return to_utc(self.start, self.zone)

    def copy(self) -> "Occurrence":
        return replace(self, fields=dict(self.fields), own=set(self.own))

    def is_past(self, now: datetime) -> bool:
        return to_utc(self.end, self.zone) < now


@dataclass(frozen=True)
class ScopeEdit:
    """An edit of all dates (`since` is None) or from a slot on."""

    since: datetime | None
    reference: datetime = datetime.min  # the slot of the date that new times are given for
    fields: dict[str, Any] = field(default_factory=dict)
    time_of_day: datetime | None = None
    length: timedelta | None = None
    zone: str | None = None
    rule: str | None = None
    replaces: bool = False
    past: bool = False  # whether dates that have taken place get the new content

    @property
    def changes_times(self) -> bool:
        return self.time_of_day is not None or self.zone is not None or self.rule is not None
