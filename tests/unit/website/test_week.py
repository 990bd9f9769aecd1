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
    limits = {"max_columns": 3, "max_entries": 40, **limits}
    rows, entries = [row for row, _ in events], [entry for _, entry in events]
    return make_hour_grid(first, rows, entries, today=today, zone=BERLIN, **limits)


def positions(grid: HourGrid, weekday: int) -> dict[str, tuple[float, float]]:
    """Return begin and end of the blocks of a day, in hours below the top of the grid."""
    blocks = grid.days[weekday].blocks
    return {block.entry.title: (block.start / 12, block.end / 12) for block in blocks if block.entry}


def columns(blocks: list[Block]) -> dict[str, tuple[int, int, int]]:
    return {block.entry.title: (block.column, block.columns, block.width) for block in blocks if block.entry}


def test_block_stands_at_its_hours() -> None:
    grid = grid_of(event("talk", "2031-03-12 19:35", "2031-03-12 21:00"))
    assert [(hour.hour, hour.minute) for hour in grid.hours] == [(hour, 0) for hour in range(10, 21)]
    assert positions(grid, 2) == {"talk": (9 + 7 / 12, 11)}
    assert grid.days[2].blocks[0].css_classes == "t9 m7 l1 k5 n1"


def test_grid_begins_with_the_earliest_and_ends_with_the_latest_event() -> None:
    grid = grid_of(
        event("run", "2031-03-11 06:15", "2031-03-11 07:00"), event("party", "2031-03-15 23:00", "2031-03-16 00:10")
    )
    assert [grid.hours[0].hour, grid.hours[-1].hour, len(grid.hours)] == [6, 0, 19]


def test_night_belongs_to_the_day_on_which_it_began() -> None:
    grid = grid_of(event("dance", "2031-03-14 21:00", "2031-03-15 06:00"))
    assert positions(grid, 4) == {"dance": (11, 20)}
    assert grid.days[5].blocks == []
    assert [hour.hour for hour in grid.hours[-7:]] == [23, 0, 1, 2, 3, 4, 5]


def test_event_of_two_days_is_a_bar() -> None:
    grid = grid_of(event("hike", "2031-03-14 21:00", "2031-03-15 09:00"))
    assert all(day.blocks == [] for day in grid.days)
    assert [(bar.entry.title, bar.start, bar.days) for bar in grid.bars] == [("hike", 4, 2)]


def test_zero_length_event_has_a_readable_height_and_its_own_column() -> None:
    grid = grid_of(
        event("bell", "2031-03-12 12:00", "2031-03-12 12:00"), event("talk", "2031-03-12 12:10", "2031-03-12 13:00")
    )
    assert positions(grid, 2)["bell"] == (2, 2.5)
    assert columns(grid.days[2].blocks) == {"bell": (0, 2, 1), "talk": (1, 2, 1)}
    assert "short" in grid.days[2].blocks[0].css_classes


def test_overlapping_events_stand_side_by_side() -> None:
    grid = grid_of(
        event("a", "2031-03-12 10:00", "2031-03-12 13:00"),
        event("b", "2031-03-12 11:00", "2031-03-12 12:00"),
        event("c", "2031-03-12 11:30", "2031-03-12 12:30"),
        event("d", "2031-03-12 12:30", "2031-03-12 14:00"),
        event("alone", "2031-03-12 14:00", "2031-03-12 15:00"),
    )
    # `d` follows `b` and extends over the column in which `c` has ended.
    assert columns(grid.days[2].blocks) == {
        "a": (0, 3, 1), "b": (1, 3, 1), "c": (2, 3, 1), "d": (1, 3, 2), "alone": (0, 1, 1),
    }  # fmt: skip


def test_events_without_a_column_are_counted_beside_the_others() -> None:
    times = ("2031-03-12 20:00", "2031-03-12 22:00")
    blocks = grid_of(*[event(str(n), *times) for n in range(5)]).days[2].blocks
    assert columns(blocks) == {"0": (0, 2, 1), "1": (1, 2, 1)}
    assert [(block.count, block.start, block.length) for block in blocks if not block.entry] == [(3, 120, 24)]
    assert [block.beside_rest for block in blocks] == [True, True, False]


def test_day_with_events_side_by_side_is_wider() -> None:
    times = ("2031-03-12 20:00", "2031-03-12 22:00")
    assert grid_of(event("a", *times)).css_classes == ""
    assert grid_of(event("a", *times), event("b", *times)).css_classes == "x22"
    assert grid_of(*[event(str(n), *times) for n in range(5)]).css_classes == "x23"


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
    assert [bar.is_single for bar in grid.bars] == [False] * 5 + [True]


def test_day_of_23_hours_has_a_gap() -> None:
    """On March 30, 2031, clocks in Berlin skip the hour from 2 to 3."""
    grid = grid_of(event("vigil", "2031-03-30 01:00", "2031-03-30 04:00"), first=date(2031, 3, 24))
    assert [hour.hour for hour in grid.hours[:5]] == [1, 2, 3, 4, 5]
    assert [[(gap.start, gap.length) for gap in day.gaps] for day in grid.days] == [[]] * 6 + [[(12, 12)]]
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
    assert positions(grid, 5) == {"night before": (23, 28)}
    # On the other days, the second of the two rows is no time.
    gaps = [(day.gaps[0].start, day.gaps[0].length) for day in grid.days]
    assert gaps == [(24, 12)] * 6 + [(324, 12)]


def test_event_of_another_zone_stands_at_its_local_time() -> None:
    grid = grid_of(event("call", "2031-03-12 20:00", "2031-03-12 21:00", zone="Asia/Tokyo"))
    assert positions(grid, 2) == {"call": (10, 11)}
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
