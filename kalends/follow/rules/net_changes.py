"""What has changed about an event between two states, as its followers see it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED, SOLD_OUT

# Kinds of changes, in the order in which an email names them.
NEW_TIME, NEW_PLACE, CONFIRMED = "new_time", "new_place", "confirmed"
KINDS: Final = (CANCELLED, POSTPONED, MOVED_ONLINE, CONFIRMED, NEW_TIME, NEW_PLACE)
TIME_COLUMNS: Final = ("start_local", "end_local", "start_fold", "end_fold", "timezone", "all_day")


@dataclass(frozen=True, slots=True)
class EventState:
    """The facts about an event that followers hear about when they change."""

    start: datetime  # local
    end: datetime
    folds: tuple[int, int]
    timezone: str
    all_day: bool
    status: str
    venue_ids: tuple[int, ...]
    is_listed: bool
    is_protected: bool

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> "EventState":
        """Read columns as the change log stores them."""
        status = columns["event_status"]
        return cls(
            start=datetime.fromisoformat(columns["start_local"]),
            end=datetime.fromisoformat(columns["end_local"]),
            folds=(columns["start_fold"], columns["end_fold"]),
            timezone=columns["timezone"],
            all_day=columns["all_day"],
            status=SCHEDULED if status == SOLD_OUT else status,
            venue_ids=tuple(columns["venue_ids"]),
            is_listed=columns["status"] == "publish" and not columns["hide_from_listings"],
            is_protected=columns["password_hash"] is not None,
        )

    def to_columns(self) -> dict[str, Any]:
        """Return columns that `from_columns` reads. A password's hash is not among them."""
        return {
            "start_local": self.start.isoformat(sep=" "),
            "end_local": self.end.isoformat(sep=" "),
            "start_fold": self.folds[0],
            "end_fold": self.folds[1],
            "timezone": self.timezone,
            "all_day": self.all_day,
            "event_status": self.status,
            "venue_ids": list(self.venue_ids),
            "status": "publish" if self.is_listed else "trash",
            "hide_from_listings": False,
            "password_hash": "" if self.is_protected else None,
        }

    @property
    def times(self) -> tuple[object, ...]:
        return self.start, self.end, self.folds, self.timezone, self.all_day


def rewind(columns: Mapping[str, Any], befores: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a record's columns before some changes, whose former values come newest first."""
    former = dict(columns)
    for before in befores:
        former.update(before)
    return former


def find_kinds(then: EventState, now: EventState) -> tuple[str, ...]:
    """Return the kinds of changes between two states; of a protected event, only those that are public."""
    found: set[str] = set()
    if then.times != now.times:
        found.add(NEW_TIME)
    if not (then.is_protected or now.is_protected):
        if then.status != now.status:
            found.add(CONFIRMED if now.status == SCHEDULED else now.status)
        # An online event needs no place.
        if then.venue_ids != now.venue_ids and now.status != MOVED_ONLINE:
            found.add(NEW_PLACE)
    return tuple(kind for kind in KINDS if kind in found)


def make_group_key(
    series_id: int | None, event_id: int, then: EventState, now: EventState, kinds: tuple[str, ...]
) -> tuple[object, ...]:
    """Return a key that equal changes of one series share."""
    if series_id is None:
        return (event_id,)
    shift = now.start - then.start, now.end - then.end
    times = now.start.time(), now.timezone, then.all_day, now.all_day
    return series_id, kinds, shift, times, now.status, now.venue_ids


def group_changes[T](entries: Sequence[tuple[tuple[object, ...], T]]) -> list[list[T]]:
    """Group entries by key, in the order of their first entries."""
    groups: dict[tuple[object, ...], list[T]] = {}
    for key, entry in entries:
        groups.setdefault(key, []).append(entry)
    return list(groups.values())
