"""When followers of an event hear from us."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED
from kalends.follow.rules.event_alerts import (
    ALERT_DELAY,
    ALERT_INTERVAL,
    WITHDRAWN,
    Decision,
    KnownState,
    decide,
    find_alert_kinds,
    find_reminder,
    is_over,
)
from kalends.follow.rules.net_changes import CONFIRMED, NEW_PLACE, NEW_TIME, EventState
from tests.soak import scaled

ZONE = "Europe/Berlin"
START = datetime(2027, 6, 10, 20)
STATE = EventState(START, START + timedelta(hours=2), (0, 0), ZONE, False, SCHEDULED, (1,), True, False)
LONG_BEFORE = datetime(2027, 6, 1, 9, tzinfo=UTC)
REMINDER = datetime(2027, 6, 9, 15, tzinfo=UTC)  # 17:00 in Berlin
SEQUENCES = scaled(100, 1_000)


def known_from(state: EventState = STATE, *, is_reminded: bool = False) -> KnownState:
    return KnownState(state, is_reminded)


def test_nothing_is_due_before_the_reminder() -> None:
    assert decide(known_from(), STATE, LONG_BEFORE) == Decision(known_from(), REMINDER)


def test_reminder_is_sent_once() -> None:
    decision = decide(known_from(), STATE, REMINDER)
    assert (decision.is_reminder, decision.kinds, decision.next_at) == (True, (), None)
    assert not decide(decision.known, STATE, REMINDER + timedelta(hours=1)).sends


@pytest.mark.parametrize(
    "state",
    [replace(STATE, status=CANCELLED), replace(STATE, status=POSTPONED), replace(STATE, is_listed=False)],
    ids=["cancelled", "postponed", "withdrawn"],
)
def test_no_reminder_of_what_does_not_take_place(state: EventState) -> None:
    assert find_reminder(state) is None
    assert decide(known_from(state), state, REMINDER) == Decision(known_from(state))


def test_no_reminder_after_the_start() -> None:
    assert not decide(known_from(), STATE, datetime(2027, 6, 10, 18, tzinfo=UTC)).sends


def test_a_follow_after_the_reminder_gets_none() -> None:
    known = KnownState.first(STATE, REMINDER + timedelta(minutes=1))
    assert not decide(known, STATE, REMINDER + timedelta(minutes=2)).sends


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"start": START + timedelta(hours=1)}, (NEW_TIME,)),
        ({"venue_ids": (2,)}, (NEW_PLACE,)),
        ({"status": CANCELLED}, (CANCELLED,)),
        ({"status": MOVED_ONLINE, "venue_ids": ()}, (MOVED_ONLINE,)),
        ({"is_listed": False}, (WITHDRAWN,)),
        ({"is_listed": False, "start": START + timedelta(hours=1)}, (WITHDRAWN,)),
        ({"is_protected": True}, ()),
    ],
)
def test_changes_make_an_alert(changes: dict[str, object], kinds: tuple[str, ...]) -> None:
    state = replace(STATE, **changes)
    decision = decide(known_from(), state, LONG_BEFORE)
    assert decision.kinds == kinds
    if kinds:
        assert decision.known.state == state


def test_deleted_event_is_withdrawn() -> None:
    decision = decide(known_from(), None, LONG_BEFORE)
    assert (decision.kinds, decision.next_at, decision.known.state.is_listed) == ((WITHDRAWN,), None, False)
    assert not decide(decision.known, None, LONG_BEFORE).sends


def test_event_that_returns_takes_place_after_all() -> None:
    withdrawn = known_from(replace(STATE, is_listed=False))
    assert decide(withdrawn, STATE, LONG_BEFORE).kinds == (CONFIRMED,)
    moved = replace(STATE, start=START + timedelta(hours=1))
    assert decide(withdrawn, moved, LONG_BEFORE).kinds == (CONFIRMED, NEW_TIME)


def test_alert_on_the_last_day_replaces_the_reminder() -> None:
    moved = replace(STATE, start=START + timedelta(hours=1))
    decision = decide(known_from(), moved, REMINDER)
    assert (decision.kinds, decision.is_reminder, decision.next_at) == ((NEW_TIME,), False, None)
    assert not decide(decision.known, moved, REMINDER + timedelta(hours=1)).sends


def test_past_event_is_left_alone() -> None:
    assert not decide(known_from(), replace(STATE, status=CANCELLED), datetime(2027, 6, 12, tzinfo=UTC)).sends


def test_columns_round_trip() -> None:
    for known in (known_from(), known_from(replace(STATE, is_listed=False, is_protected=True), is_reminded=True)):
        assert KnownState.from_columns(known.to_columns()) == known


@dataclass
class Follow:
    """One person and one event: what the planner and the sender store, and what was sent when."""

    known: KnownState
    next_at: datetime | None
    alerted_at: datetime | None = None
    alerts: list[datetime] = field(default_factory=list[datetime])
    reminders: list[EventState] = field(default_factory=list[EventState])

    def plan(self, now: datetime) -> None:
        """Note a change, as `storage.plan_alerts` does."""
        due = now + ALERT_DELAY
        if self.alerted_at is not None:
            due = max(due, self.alerted_at + ALERT_INTERVAL)
        self.next_at = due if self.next_at is None else min(self.next_at, due)

    def send(self, state: EventState | None, now: datetime) -> None:
        decision = decide(self.known, state, now)
        if decision.kinds and self.alerted_at is not None and now < self.alerted_at + ALERT_INTERVAL:
            self.next_at = self.alerted_at + ALERT_INTERVAL
            return
        if decision.kinds:
            present = state or replace(self.known.state, is_listed=False)
            assert find_alert_kinds(self.known.state, present), "an alert without a change"
            self.alerted_at = now
            self.alerts.append(now)
        elif decision.is_reminder:
            assert state is not None
            assert state.is_listed
            assert state.status not in (CANCELLED, POSTPONED)
            self.reminders.append(state)
        self.known, self.next_at = decision.known, decision.next_at


def edit(state: EventState | None, rng: Random) -> EventState | None:
    if state is None:
        return STATE if rng.random() < 0.5 else None
    if rng.random() < 0.05:
        return None
    shift = timedelta(hours=rng.choice([-30, -3, 1, 5, 26]))
    changes: dict[str, object] = rng.choice(
        [
            {"start": state.start + shift, "end": state.end + shift},
            {"status": rng.choice([SCHEDULED, CANCELLED, POSTPONED, MOVED_ONLINE])},
            {"venue_ids": rng.choice([(1,), (2,), ()])},
            {"is_listed": not state.is_listed},
            {},
        ]
    )
    return replace(state, **changes)


def list_moments(rng: Random) -> Iterator[datetime]:
    """Return times of edits, often close to each other, around the last two days before the event."""
    now = datetime(2027, 6, 8, 9, tzinfo=UTC)
    for _ in range(rng.randrange(2, 15)):
        now += timedelta(minutes=rng.choice([1, 4, 9, 30, 70, 300, 900]))
        yield now


@pytest.mark.parametrize("seed", range(5))
def test_random_edits(seed: int) -> None:
    rng = Random(seed)
    sent = 0
    for _ in range(SEQUENCES):
        state: EventState | None = STATE
        began = datetime(2027, 6, 8, 8, tzinfo=UTC)
        first = KnownState.first(STATE, began)
        follow = Follow(first, decide(first, STATE, began).next_at)
        now = began
        for moment in list_moments(rng):
            while follow.next_at is not None and follow.next_at <= moment:
                now = max(now, follow.next_at)
                follow.send(state, now)
            now, state = moment, edit(state, rng)
            follow.plan(moment)
        while follow.next_at is not None:
            now = max(now, follow.next_at)
            follow.send(state, now)
        present = state or replace(follow.known.state, is_listed=False)
        is_known = not find_alert_kinds(follow.known.state, present)
        assert is_known or (is_over(follow.known.state, now) and is_over(present, now)), "a missing alert"
        gaps = [later - earlier for earlier, later in zip(follow.alerts, follow.alerts[1:], strict=False)]
        assert all(gap >= ALERT_INTERVAL for gap in gaps)
        assert len({each.start for each in follow.reminders}) == len(follow.reminders)
        sent += len(follow.alerts)
    assert sent > SEQUENCES
