"""Slots in zones with changes of the local time: one per day or week, and windows without gap or overlap."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from kalends.core.times import local_of
from kalends.follow.rules.slots import DAY, Rhythm, find_next, find_slot
from tests.soak import scaled

ZONES = (
    "Australia/Lord_Howe", "America/Santiago", "Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Beirut"
)  # fmt: skip
START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = scaled(370, 3 * 366)
HOURS = range(0, 24, scaled(3, 1))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", ["daily", "weekly"])
def test_one_slot_per_day_or_week_and_windows_that_touch(zone: str, name: str) -> None:
    for hour in HOURS:
        rhythm = Rhythm(name, 4, hour)
        slot = find_slot(rhythm, START, zone)
        assert slot.begin <= START < slot.end
        days = [local_of(slot.begin, zone).date()]
        while slot.end < START + DAYS * DAY:
            following = find_slot(rhythm, slot.end, zone)
            assert following.begin == slot.end
            assert find_slot(rhythm, following.begin - timedelta(seconds=1), zone) == slot
            assert find_next(rhythm, slot.begin, zone) == slot.end
            slot = following
            days.append(local_of(slot.begin, zone).date())
        step = 1 if name == "daily" else 7
        assert {later - earlier for earlier, later in pairwise(days)} == {timedelta(days=step)}
        assert name == "daily" or {day.isoweekday() for day in days} == {4}


def test_a_skipped_hour_moves_forward_and_a_repeated_one_counts_once() -> None:
    rhythm = Rhythm("daily", 1, 2)
    assert find_next(rhythm, datetime(2026, 3, 28, 12, tzinfo=UTC), "Europe/Berlin") == datetime(
        2026, 3, 29, 1, tzinfo=UTC
    )
    first = find_next(rhythm, datetime(2026, 10, 24, 12, tzinfo=UTC), "Europe/Berlin")
    assert first == datetime(2026, 10, 25, 0, tzinfo=UTC)
    assert find_next(rhythm, first, "Europe/Berlin") == datetime(2026, 10, 26, 1, tzinfo=UTC)


def test_a_day_that_a_zone_skips_has_no_slot() -> None:
    """Apia went from December 29 to 31, 2011."""
    rhythm = Rhythm("daily", 1, 9)
    before = datetime(2011, 12, 29, 12, tzinfo=UTC)
    slots = [find_next(rhythm, before, "Pacific/Apia")]
    for _ in range(3):
        slots.append(find_next(rhythm, slots[-1], "Pacific/Apia"))
    assert [local_of(slot, "Pacific/Apia").day for slot in slots] == [29, 31, 1, 2]
