"""Net changes between two states of an event."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from kalends.follow.rules.net_changes import (
    CONFIRMED,
    NEW_TIME,
    EventState,
    find_kinds,
    group_changes,
    make_group_key,
    rewind,
)

COLUMNS: dict[str, Any] = {
    "status": "publish", "hide_from_listings": False, "password_hash": None, "event_status": "scheduled",
    "start_local": "2031-05-05T19:00:00", "end_local": "2031-05-05T21:00:00", "start_fold": 0, "end_fold": 0,
    "timezone": "Europe/London", "all_day": False, "venue_ids": [3],
}  # fmt: skip
STATE = EventState.from_columns(COLUMNS)


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        ({}, ()),
        ({"start": datetime(2031, 5, 6, 19)}, ("new_time",)),
        ({"timezone": "Europe/Paris"}, ("new_time",)),
        ({"all_day": True}, ("new_time",)),
        ({"venue_ids": (4,)}, ("new_place",)),
        ({"status": "cancelled", "venue_ids": (4,)}, ("cancelled", "new_place")),
        ({"status": "moved_online", "venue_ids": ()}, ("moved_online",)),
        ({"status": "postponed", "end": datetime(2031, 5, 5, 22)}, ("postponed", "new_time")),
        ({"status": "cancelled", "venue_ids": (), "is_protected": True}, ()),
        ({"start": datetime(2031, 5, 6, 19), "is_protected": True}, ("new_time",)),
    ],
)
def test_kinds_of_changes(changed: dict[str, Any], kinds: tuple[str, ...]) -> None:
    assert find_kinds(STATE, replace(STATE, **changed)) == kinds


def test_an_event_can_take_place_after_all() -> None:
    assert find_kinds(replace(STATE, status="cancelled"), STATE) == ("confirmed",)


def test_sold_out_counts_as_scheduled() -> None:
    assert EventState.from_columns({**COLUMNS, "event_status": "sold_out"}) == STATE


def test_former_values_are_applied_newest_first() -> None:
    edits: list[dict[str, Any]] = [
        {"start_local": "2031-05-07T19:00:00"},
        {"start_local": "2031-05-06T19:00:00", "all_day": True},
    ]
    former = rewind(COLUMNS, edits)
    assert (former["start_local"], former["all_day"]) == ("2031-05-06T19:00:00", True)
    assert rewind(COLUMNS, [{"status": "draft"}, {"status": "publish"}]) == COLUMNS


def test_equal_changes_of_a_series_share_a_key() -> None:
    def move(days: int, hours: int, series_id: int | None = 7, *kinds: str) -> tuple[object, ...]:
        then = replace(STATE, start=STATE.start + days * timedelta(days=1), end=STATE.end + days * timedelta(days=1))
        shift = timedelta(hours=hours)
        now = replace(then, start=then.start + shift, end=then.end + shift)
        return make_group_key(series_id, 10 + days, then, now, (NEW_TIME, *kinds))

    assert move(0, 1) == move(7, 1) != move(0, 2)
    assert move(0, 1) != move(7, 1, 7, CONFIRMED)
    assert move(0, 1, None) != move(7, 1, None)
    assert group_changes([(move(0, 1), "a"), (move(0, 2), "b"), (move(7, 1), "c")]) == [["a", "c"], ["b"]]
