"""The hour grid of a week, as a function of rows and entries."""

from datetime import date, datetime, timedelta
from typing import Any

from kalends.core.times import utc_of
from kalends.website.models.grid import Entry
from kalends.website.models.week import Block, HourGrid, make_hour_grid

MONDAY = date(2031, 3, 10)
BERLIN = "Europe/Berlin"
Event = tuple[dict[str, Any], Entry]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def event(
    title: str, start: str, end: str, *, zone: str = BERLIN, folds: tuple[int, int] = (0, 0), **row: Any
) -> Event:
    """Return an event as the query and `make_entry` return it; `folds` are those of start and end."""
    first, last = at(start).date(), (at(end) - timedelta(hours=6, seconds=1)).date()
    times = {"start_utc": utc_of(at(start), zone, folds[0]), "end_utc": utc_of(at(end), zone, folds[1])}
    entry = Entry(title, "", start[11:16], first, max(first, row.pop("last", last)), 0, False)
    return {"of_day": 1, "all_day": False, "timezone": zone, **times, **row}, entry


def grid_of(*events: Event, first: date = MONDAY, today: date = MONDAY, **limits: int) -> HourGrid:
    limits = {"max_columns": 2, "max_entries": 40, **limits}
    rows, entries = [row for row, _ in events], [entry for _, entry in events]
    return make_hour_grid(first, rows, entries, today=today, zone=BERLIN, **limits)


def positions(grid: HourGrid, weekday: int) -> dict[str, tuple[float, float]]:
    """Return begin and end of the blocks of a day, in hours below the top of the grid."""
    blocks = grid.days[weekday].blocks
    return {block.entry.title: (block.start / 12, block.end / 12) for block in blocks if block.entry}


def places(blocks: list[Block]) -> dict[str, str]:
    return {block.entry.title: block.place for block in blocks if block.entry}


def test_block_stands_at_its_hours() -> None:
    grid = grid_of(event("talk", "2031-03-12 19:35", "2031-03-12 21:00"))
    # The hours from 10 to 19 have no event.
    assert [(hour.hour, hour.minute) for hour in grid.hours] == [(10, 0), (19, 0), (20, 0)]
    assert positions(grid, 2) == {"talk": (19 / 12, 3)}
    assert grid.days[2].blocks[0].css_classes == "t1 m7 l1 k5 r4"


def test_three_hours_without_events_share_a_row() -> None:
    grid = grid_of(
        event("run", "2031-03-10 09:30", "2031-03-10 10:00"),
        event("lunch", "2031-03-12 12:00", "2031-03-12 13:00"),
        event("film", "2031-03-14 16:00", "2031-03-14 18:30"),
    )
    assert [hour.hour for hour in grid.hours] == [9, 10, 11, 12, 13, 16, 17, 18, 19]
    assert positions(grid, 4) == {"film": (5, 7.5)}
    assert all([(gap.start, gap.length) for gap in day.gaps] == [(48, 12)] for day in grid.days)
    assert [hour.hour for hour in grid_of().hours] == [10]


def test_grid_begins_with_the_earliest_and_ends_with_the_latest_event() -> None:
    grid = grid_of(
        event("run", "2031-03-11 06:15", "2031-03-11 07:00"), event("party", "2031-03-15 23:00", "2031-03-16 00:10")
    )
    assert [hour.hour for hour in grid.hours] == [6, 7, 23, 0]


def test_night_belongs_to_the_day_on_which_it_began() -> None:
    grid = grid_of(event("dance", "2031-03-14 21:00", "2031-03-15 06:00"))
    assert positions(grid, 4) == {"dance": (1, 10)}
    assert grid.days[5].blocks == []
    assert [hour.hour for hour in grid.hours[-7:]] == [23, 0, 1, 2, 3, 4, 5]


def test_event_of_two_days_is_a_bar() -> None:
    grid = grid_of(event("hike", "2031-03-14 21:00", "2031-03-15 09:00"))
    assert all(day.blocks == [] for day in grid.days)
    assert [(bar.entry.title, bar.start, bar.days) for bar in grid.bars] == [("hike", 4, 2)]


def test_zero_length_event_has_a_readable_height_and_half_the_width() -> None:
    grid = grid_of(
        event("bell", "2031-03-12 12:00", "2031-03-12 12:00"), event("talk", "2031-03-12 12:10", "2031-03-12 13:00")
    )
    assert positions(grid, 2)["bell"] == (2, 2.5)
    assert places(grid.days[2].blocks) == {"bell": "left", "talk": "right"}
    assert "r1" in grid.days[2].blocks[0].css_classes.split()


def test_overlapping_events_lie_on_top_of_each_other() -> None:
    grid = grid_of(
        event("a", "2031-03-12 10:00", "2031-03-12 13:00"),
        event("b", "2031-03-12 10:45", "2031-03-12 12:00"),
        event("c", "2031-03-12 12:00", "2031-03-12 14:00"),
        event("d", "2031-03-12 13:00", "2031-03-12 15:00"),
        event("alone", "2031-03-12 15:00", "2031-03-12 16:00"),
    )
    blocks = grid.days[2].blocks
    assert places(blocks) == {"a": "under", "b": "over", "c": "over", "d": "under", "alone": ""}
    # Text ends where the next block covers it.
    assert [block.lines for block in blocks] == [2, 4, 3, 6, 3]


def test_events_that_start_at_similar_times_stand_side_by_side() -> None:
    grid = grid_of(
        event("a", "2031-03-12 10:00", "2031-03-12 13:00"),
        event("b", "2031-03-12 10:40", "2031-03-12 12:00"),
        event("c", "2031-03-12 13:00", "2031-03-12 14:00"),
        event("d", "2031-03-12 12:30", "2031-03-12 13:00"),
    )
    assert places(grid.days[2].blocks) == {"a": "left", "b": "right", "d": "right", "c": ""}


def test_events_without_a_column_are_counted_beside_the_others() -> None:
    times = ("2031-03-12 20:00", "2031-03-12 22:00")
    blocks = grid_of(*[event(str(n), *times) for n in range(5)]).days[2].blocks
    assert places(blocks) == {"0": "left", "1": "right"}
    assert [(block.count, block.start, block.length) for block in blocks if not block.entry] == [(3, 12, 24)]
    assert [block.beside_rest for block in blocks] == [True, True, False]
    single = grid_of(*[event(str(n), *times) for n in range(5)], max_columns=1).days[2].blocks
    assert (places(single), single[-1].count) == ({"0": ""}, 4)


def test_events_beyond_the_maximum_of_a_day_are_counted() -> None:
    events = [event(str(n), f"2031-03-12 {10 + n}:00", f"2031-03-12 {11 + n}:00", of_day=50) for n in range(4)]
    day = grid_of(*events, max_entries=3).days[2]
    assert (len(day.blocks), day.hidden) == (3, 47)


def test_bars_of_long_and_whole_days_share_lanes() -> None:
    long = [event(f"fair {n}", "2031-03-08 10:00", "2031-03-12 18:00") for n in range(6)]
    holiday = event("holiday", "2031-03-14 00:00", "2031-03-14 23:59", all_day=True)
    grid = grid_of(*long, holiday)
    assert [(bar.entry.title, bar.start, bar.days, bar.continues_before) for bar in grid.bars] == [
        *[(f"fair {n}", 0, 3, True) for n in range(5)],
        ("holiday", 4, 1, False),
    ]
    assert [day.hidden for day in grid.days] == [1, 1, 1, 0, 0, 0, 0]
    assert [entry.title for entry in grid.days[4].all_day] == ["holiday"]
    assert [bar.in_day for bar in grid.bars] == [False] * 5 + [True]


def test_long_event_also_stands_at_its_first_day_unless_that_is_past() -> None:
    fair = event("fair", "2031-03-12 10:00", "2031-03-14 18:00")
    for today, days in ((MONDAY, [2]), (date(2031, 3, 12), []), (date(2031, 3, 13), []), (date(2031, 1, 1), [2])):
        grid = grid_of(fair, today=today)
        assert [n for n, day in enumerate(grid.days) if day.all_day] == days
        assert [bar.in_day for bar in grid.bars] == [bool(days)]


def test_day_of_23_hours_has_a_gap() -> None:
    """On March 30, 2031, clocks in Berlin skip the hour from 2 to 3."""
    grid = grid_of(event("vigil", "2031-03-30 01:00", "2031-03-30 04:00"), first=date(2031, 3, 24))
    assert [hour.hour for hour in grid.hours] == [1, 2, 3, 4]
    gaps = [[(gap.start, gap.length) for gap in day.gaps] for day in grid.days]
    assert gaps == [[(36, 12)]] * 6 + [[(36, 12), (12, 12)]]  # The hours from 4 on share a row.
    assert positions(grid, 6) == {"vigil": (0, 3)}


def test_day_of_25_hours_has_the_repeated_hour_twice() -> None:
    """On October 26, 2031, clocks in Berlin show the hour from 2 to 3 twice."""
    grid = grid_of(
        event("first", "2031-10-26 02:15", "2031-10-26 02:45"),
        event("second", "2031-10-26 02:15", "2031-10-26 02:45", folds=(1, 1)),
        event("both", "2031-10-26 01:00", "2031-10-26 04:00"),
        event("normal", "2031-10-22 02:00", "2031-10-22 03:00"),
        event("night before", "2031-10-25 23:00", "2031-10-26 03:00"),
        first=date(2031, 10, 20),
    )
    assert [hour.hour for hour in grid.hours[:5]] == [1, 2, 2, 3, 4]
    assert positions(grid, 6) == {"both": (0, 4), "first": (1.25, 1.75), "second": (2.25, 2.75)}
    assert positions(grid, 2) == {"normal": (1, 2)}
    # The rows after midnight have the repeated hour, too.
    assert positions(grid, 5) == {"night before": (5, 10)}
    # On the other days, the second of the two rows is no time.
    gaps = [[(gap.start, gap.length) for gap in day.gaps] for day in grid.days]
    # The hours from 4 to 23 share a row.
    assert gaps == [[(48, 12), (24, 12), (108, 12)]] * 5 + [[(48, 12), (24, 12)]] + [[(48, 12), (108, 12)]]


def test_event_of_another_zone_stands_at_its_local_time() -> None:
    grid = grid_of(event("call", "2031-03-12 20:00", "2031-03-12 21:00", zone="Asia/Tokyo"))
    assert positions(grid, 2) == {"call": (1, 2)}
    # Clocks in New York repeat an hour on a day on which those in Berlin do not.
    grid = grid_of(
        event("late", "2031-11-02 01:30", "2031-11-02 01:45", zone="America/New_York", folds=(1, 1)),
        first=date(2031, 10, 27),
    )
    assert positions(grid, 6) == {"late": (0.5, 1)}


def test_rows_of_today_have_their_instants() -> None:
    day = date(2031, 3, 30)
    grid = grid_of(event("vigil", "2031-03-30 01:00", "2031-03-30 04:00"), first=date(2031, 3, 24), today=day)
    midnight = int(utc_of(at("2031-03-30 00:00"), BERLIN).timestamp())
    assert [(begin - midnight) // 3600 for begin in grid.days[6].slot_times[:4]] == [1, 2, 2, 3]
    assert [bool(day.slot_times) for day in grid.days] == [False] * 6 + [True]
    autumn = grid_of(
        event("vigil", "2031-10-22 01:00", "2031-10-22 04:00"), first=date(2031, 10, 20), today=date(2031, 10, 22)
    )
    midnight = int(utc_of(at("2031-10-22 00:00"), BERLIN).timestamp())
    assert [(begin - midnight) // 3600 for begin in autumn.days[2].slot_times[:4]] == [1, 2, 3, 3]


def test_past_days_are_marked_in_the_current_week_only() -> None:
    current = grid_of(today=date(2031, 3, 12))
    assert [day.is_past for day in current.days] == [True] * 2 + [False] * 5
    assert current.has_past_days
    assert not grid_of(today=MONDAY).has_past_days
    assert not grid_of(today=date(2031, 3, 20)).has_past_days
