"""The grid of a month, as a function of rows and entries."""

from datetime import date, datetime
from typing import Any

import pytest

from kalends.rendering.cards import Badge
from kalends.rendering.page_urls import UrlBuilder
from kalends.website.models.grid import (
    Entry,
    Week,
    find_month_bounds,
    find_week_start,
    make_agenda,
    make_entry,
    make_weeks,
)
from tests.unit.website.records import locale

MARCH = date(2031, 3, 1)


def entry(title: str, first: int, last: int) -> Entry:
    return Entry(title, "", "", date(2031, 3, first), date(2031, 3, last), 0, False)


def weeks_of(*entries: Entry, today: int = 1, max_entries: int = 3, **of_day: int) -> list[Week]:
    """Return the weeks of March 2031, which begins on a Saturday. `of_day` has totals by title."""
    first, last = find_month_bounds(MARCH, 1)
    rows = [{"of_day": of_day.get(entry.title, 1)} for entry in entries]
    return make_weeks(
        first, last, rows, list(entries), today=date(2031, 3, today), month=MARCH, max_entries=max_entries
    )


@pytest.mark.parametrize(
    ("first_weekday", "first", "last"),
    [
        (1, date(2031, 2, 24), date(2031, 4, 6)),
        (6, date(2031, 3, 1), date(2031, 4, 4)),
        (7, date(2031, 2, 23), date(2031, 4, 5)),
    ],
)
def test_month_bounds_are_whole_weeks(first_weekday: int, first: date, last: date) -> None:
    assert find_month_bounds(MARCH, first_weekday) == (first, last)
    assert find_week_start(first, first_weekday) == first


def test_days_outside_the_month_and_today_are_marked() -> None:
    days = [day for week in weeks_of(today=14) for day in week.days]
    assert [day.date for day in days if day.is_today] == [date(2031, 3, 14)]
    assert {day.date.month for day in days if not day.is_outside} == {3}
    assert {day.date.month for day in days if day.is_outside} == {2, 4}


def test_day_shows_at_most_the_maximum_and_counts_the_rest() -> None:
    weeks = weeks_of(entry("a", 4, 4), entry("b", 4, 4), max_entries=1, a=7, b=7)
    day = weeks[1].days[1]
    assert ([shown.title for shown in day.entries], day.hidden, day.more_count, day.total) == (["a"], 6, 6, 7)


def test_multi_day_event_is_a_bar_in_every_week_that_it_touches() -> None:
    first, second = weeks_of(entry("fair", 8, 11))[1:3]
    (bar,) = [cell for cell in first.lanes[0] if cell.entry]
    assert (bar.start, bar.days, bar.continues_before, bar.continues_after) == (5, 2, False, True)
    (bar,) = [cell for cell in second.lanes[0] if cell.entry]
    assert (bar.start, bar.days, bar.continues_before, bar.continues_after) == (0, 2, True, False)
    assert [cell.days for cell in second.lanes[0]] == [2, 5]


def test_successive_events_share_a_lane_and_overlapping_ones_do_not() -> None:
    week = weeks_of(entry("a", 3, 4), entry("b", 5, 6), entry("c", 4, 7))[1]
    lanes = [[cell.entry.title for cell in lane if cell.entry] for lane in week.lanes]
    assert lanes == [["a", "b"], ["c"]]


def test_events_without_a_lane_are_counted() -> None:
    week = weeks_of(entry("a", 3, 5), entry("b", 3, 4), max_entries=1)[1]
    assert len(week.lanes) == 1
    assert [day.more_count for day in week.days] == [1, 1, 0, 0, 0, 0, 0]


def test_agenda_starts_today() -> None:
    weeks = weeks_of(entry("past", 2, 2), entry("fair", 3, 20), entry("late", 25, 25), today=12)
    assert [day.date.day for day in make_agenda(weeks, date(2031, 3, 12))] == [12, 25]


def make(*, with_place: bool = False, **changes: Any) -> Entry:
    row = {
        "title": "Tea &amp; talk",
        "slug": "tea",
        "timezone": "Europe/Berlin",
        "all_day": False,
        "start_local": datetime(2031, 3, 14, 19, 30),
        "first_day": date(2031, 3, 14),
        "last_day": date(2031, 3, 14),
        "category_id": None,
        "featured": True,
        "repeats": False,
        "event_status": "scheduled",
        **changes,
    }
    return make_entry(row, locale(), UrlBuilder("https://x.example"), "Europe/Berlin", with_place=with_place)


def test_entry_shows_its_time_and_a_foreign_zone() -> None:
    day = date(2031, 3, 14)
    assert make() == Entry("Tea & talk", "/event/tea/", "7:30\u00a0PM", day, day, 0, True)
    assert make(timezone="Europe/Paris").time == "7:30\u00a0PM"
    assert make(timezone="Europe/London").time == "7:30\u00a0PM GMT"
    assert make(all_day=True).time == ""
    assert make(venue="Bar &amp; grill").place == ""
    assert make(with_place=True, venue="Bar &amp; grill").place == "Bar & grill"
    assert make(with_place=True, venue=None).place == ""
    assert make(event_status="cancelled").state == Badge("Cancelled", "is-negative", is_cancelled=True, icon="×")
