"""The cells of a month, as a function of weeks."""

from datetime import date
from random import Random

from kalends.website.calendar_views import MAX_PER_MONTH_DAY, MONTH_SIZES
from kalends.website.models.grid import Entry, Week, fill_cells, find_month_bounds, lay_out_month, make_weeks

MARCH = date(2031, 3, 1)


def entry(title: str, first: int, last: int) -> Entry:
    return Entry(title, "", "", date(2031, 3, first), date(2031, 3, last), 0, False)


def second_week(*entries: Entry, of_day: int = 1) -> Week:
    """Return the week from Monday, March 3, 2031."""
    first, last = find_month_bounds(MARCH, 1)
    rows = [{"of_day": of_day} for _ in entries]
    weeks = make_weeks(first, last, rows, list(entries), today=MARCH, month=MARCH, max_entries=7, max_lanes=4)
    return weeks[1]


def titles(week: Week, max_entries: int = 3) -> list[list[str]]:
    """Return the titles in the cells; a "-" per lane where a bar continues or nothing is."""
    return [
        [slot.entry.title if slot.entry else "-" * slot.lanes for slot in cell]
        for cell in fill_cells(week, max_entries)
    ]


def test_single_events_fill_free_lanes() -> None:
    # "b" has the second lane from Tuesday on, so Friday's lane of "a" is free, and Monday needs no second one.
    week = second_week(
        entry("a", 3, 5), entry("b", 4, 9), entry("one", 3, 3), entry("two", 7, 7), entry("three", 7, 7)
    )
    assert titles(week) == [
        ["a", "one"],
        ["-", "b"],
        ["--"],
        ["--"],
        ["two", "-", "three"],
        ["--"],
        ["--"],
    ]


def test_lanes_end_with_their_last_bar() -> None:
    week = second_week(entry("a", 8, 9), entry("b", 8, 9), entry("one", 4, 4))
    assert titles(week) == [[], ["one"], [], [], [], ["a", "b"], ["--"]]


def test_day_with_fewer_bars_lists_more_events() -> None:
    singles = [entry(f"s{n}", 4, 4) for n in range(7)] + [entry(f"t{n}", 9, 9) for n in range(7)]
    week = second_week(entry("a", 8, 9), entry("b", 8, 9), *singles, of_day=32)
    cells = fill_cells(week, 3)
    assert [len(cell) for cell in cells] == [0, 5, 0, 0, 0, 2, 4]
    assert (week.days[1].more_count, week.days[6].more_count) == (27, 29)
    assert week.days[1].total == 32


def test_last_hidden_event_is_shown_instead_of_link() -> None:
    week = second_week(*[entry(f"s{n}", 4, 4) for n in range(4)], of_day=4)
    assert titles(week)[1] == ["s0", "s1", "s2", "s3"]
    assert week.days[1].more_count == 0
    week = second_week(*[entry(f"s{n}", 4, 4) for n in range(5)], of_day=5)
    assert titles(week)[1] == ["s0", "s1", "s2"]
    assert week.days[1].more_count == 2


def test_slots_above_a_bar_have_its_height() -> None:
    week = second_week(entry("a", 3, 4), entry("b", 4, 6), entry("one", 5, 5), entry("two", 5, 5))
    assert [(slot.entry is None, slot.is_short) for slot in fill_cells(week, 3)[2]] == [
        (False, True),
        (True, True),
        (False, False),
    ]


def test_no_cell_hides_a_single_event() -> None:
    """In 1,000 random weeks of all sizes, an event is shown rather than a link to it."""
    random = Random(36)
    for number in range(1000):
        entries: list[Entry] = []
        rows: list[dict[str, int]] = []
        for day in range(3, 10):
            bars = [entry(f"bar {day}", day, day + random.randint(1, 4)) for _ in range(random.choice((0, 0, 1, 2)))]
            total = random.randint(0, 8)
            # As in `list_days`: the first four events, and the fifth if it is the last.
            loaded = total if total <= MAX_PER_MONTH_DAY + 1 else MAX_PER_MONTH_DAY
            entries += [*bars, *[entry(f"{day}.{nth}", day, day) for nth in range(loaded)]]
            rows += [{"of_day": total}] * (len(bars) + loaded)
        size = MONTH_SIZES[number % len(MONTH_SIZES)]
        first, last = date(2031, 3, 3), date(2031, 3, 9)
        layout = lay_out_month(first, last, rows, entries, size, today=MARCH, month=MARCH)
        for day, slots in layout.weeks[0]:
            assert day.more_count != 1, (size, day.date)
            bars = [slot.entry for slot in slots if slot.entry and slot.entry in day.running]
            assert len(day.running) - len(day.without_lane) >= len(bars)


def test_bar_without_lane_stands_in_the_row_of_the_link() -> None:
    week = second_week(*[entry(f"bar {n}", 3, 5) for n in range(5)], entry("one", 4, 4))
    assert titles(week, max_entries=1)[0] == ["bar 0", "bar 1", "bar 2", "bar 3", "bar 4"]
    assert week.days[0].more_count == 0
    assert week.days[1].more_count == 0
    assert week.days[0].total == 5
