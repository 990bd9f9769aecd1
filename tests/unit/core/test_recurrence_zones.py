"""Dates of rules keep their local time across changes to and from summer time."""

from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from kalends.core.recurrence import expand, read_rule
from kalends.core.times import DateTimeInput, LocalTime, find_change, local_of, offset_of, resolve

ZONES = [
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Santiago",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Australia/Lord_Howe",
]
# The years of the tests; two zones have ceased to change their offsets. Sao Paulo did so at midnight.
YEARS = {"America/Sao_Paulo": 2017, "Africa/Casablanca": 2025}
RULES = [
    "FREQ=DAILY",
    "FREQ=DAILY;INTERVAL=3",
    "FREQ=DAILY;BYDAY=FR,SA,SU,MO",
    "FREQ=WEEKLY;BYDAY=TH,SU",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU,MO",
    "FREQ=WEEKLY;BYDAY=SA,SU;BYSETPOS=-1",
    "FREQ=MONTHLY;BYDAY=-1SU",
    "FREQ=MONTHLY;BYDAY=SU,1FR",
    "FREQ=MONTHLY;BYMONTHDAY=1,-1",
    "FREQ=MONTHLY;BYDAY=SU;BYSETPOS=-1",
    "FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU",
    "FREQ=YEARLY;BYDAY=SU",
]
HOUR = timedelta(hours=1)


@cache
def find_changes(zone: str) -> list[tuple[datetime, timedelta]]:
    """Return the changes of the offset in a year: the instant and the difference."""
    begin = datetime(YEARS.get(zone, 2027), 1, 1, tzinfo=UTC)
    days = [begin + timedelta(days=n) for n in range(366)]
    changes = [
        find_change(lambda utc: offset_of(utc, zone), day, day + timedelta(days=1))
        for day in days
        if offset_of(day, zone) != offset_of(day + timedelta(days=1), zone)
    ]
    return [(change, offset_of(change, zone) - offset_of(change - HOUR, zone)) for change in changes]


def settle(wall: datetime, zone: str) -> LocalTime:
    return resolve(DateTimeInput(wall, None, is_date_only=False), zone)


@pytest.mark.parametrize("zone", ZONES)
def test_zones_change_in_both_directions(zone: str) -> None:
    assert {difference > timedelta(0) for _, difference in find_changes(zone)} == {True, False}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", RULES)
def test_local_time_is_kept_across_changes(text: str, zone: str) -> None:
    for change, _ in find_changes(zone):
        start = local_of(change, zone).replace(hour=19, minute=30, second=0) - timedelta(days=40)
        dates = [*expand(read_rule(text, zone), start, start + timedelta(days=80))]
        settled = [settle(date, zone) for date in dates]
        assert [moment.wall for moment in settled] == dates
        if "BYMONTH=" not in text:  # Other rules have dates before and after the change.
            both = {offset_of(change - HOUR, zone), offset_of(change, zone)}
            assert {offset_of(moment.utc, zone) for moment in settled} == both


@pytest.mark.parametrize("zone", ZONES)
def test_skipped_time_moves_forward_and_repeated_time_is_the_first(zone: str) -> None:
    for change, difference in find_changes(zone):
        # The middle of what the change skips or repeats.
        wall = local_of(change, zone) + (-abs(difference) / 2 if difference > timedelta(0) else abs(difference) / 2)
        start = wall - timedelta(days=7)
        dates = [*expand(read_rule("FREQ=DAILY", zone), start, wall + timedelta(days=7))]
        moved = [settle(date, zone).wall - date for date in dates]
        assert moved == [max(difference, timedelta(0)) if date == wall else timedelta(0) for date in dates]
        assert settle(wall, zone).utc < change if difference < timedelta(0) else settle(wall, zone).utc >= change
        assert wall in dates
