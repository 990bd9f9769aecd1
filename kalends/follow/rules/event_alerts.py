"""When followers of an event hear from us: an alert after a change, and a reminder on the day before."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any, Final

from kalends.calendar.rules.record_types import CANCELLED, POSTPONED
from kalends.core.times import utc_of
from kalends.follow.rules.net_changes import CONFIRMED, EventState, find_kinds
from kalends.follow.rules.slots import DAY

WITHDRAWN: Final = "withdrawn"
ALERT_DELAY: Final = timedelta(minutes=10)  # after a change, so that several changes become one alert
ALERT_INTERVAL: Final = timedelta(hours=1)  # between two alerts about an event to a person
REMINDER_TIME: Final = time(17)  # on the day before, in the event's time zone


@dataclass(frozen=True, slots=True)
class KnownState:
    """What a person knows about an event. It has no title: after a withdrawal, nothing may name the event."""

    state: EventState
    is_reminded: bool  # nobody is reminded twice of the same start

    @classmethod
    def first(cls, state: EventState, now: datetime) -> "KnownState":
        """Return what a person knows who sees the event now."""
        reminder_at = find_reminder(state)
        return cls(state, is_reminded=reminder_at is not None and reminder_at <= now)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> "KnownState":
        return cls(EventState.from_columns(columns), columns["is_reminded"])

    def to_columns(self) -> dict[str, Any]:
        return {**self.state.to_columns(), "is_reminded": self.is_reminded}


@dataclass(frozen=True, slots=True)
class Decision:
    """What to send now, when to look again without a change, and what the person knows then."""

    known: KnownState
    next_at: datetime | None = None
    kinds: tuple[str, ...] = ()  # of changes; they make an alert
    is_reminder: bool = False

    @property
    def sends(self) -> bool:
        return bool(self.kinds) or self.is_reminder


def decide(known: KnownState, current: EventState | None, now: datetime) -> Decision:
    """Compare what a person knows with the present state, which is None after a deletion."""
    state = current if current is not None else replace(known.state, is_listed=False)
    if is_over(known.state, now) and is_over(state, now):
        return Decision(known)
    if kinds := find_alert_kinds(known.state, state):
        fresh = KnownState.first(state, now)
        return Decision(fresh, None if fresh.is_reminded else find_reminder(state), kinds)
    reminder_at = find_reminder(state)
    if reminder_at is None or known.is_reminded or now >= utc_of(state.start, state.timezone, state.folds[0]):
        return Decision(known)
    if now < reminder_at:
        return Decision(known, reminder_at)
    return Decision(replace(known, is_reminded=True), is_reminder=True)


def find_alert_kinds(then: EventState, now: EventState) -> tuple[str, ...]:
    if then.is_listed and not now.is_listed:
        return (WITHDRAWN,)
    if not now.is_listed:
        return ()
    kinds = find_kinds(then, now)
    return kinds if then.is_listed else (CONFIRMED, *[kind for kind in kinds if kind != CONFIRMED])


def find_reminder(state: EventState) -> datetime | None:
    """Return when to remind people; None for events that do not take place as announced."""
    if not state.is_listed or state.status in (CANCELLED, POSTPONED):
        return None
    return utc_of(datetime.combine(state.start.date() - DAY, REMINDER_TIME), state.timezone)


def is_over(state: EventState, now: datetime) -> bool:
    return utc_of(state.end, state.timezone, state.folds[1]) <= now
