"""The month grid, with multi-day events as bars in lanes, and entries that other views use too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

from kalends.core.html_text import to_plain_text
from kalends.core.times import abbreviation, offset_of, utc_of
from kalends.rendering.cards import REPEATS, Badge, make_state_badge, pick_hue, read_title, shorten
from kalends.rendering.page_locale import PageLocale
from kalends.rendering.page_urls import UrlBuilder


class Row(Protocol):
    """A database row or a mapping with the same keys."""

    def __getitem__(self, key: str, /) -> Any: ...


DAY: Final = timedelta(days=1)
MAX_TITLE: Final = 70  # in display columns
MAX_PLACE: Final = 40


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    url: str
    time: str  # empty for all-day events
    first: date
    last: date
    hue: int
    featured: bool
    state: Badge | None = None  # None if the event is going ahead
    repeats: str = ""  # for screen readers, if the event belongs to a series
    place: str = ""  # name of the venue; only in weeks


@dataclass(slots=True)
class Day:
    date: date
    is_today: bool
    is_outside: bool
    entries: list[Entry] = field(default_factory=list[Entry])
    hidden: int = 0  # number of single-day events that are not shown
    running: list[Entry] = field(default_factory=list[Entry])  # multi-day events
    starting: list[Entry] = field(default_factory=list[Entry])  # multi-day events that the agenda lists on this day
    without_lane: list[Entry] = field(default_factory=list[Entry])  # multi-day events that did not fit in any lane

    @property
    def more_count(self) -> int:
        return self.hidden + len(self.without_lane)

    @property
    def total(self) -> int:
        return len(self.entries) + self.hidden + len(self.running)


@dataclass(frozen=True, slots=True)
class Cell:
    """Consecutive days of a lane with the same entry or none.

    `start` is the number of days since the first day of the week.
    """

    start: int
    days: int
    entry: Entry | None = None
    continues_after: bool = False  # into the next week
    continues_before: bool = False  # from the previous week


@dataclass(frozen=True, slots=True)
class Week:
    days: list[Day]
    lanes: list[list[Cell]]


def find_month_bounds(month: date, first_weekday: int) -> tuple[date, date]:
    """Return the first day of a month's first week and the last day of its last week."""
    first = find_week_start(month, first_weekday)
    following = (month.replace(day=28) + 4 * DAY).replace(day=1)
    return first, find_week_start(following - DAY, first_weekday) + 6 * DAY


def find_week_start(day: date, first_weekday: int) -> date:
    return day - timedelta(days=(day.isoweekday() - first_weekday) % 7)


def make_entry(row: Row, locale: PageLocale, links: UrlBuilder, zone: str, *, with_place: bool = False) -> Entry:
    start: datetime = row["start_local"]
    return Entry(
        title=shorten(read_title(row["title"]), MAX_TITLE),
        url=links.event(row["slug"]),
        time="" if row["all_day"] else locale.time(start) + _foreign_zone(start, row["timezone"], zone),
        first=row["first_day"],
        last=row["last_day"],
        hue=pick_hue(row["category_id"]),
        featured=row["featured"],
        state=make_state_badge(row["event_status"], locale.translate),
        repeats=locale.text(REPEATS) if row["repeats"] else "",
        place=_read_place(row["venue"]) if with_place and row["venue"] else "",
    )


@lru_cache(maxsize=20_000)
def _read_place(name: str) -> str:
    return shorten(to_plain_text(name), MAX_PLACE)


@lru_cache(maxsize=20_000)
def _foreign_zone(start: datetime, event_zone: str, zone: str) -> str:
    """Return the abbreviation of the event's zone, if its UTC offset differs from the site's."""
    if event_zone == zone:
        return ""
    utc = utc_of(start, event_zone)
    return f" {abbreviation(utc, event_zone)}" if offset_of(utc, event_zone) != offset_of(utc, zone) else ""


def make_weeks(
    first: date,
    last: date,
    rows: Iterable[Row],
    entries: list[Entry],
    *,
    today: date,
    max_entries: int,
    max_lanes: int = 0,
    month: date | None = None,
) -> list[Week]:
    """Arrange entries in weeks. `rows` are the same events as `entries`.

    `of_day` in a row is the number of single-day events on that day. A day has at most `max_entries` events and
    `max_lanes` lanes for bars; the default is `max_entries` lanes.
    """
    dates = [first + n * DAY for n in range((last - first).days + 1)]
    days = [Day(day, day == today, month is not None and day.month != month.month) for day in dates]
    by_date = {day.date: day for day in days}
    multi_day: list[Entry] = []
    totals: dict[date, int] = {}
    for row, entry in zip(rows, entries, strict=True):
        if entry.first != entry.last:
            multi_day.append(entry)
        elif entry.first in by_date:
            if len(by_date[entry.first].entries) < max_entries:
                by_date[entry.first].entries.append(entry)
            totals[entry.first] = row["of_day"]
    # On small screens, the agenda starts today, so list multi-day events that are in progress under today.
    earliest = max(today, month or first) if today in by_date and not by_date[today].is_outside else month or first
    for entry in multi_day:
        first_shown = by_date.get(max(entry.first, min(earliest, entry.last)))
        if first_shown is not None and len(first_shown.starting) < max_entries:
            first_shown.starting.append(entry)
    for at, number in totals.items():
        by_date[at].hidden = number - len(by_date[at].entries)
    return [_make_week(days[at : at + 7], multi_day, max_lanes or max_entries) for at in range(0, len(days), 7)]


def make_agenda(weeks: list[Week], today: date) -> list[Day]:
    """Return the days of the month that have events. If today is in the month, start with today."""
    days = [day for week in weeks for day in week.days if not day.is_outside]
    since = today if any(day.is_today for day in days) else date.min
    return [day for day in days if day.date >= since and (day.entries or day.starting)]


def _make_week(days: list[Day], multi_day: list[Entry], max_lanes: int) -> Week:
    first, last = days[0].date, days[-1].date
    lanes: list[list[Entry]] = []
    touching = [entry for entry in multi_day if entry.first <= last and entry.last >= first]
    # If several events start on the same day, place the longest first, to leave few free lanes above occupied ones.
    for entry in sorted(
        touching, key=lambda entry: (max(entry.first, first), first - min(entry.last, last), entry.first)
    ):
        for day in days:
            if entry.first <= day.date <= entry.last:
                day.running.append(entry)
        free = next((lane for lane in lanes if lane[-1].last < entry.first), None)
        if free is not None:
            free.append(entry)
        elif len(lanes) < max_lanes:
            lanes.append([entry])
        else:
            for day in days:
                if entry.first <= day.date <= entry.last:
                    day.without_lane.append(entry)
    return Week(days, [_make_cells(lane, first, last) for lane in lanes])


def _make_cells(lane: list[Entry], first: date, last: date) -> list[Cell]:
    cells: list[Cell] = []
    at = first
    for entry in lane:
        begin, end = max(entry.first, first), min(entry.last, last)
        if begin > at:
            cells.append(Cell((at - first).days, (begin - at).days))
        days = (end - begin).days + 1
        cells.append(Cell((begin - first).days, days, entry, entry.last > last, entry.first < first))
        at = end + DAY
    if at <= last:
        cells.append(Cell((at - first).days, (last - at).days + 1))
    return cells


# Month cells. A multi-day event's bar has the same vertical position on all its days; single-day events surround it.


@dataclass(frozen=True, slots=True)
class Slot:
    """A position in a cell, counted from the top.

    `days` is set where a bar begins: the number of days that it covers this week. On its other days, the position
    stays free. `is_short` makes the slot as tall as a bar, because a bar follows below.
    """

    entry: Entry | None = None
    days: int = 0
    is_short: bool = False
    continues_before: bool = False
    continues_after: bool = False
    lanes: int = 1  # height in lanes of a slot without an entry


@dataclass(frozen=True, slots=True)
class MonthLayout:
    """The days of each week with their slots, and the agenda for small screens."""

    weeks: Sequence[Sequence[tuple[Day, Sequence[Slot]]]]
    agenda: Sequence[Day]
    has_more_days: bool  # whether the agenda omits days with events


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
    """Arrange a month. `size` contains three limits: events per day below the bars, stacked bars, and agenda days."""
    max_entries, max_lanes, max_days = size
    # One more entry than fits: if only this entry would be hidden, it replaces the link.
    limits = {"max_entries": max_entries + max_lanes + 1, "max_lanes": max_lanes}
    weeks = make_weeks(first, last, rows, entries, today=today, month=month, **limits)
    cells = [list(zip(week.days, fill_cells(week, max_entries), strict=True)) for week in weeks]
    agenda = make_agenda(weeks, today)
    return MonthLayout(cells, agenda[:max_days], len(agenda) > max_days)


def fill_cells(week: Week, max_entries: int) -> list[list[Slot]]:
    """Return the slots for the seven days.

    Single-day events fill the free lanes on their day. A cell has one slot for each lane of the week and
    `max_entries` more, so a day with fewer bars has room for more events. A day's `hidden` is the number of events
    that did not fit. If only one event would be hidden, it replaces the link.
    """
    covering: list[list[Cell | None]] = [[] for _ in week.days]
    for number, lane in enumerate(week.lanes):
        for cell in lane:
            for at in range(cell.start, cell.start + cell.days) if cell.entry else ():
                covering[at] += [None] * (number - len(covering[at])) + [cell]
    max_slots = len(week.lanes) + max_entries
    return [_fill_cell(day, at, covering[at], max_slots) for at, day in enumerate(week.days)]


def _fill_cell(day: Day, at: int, covering: list[Cell | None], max_slots: int) -> list[Slot]:
    """Return the slots of a day. `covering` holds the bar in each lane, down to the lowest bar."""
    room = max_slots - len(covering) + covering.count(None)
    bars: list[Entry] = []
    if len(day.entries) + day.more_count <= room + 1:
        room += 1
        bars, day.without_lane = day.without_lane, []
    shown = day.entries[:room]
    day.hidden += len(day.entries) - len(shown)
    del day.entries[len(shown) :]
    entries = iter(shown)
    slots: list[Slot] = []
    for cell in covering:
        slot = _make_bar(cell, at) if cell else Slot(next(entries, None), is_short=True)
        if slots and not slot.entry and not slots[-1].entry:
            slots[-1] = Slot(is_short=True, lanes=slots[-1].lanes + 1)
        else:
            slots.append(slot)
    return slots + [Slot(entry) for entry in (*entries, *bars)]


def _make_bar(cell: Cell, at: int) -> Slot:
    if cell.start != at:
        return Slot(is_short=True)
    return Slot(cell.entry, cell.days, True, cell.continues_before, cell.continues_after)
