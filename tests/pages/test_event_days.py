"""On which day, and under which month, an event stands."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from kalends.rendering.cards import last_day
from kalends.website.models.grid import Entry, find_month_bounds, make_agenda, make_weeks
from tests.api.running_app import RunningApp
from tests.pages.page_client import add_event, get_page

DAY = timedelta(days=1)


def build_agenda(month: date, today: date, *entries: tuple[str, date, date]) -> list[tuple[int, list[str]]]:
    first, last = find_month_bounds(month, 1)
    long = [Entry(title, "", "", starts, ends, 0, False) for title, starts, ends in entries]
    weeks = make_weeks(first, last, [{}] * len(long), long, today=today, month=month, max_entries=3)
    return [(day.date.day, [entry.title for entry in day.starting]) for day in make_agenda(weeks, today)]


def test_agenda_lists_running_events_from_today() -> None:
    march = date(2031, 3, 1)
    fair = ("Fair", date(2031, 2, 20), date(2031, 3, 20))
    tour = ("Tour", date(2031, 3, 10), date(2031, 3, 25))
    over = ("Over", date(2031, 3, 2), date(2031, 3, 4))
    before = ("Before", date(2031, 2, 24), date(2031, 2, 26))
    assert build_agenda(march, date(2031, 3, 12), fair, tour, over, before) == [(12, ["Fair", "Tour"])]
    assert build_agenda(march, date(2031, 3, 8), fair, tour) == [(8, ["Fair"]), (10, ["Tour"])]
    assert build_agenda(march, date(2031, 5, 1), fair, over, before) == [(1, ["Fair"]), (2, ["Over"])]


@pytest.mark.quick("05:59-1", "06:01-2")
@pytest.mark.parametrize(("end", "days"), [("05:59", 1), ("06:00", 1), ("06:01", 2)])
def test_night_event_ending_by_six_is_one_day(app: RunningApp, end: str, days: int) -> None:
    night = datetime(2031, 3, 14, 22), datetime.fromisoformat(f"2031-03-15 {end}")
    assert (last_day(*night, all_day=False) - night[0].date()).days == days - 1
    add_event(app, "Night", "2031-03-14 22:00", f"2031-03-15 {end}")
    assert ("Night" in get_page(app, "/events/day/2031-03-15/")) is (days == 2)
    assert "Night" in get_page(app, "/events/day/2031-03-14/")


def test_dated_list_has_ordered_days(app: RunningApp) -> None:
    today = datetime.now(UTC).date()
    add_event(app, "Runs", str(today - 60 * DAY), str(today + 60 * DAY), all_day=True)
    add_event(app, "Later", str(today - 30 * DAY), str(today - 29 * DAY), all_day=True)
    page = get_page(app, "/events/list/", f"overlaps_from={today - 90 * DAY}")
    assert re.findall(r">(Runs|Later)</a>", page) == ["Runs", "Later"]
    days = [f"{day:%A, %B} {day.day}, {day.year}" for day in (today - 60 * DAY, today - 30 * DAY)]
    assert re.findall(r"<h2>(\w+, \w+ \d+, \d+)</h2>", page) == days
