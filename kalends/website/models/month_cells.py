"""The cells of a month: bars of multi-day events at the same height in all days, and single events around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from kalends.website.models.grid import Cell, Day, Entry, Row, Week, make_agenda, make_weeks


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the list of a cell, from top to bottom.

    A bar begins where `days` is set, the number of days that it covers in this week; the cells of the days after the
    first leave its place free. `is_short`: a bar follows below, so the slot has its height.
    """

    entry: Entry | None = None
    days: int = 0
    is_short: bool = False
    continues_before: bool = False
    continues_after: bool = False
    lanes: int = 1  # the height of a slot without an entry


@dataclass(frozen=True, slots=True)
class MonthLayout:
    """The days of each week with the slots of their cells, and the agenda of small screens."""

    weeks: Sequence[Sequence[tuple[Day, Sequence[Slot]]]]
    agenda: Sequence[Day]
    has_more_days: bool  # the agenda does not list all days with events


def lay_out_month(
    first: date,
    last: date,
    rows: Iterable[Row],
    entries: list[Entry],
    size: tuple[int, int, int],
    *,
    today: date,
    month: date,
) -> MonthLayout:
    """Arrange a month. `size`: events per day below the bars, bars above each other, days of the agenda."""
    max_entries, max_lanes, max_days = size
    limits = {"max_entries": max_entries + max_lanes, "max_lanes": max_lanes}
    weeks = make_weeks(first, last, rows, entries, today=today, month=month, **limits)
    # The smallest layouts have no room for more than the link.
    cells = [list(zip(week.days, fill_cells(week, max_entries, max_lanes > 1), strict=True)) for week in weeks]
    agenda = make_agenda(weeks, today)
    return MonthLayout(cells, agenda[:max_days], len(agenda) > max_days)


def fill_cells(week: Week, max_entries: int, show_last: bool = True) -> list[list[Slot]]:
    """Return the slots of the seven days.

    Single events fill the lanes that are free on their day. A cell has as many slots as the week has lanes, and
    `max_entries` more, so that a day with fewer bars lists more events in the same height. The days count the events
    that found no place. `show_last`: show a single remaining event instead of a link "1 more".
    """
    covering: list[list[Cell | None]] = [[] for _ in week.days]
    for number, lane in enumerate(week.lanes):
        for cell in lane:
            for at in range(cell.start, cell.start + cell.days) if cell.entry else ():
                covering[at] += [None] * (number - len(covering[at])) + [cell]
    max_slots = len(week.lanes) + max_entries
    return [_fill_cell(day, at, covering[at], max_slots, show_last) for at, day in enumerate(week.days)]


def _fill_cell(day: Day, at: int, covering: list[Cell | None], max_slots: int, show_last: bool) -> list[Slot]:
    """Return the slots of a day. `covering` has the bars of its lanes, down to the last one."""
    room = max_slots - len(covering) + covering.count(None)
    if show_last and not day.hidden and len(day.entries) == room + 1:
        room += 1
    shown = day.entries[:room]
    _count_shown(day, len(shown))
    entries = iter(shown)
    slots: list[Slot] = []
    for cell in covering:
        slot = _make_bar(cell, at) if cell else Slot(next(entries, None), is_short=True)
        if slots and not slot.entry and not slots[-1].entry:
            slots[-1] = Slot(is_short=True, lanes=slots[-1].lanes + 1)
        else:
            slots.append(slot)
    return slots + [Slot(entry) for entry in entries]


def _make_bar(cell: Cell, at: int) -> Slot:
    if cell.start != at:
        return Slot(is_short=True)
    return Slot(cell.entry, cell.days, True, cell.continues_before, cell.continues_after)


def _count_shown(day: Day, shown: int) -> None:
    day.hidden += len(day.entries) - shown
    del day.entries[shown:]
