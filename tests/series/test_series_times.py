"""Series across clock changes: local times stay, instants follow the zone, lengths are those of the local times."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller
from tests.lifecycle.processes import run_command
from tests.series.series_client import SeriesClient

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Africa/Cairo",
    "Asia/Jerusalem",
)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# Through the change, from the evening before into the morning, and at midnight, where some zones change.
SPANS = ((time(1, 30), timedelta(hours=3)), (time(22), timedelta(hours=8)), (time(0), timedelta(hours=1)))


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def find_changes(zone: str) -> list[date]:
    """Return the days of 2027 and 2028 on which the clock of a zone changes."""
    days = [date(2027, 1, 1) + timedelta(days=n) for n in range(366)]
    offsets = [datetime.combine(day, time(12), ZoneInfo(zone)).utcoffset() for day in days]
    return [day for day, before, after in zip(days[1:], offsets, offsets[1:], strict=False) if before != after]


def make_rules(day: date) -> Iterator[tuple[str, int]]:
    """Yield a rule of each class that gives a day, and how many days before it the series begins."""
    weekday, next_day = WEEKDAYS[day.weekday()], WEEKDAYS[(day.weekday() + 1) % 7]
    ordinal = (day.day - 1) // 7 + 1
    yield "FREQ=DAILY;COUNT=5", 2
    yield "FREQ=WEEKLY;COUNT=3", 7
    yield f"FREQ=WEEKLY;INTERVAL=2;BYDAY={weekday},{next_day};COUNT=4", 14
    yield f"FREQ=MONTHLY;BYMONTHDAY={day.day};COUNT=2", 0
    yield f"FREQ=MONTHLY;BYDAY={ordinal}{weekday};COUNT=2", 0
    yield f"FREQ=MONTHLY;BYDAY={weekday};BYSETPOS={ordinal};COUNT=2", 0
    yield f"FREQ=YEARLY;BYMONTH={day.month};BYMONTHDAY={day.day};COUNT=2", 0


def to_utc(local: datetime, zone: str) -> datetime:
    """Return the instant of a local time; one in a gap moves forward, of a repeated one it is the first."""
    return local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)


def parse(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.quick("Europe/Berlin", "Asia/Jerusalem")
@pytest.mark.parametrize("zone", ZONES)
def test_local_times_stay_across_clock_changes(client: SeriesClient, zone: str) -> None:
    changes = find_changes(zone)
    assert len(changes) == 2
    for number, day in enumerate(changes):
        for index, (rule, days) in enumerate(make_rules(day)):
            clock, length = SPANS[(index + number) % len(SPANS)]
            start = datetime.combine(day - timedelta(days=days), clock)
            series = client.create(
                title="Night", start_date=str(start), end_date=str(start + length), timezone=zone, rule=rule
            )
            events = client.events(series["id"])
            assert str(day) in {event["series"]["slot"][:10] for event in events}
            for event in events:
                check_times(event, clock, length, zone)


def check_times(event: dict[str, Any], clock: time, length: timedelta, zone: str) -> None:
    slot = datetime.fromisoformat(event["series"]["slot"])
    start, end = to_utc(slot, zone), to_utc(slot + length, zone)
    assert (slot.time(), event["series"]["own"]) == (clock, [])
    assert parse(event["utc_start_date"]) == start
    assert parse(event["utc_end_date"]) == max(start, end)
    assert event["start_date"] == f"{start.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}"


def test_an_edit_of_all_dates_keeps_them_their_times(client: SeriesClient) -> None:
    """The start of the edited date is in the gap, but the slots of the others are not."""
    series = client.create(
        title="Gap",
        start_date="2027-03-27 02:30:00",
        end_date="2027-03-27 04:00:00",
        timezone="Europe/Berlin",
        rule="FREQ=DAILY;COUNT=4",
    )
    before = client.events(series["id"])
    client.edit(before[1]["id"], "following", title="Still the gap")
    client.edit(before[1]["id"], "following", start_date="02:30")
    client.edit(before[1]["id"], "all", end_date="04:30")
    after = client.events(series["id"])
    assert [event["start_date"] for event in after] == [event["start_date"] for event in before]
    assert [event["start_date"][11:16] for event in after] == ["02:30", "03:30", "02:30", "02:30"]
    assert {event["end_date"][11:16] for event in after} == {"04:30"}
    assert {tuple(event["series"]["own"]) for event in after} == {()}


@pytest.mark.quick("02:30-04:00-more0", "02:30-04:00-more2")
@pytest.mark.parametrize(("start", "end", "more"), [("02:30", "04:00", {}), ("02:45", "03:15", {}),
    ("02:30", "04:00", {"end_date": "05:00"})])  # fmt: skip
def test_a_new_time_zone_keeps_the_times_that_it_skips(
    client: SeriesClient, start: str, end: str, more: dict[str, str]
) -> None:
    """The clocks of Berlin skip the times of the first date, but not those of the others."""
    times = {"start_date": f"2027-03-28 {start}:00", "end_date": f"2027-03-28 {end}:00"}
    series = client.create(title="Zone", **times, timezone="America/New_York", rule="FREQ=WEEKLY;COUNT=3")
    client.edit(client.events(series["id"])[0]["id"], "all", timezone="Europe/Berlin", **more)
    events = client.events(series["id"])
    assert [event["series"]["slot"][11:16] for event in events] == [start] * 3
    assert [event["start_date"][11:16] for event in events] == [start.replace("02", "03"), start, start]
    assert {event["end_date"][11:16] for event in events[1:]} == {more.get("end_date", end)}
    assert {(event["timezone"], *event["series"]["own"]) for event in events} == {("Europe/Berlin",)}


def test_an_end_without_a_day_is_the_next_one_after_the_start(client: SeriesClient) -> None:
    series = client.create(
        title="Midnight", start_date="2027-05-04 22:30:00", end_date="2027-05-05 00:30:00", rule="FREQ=WEEKLY;COUNT=3"
    )
    event = client.events(series["id"])[0]["id"]
    for start, end, expected in (
        ("21:00", "22:00", "2027-05-04 22:00:00"),
        ("23:00", "01:00", "2027-05-05 01:00:00"),
    ):
        client.edit(event, "all", start_date=start, end_date=end)
        assert client.events(series["id"])[0]["end_date"] == expected


def test_all_day_series_are_days(client: SeriesClient) -> None:
    series = client.create(
        title="Fair", start_date="2027-03-27", end_date="2027-03-27", all_day=True, rule="FREQ=DAILY;COUNT=3"
    )
    events = client.events(series["id"])
    assert [event["start_date"][:10] for event in events] == ["2027-03-27", "2027-03-28", "2027-03-29"]
    assert {event["all_day"] for event in events} == {True}


def test_new_time_zone_data_moves_instants_and_not_clocks(start_single_site: StartApp) -> None:
    app = start_single_site()
    client = SeriesClient(app.caller("editor"))
    series = client.create(title="Old tzdata")
    before = client.events(series["id"])
    app.sql(
        "UPDATE events SET start_utc = start_utc - interval '1 hour', end_utc = end_utc - interval '1 hour' "
        "WHERE series_id = $1",
        series["id"],
    )
    result = run_command(app.database_url, "timezone", "refresh")
    assert result.exit_code == 0, result.output
    after = client.events(series["id"])
    names = ("start_date", "end_date", "utc_start_date", "utc_end_date", "series")
    assert [[event[name] for name in names] for event in after] == [
        [event[name] for name in names] for event in before
    ]
    client.edit(before[0]["id"], "all", start_date="20:00", end_date="21:30")
    assert {event["start_date"][11:] for event in client.events(series["id"])} == {"20:00:00"}
