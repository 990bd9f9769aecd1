"""The grid of a month or a week: events of several days are bars in lanes above the events of single days."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol

from kalends.core.times import abbreviation, offset_of, utc_of
from kalends.website.models.cards import REPEATS, pick_hue, read_title, shorten
from kalends.website.models.page_locale import PageLocale
from kalends.website.models.states import Badge, make_state_badge
from kalends.website.models.urls import UrlBuilder


class Row(Protocol):
    """A database row or a mapping with the same keys."""

    def __getitem__(self, key: str, /) -> Any: ...


DAY: Final = timedelta(days=1)
MAX_TITLE: Final = 70  # columns


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    url: str
    time: str  # empty for all-day events
    first: date
    last: date
    hue: int
    featured: bool
    state: Badge | None = None  # None: the event takes place as announced
    repeats: str = ""  # for screen readers, if the event belongs to a series


@dataclass(slots=True)
class Day:
    date: date
    is_today: bool
    is_outside: bool
    entries: list[Entry] = field(default_factory=list[Entry])
    hidden: int = 0  # further events of this day alone
    running: list[Entry] = field(default_factory=list[Entry])  # multi-day events
    starting: list[Entry] = field(default_factory=list[Entry])  # multi-day events that the agenda lists on this day
    without_lane: int = 0  # multi-day events that no lane had room for

    @property
    def more_count(self) -> int:
        """Return the number of events that the grid has no room for."""
        return self.hidden + self.without_lane

    @property
    def total(self) -> int:
        return len(self.entries) + self.hidden + len(self.running)


@dataclass(frozen=True, slots=True)
class Cell:
    """Consecutive days of a lane, with one entry or empty. `start` counts from the first day of the week."""

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
    """Return the first and the last day of the weeks that a month touches."""
    first = find_week_start(month, first_weekday)
    following = (month.replace(day=28) + 4 * DAY).replace(day=1)
    return first, find_week_start(following - DAY, first_weekday) + 6 * DAY


def find_week_start(day: date, first_weekday: int) -> date:
    return day - timedelta(days=(day.isoweekday() - first_weekday) % 7)


def make_entry(row: Row, locale: PageLocale, links: UrlBuilder, zone: str) -> Entry:
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
    )


@lru_cache(maxsize=20_000)
def _foreign_zone(start: datetime, event_zone: str, zone: str) -> str:
    """Return the abbreviation of the event's zone if its offset differs from that of the site."""
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
    """Arrange entries in weeks. `rows` are the same events; each has the number of events on its day (`of_day`).

    A day has at most `max_entries` events and `max_lanes` lanes for bars, by default as many.
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
    # The agenda of small screens starts today, so it lists current multi-day events there.
    earliest = max(today, month or first) if today in by_date and not by_date[today].is_outside else month or first
    for entry in multi_day:
        first_shown = by_date.get(max(entry.first, min(earliest, entry.last)))
        if first_shown is not None and len(first_shown.starting) < max_entries:
            first_shown.starting.append(entry)
    for at, number in totals.items():
        by_date[at].hidden = number - len(by_date[at].entries)
    return [_make_week(days[at : at + 7], multi_day, max_lanes or max_entries) for at in range(0, len(days), 7)]


def make_agenda(weeks: list[Week], today: date) -> list[Day]:
    """List the days of the month that have events; if today is one of the days, start there."""
    days = [day for week in weeks for day in week.days if not day.is_outside]
    since = today if any(day.is_today for day in days) else date.min
    return [day for day in days if day.date >= since and (day.entries or day.starting)]


def _make_week(days: list[Day], multi_day: list[Entry], max_lanes: int) -> Week:
    first, last = days[0].date, days[-1].date
    lanes: list[list[Entry]] = []
    touching = [entry for entry in multi_day if entry.first <= last and entry.last >= first]
    # The longest events come first, so that few days have a free lane above an occupied one.
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
                day.without_lane += entry.first <= day.date <= entry.last
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
