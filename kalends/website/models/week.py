"""The week view: an hour grid with overlapping events side by side, and bars for multi-day and all-day events.

Each grid row is an hour in the site's local time. The hour repeated at the end of daylight saving time has two rows;
an hour missing on a day appears as a gap. As on all pages, an event appears at its local time, and a night belongs to
the day on which it began, so the grid can continue after midnight.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from kalends.core.times import in_zone, offset_of, utc_of
from kalends.website.models.grid import Entry, Row

DAY: Final = timedelta(days=1)
SECOND: Final = timedelta(seconds=1)
HOURS: Final = 31  # A night ends at six, and a zero-length event just before six needs half an hour.
FIRST_HOUR, LAST_HOUR = 10, 20  # shown even without events
STEPS_PER_HOUR: Final = 12
MIN_STEPS: Final = 6  # half an hour: the smallest block that is readable and easy to tap
SHORT_STEPS: Final = 9  # blocks of up to 45 minutes have one line
MAX_LANES: Final = 5


class Slot(NamedTuple):
    """A row of the grid.

    Hours 24 and later belong to the next morning; `fold` is 1 for the second row of a repeated hour.
    """

    hour: int
    fold: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle in a day's column, measured in steps from the top and in columns side by side.

    A block without an entry stands for `count` events that do not fit.
    """

    start: int
    length: int
    entry: Entry | None = None
    count: int = 0
    column: int = 0
    columns: int = 1
    width: int = 1  # number of columns that the block spans
    beside_rest: bool = False  # whether to leave room for the narrow block of events that do not fit

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def css_classes(self) -> str:
        """Return the position as CSS classes, because the Content-Security-Policy forbids style attributes."""
        hour, step = divmod(self.start, STEPS_PER_HOUR)
        hours, steps = divmod(self.length, STEPS_PER_HOUR)
        parts = [("t", hour), ("m", step), ("l", hours), ("k", steps), ("c", self.column), ("n", self.columns)]
        names = [f"{letter}{number}" for letter, number in parts if number]
        names += [f"w{self.width}"] if self.width > 1 else []
        names += ["beside-rest"] if self.beside_rest else []
        return " ".join([*names, "short"] if self.length <= SHORT_STEPS else names)


@dataclass(frozen=True, slots=True)
class Bar:
    """A multi-day or all-day event. `start` is the number of days since the first day of the week."""

    entry: Entry
    start: int
    days: int
    continues_before: bool
    continues_after: bool

    @property
    def is_single(self) -> bool:
        return self.entry.first == self.entry.last


@dataclass(slots=True)
class WeekDay:
    date: date
    is_today: bool
    is_past: bool
    all_day: list[Entry] = field(default_factory=list[Entry])
    blocks: list[Block] = field(default_factory=list[Block])
    gaps: list[Block] = field(default_factory=list[Block])
    hidden: int = 0  # number of events that are not on the page
    slot_times: tuple[
        int, ...
    ] = ()  # Unix time at which each row begins, to draw the current-time line; only for today


@dataclass(frozen=True, slots=True)
class HourGrid:
    days: list[WeekDay]
    hours: list[time]
    bars: list[Bar]

    @property
    def css_classes(self) -> str:
        """Return the widths of the days as CSS classes. A day with events side by side is wider."""
        widths = [max([block.columns + block.beside_rest for block in day.blocks], default=1) for day in self.days]
        return " ".join(f"x{n}{min(width, 3)}" for n, width in enumerate(widths) if width > 1)

    @property
    def has_past_days(self) -> bool:
        return any(day.is_today for day in self.days) and self.days[0].is_past


def make_hour_grid(
    first: date,
    rows: Iterable[Row],
    entries: Iterable[Entry],
    *,
    today: date,
    zone: str,
    max_columns: int,
    max_entries: int,
) -> HourGrid:
    """Arrange the events of the week that begins on `first`. `zone` is the site's time zone.

    `rows` are the same events as `entries`; `of_day` in a row is the number of events on that day. At most
    `max_columns` events appear side by side, and at most `max_entries` per day in total.
    """
    days = [WeekDay(first + n * DAY, first + n * DAY == today, first + n * DAY < today) for n in range(7)]
    by_date = {day.date: day for day in days}
    slots = _list_slots(first, zone)
    long: list[Entry] = []
    totals: dict[date, int] = {}
    for row, entry in zip(rows, entries, strict=True):
        day = by_date.get(entry.first)
        if entry.first != entry.last:
            long.append(entry)
        elif day is not None:
            totals[entry.first] = row["of_day"]
            if len(day.all_day) + len(day.blocks) >= max_entries:
                continue
            if row["all_day"]:
                day.all_day.append(entry)
            else:
                day.blocks.append(_make_block(row, entry, slots))
    rows_shown = _shown_rows(slots, [block for day in days for block in day.blocks])
    slots = slots[rows_shown.start : rows_shown.stop]
    offset = rows_shown.start * STEPS_PER_HOUR
    for day in days:
        day.hidden = totals.get(day.date, 0) - len(day.all_day) - len(day.blocks)
        moved = [replace(block, start=block.start - offset) for block in day.blocks]
        day.blocks = _place_side_by_side(moved, max_columns)
        day.gaps = _find_gaps(day.date, slots, zone)
        if day.is_today:
            day.slot_times = tuple(_begin_slot(day.date, slot, zone) for slot in slots)
    return HourGrid(days, [time(slot.hour % 24) for slot in slots], _make_bars(days, long))


# Rows --------------------------------------------------------------------------------------------


def _list_slots(first: date, zone: str) -> list[Slot]:
    """Return the rows of a week: all hours, and a second row for each hour that occurs twice on any day."""
    repeated = {
        hour
        for n in range(7)
        if _changes_offset(first + n * DAY, zone)
        for hour in range(HOURS)
        if any(_find_shift(first + n * DAY, hour, half, zone) > 0 for half in (0, 30))
    }
    return [Slot(hour, fold) for hour in range(HOURS) for fold in ((0, 1) if hour in repeated else (0,))]


def _changes_offset(day: date, zone: str) -> bool:
    """Return whether the UTC offset changes on a day or in the following night."""
    begin, end = datetime.combine(day, time()), datetime.combine(day, time()) + timedelta(hours=HOURS)
    return offset_of(utc_of(begin, zone), zone) != offset_of(utc_of(end, zone), zone)


def _find_shift(day: date, hour: int, minute: int, zone: str) -> int:
    """Return 1 if this local time occurs twice, -1 if it is skipped, 0 if it occurs once."""
    wall = datetime.combine(day, time()) + timedelta(hours=hour, minutes=minute)
    once, again = utc_of(wall, zone), utc_of(wall, zone, 1)
    return (again > once) - (again < once)


def _find_gaps(day: date, slots: Sequence[Slot], zone: str) -> list[Block]:
    """Return blocks for the rows, or halves of rows, that do not exist on a day."""
    has_change = _changes_offset(day, zone)
    gaps: list[Block] = []
    for index, slot in enumerate(slots):
        if not has_change and not slot.fold:
            continue
        for half in (0, 1):
            shift = _find_shift(day, slot.hour, 30 * half, zone)
            if (shift > 0) if slot.fold else (shift >= 0):
                continue
            start = index * STEPS_PER_HOUR + half * MIN_STEPS
            if gaps and gaps[-1].end == start:
                gaps[-1] = replace(gaps[-1], length=gaps[-1].length + MIN_STEPS)
            else:
                gaps.append(Block(start, MIN_STEPS))
    return gaps


def _begin_slot(day: date, slot: Slot, zone: str) -> int:
    wall = datetime.combine(day, time()) + timedelta(hours=slot.hour)
    if slot.fold and _find_shift(day, slot.hour, 30, zone) <= 0:
        # The hour is not repeated on this day, so the second row starts and ends at the next hour.
        wall += timedelta(hours=1)
    return int(utc_of(wall, zone, slot.fold).timestamp())


def _shown_rows(slots: list[Slot], blocks: list[Block]) -> range:
    """Return the rows from the first to the last event, and at least from FIRST_HOUR to LAST_HOUR."""
    first = min([slots.index(Slot(FIRST_HOUR)), *(block.start // STEPS_PER_HOUR for block in blocks)])
    last = max([slots.index(Slot(LAST_HOUR)), *(-(-block.end // STEPS_PER_HOUR) for block in blocks)])
    return range(first, last)


# Blocks ------------------------------------------------------------------------------------------


def _make_block(row: Row, entry: Entry, slots: list[Slot]) -> Block:
    """Return the block of an event, measured in steps from midnight."""
    start = _find_step(row["start_utc"], row["timezone"], entry.first, slots)
    last = _find_step(max(row["start_utc"], row["end_utc"] - SECOND), row["timezone"], entry.first, slots)
    return Block(start, max(MIN_STEPS, last + 1 - start), entry)


def _find_step(utc: datetime, zone: str, day: date, slots: list[Slot]) -> int:
    local = in_zone(utc, zone)
    hour = local.hour + 24 * (local.date() - day).days
    slot = Slot(hour, local.fold)
    # An hour can occur twice in the event's zone but only once in the site's zone.
    index = slots.index(slot if slot in slots else Slot(hour))
    return index * STEPS_PER_HOUR + local.minute * STEPS_PER_HOUR // 60


def _place_side_by_side(blocks: list[Block], max_columns: int) -> list[Block]:
    """Place overlapping blocks in columns of equal width."""
    placed: list[Block] = []
    group: list[Block] = []
    end = 0
    for block in sorted(blocks, key=lambda block: (block.start, -block.length)):
        if block.start >= end:
            placed += _divide(group, max_columns)
            group = []
        group.append(block)
        end = max(end, block.end)
    return [*placed, *_divide(group, max_columns)]


def _divide(group: list[Block], max_columns: int) -> list[Block]:
    """Place each block in the first free column. Combine all blocks beyond the last column into one narrow block."""
    ends: list[int] = []
    columns: list[int] = []
    for block in group:
        column = next((n for n, end in enumerate(ends) if end <= block.start), len(ends))
        ends[column : column + 1] = [block.end]
        columns.append(column)
    total = len(ends) if len(ends) <= max_columns else max(1, max_columns - 1)
    placed = list(zip(group, columns, strict=True))
    shown = [replace(block, column=column, columns=total) for block, column in placed if column < total]
    shown = [replace(block, width=_find_width(block, shown)) for block in shown]
    rest = [block for block, column in placed if column >= total]
    if not rest:
        return shown
    start, end = min(block.start for block in rest), max(block.end for block in rest)
    narrow = Block(start, end - start, count=len(rest))
    return [*[replace(block, beside_rest=True) for block in shown], narrow]


def _find_width(block: Block, group: list[Block]) -> int:
    """Return how many columns a block can span without touching another one."""
    beside = [
        other.column
        for other in group
        if other.column > block.column and other.start < block.end and other.end > block.start
    ]
    return min(beside, default=block.columns) - block.column


# Bars --------------------------------------------------------------------------------------------


def _make_bars(days: list[WeekDay], long: list[Entry]) -> list[Bar]:
    """Return the bars that fit in a lane; each day's `hidden` counts the others."""
    first, last = days[0].date, days[-1].date
    bars: list[Bar] = []
    lanes: list[date] = []  # last occupied day of each lane
    entries = [entry for entry in long if entry.first <= last and entry.last >= first]
    entries += [entry for day in days for entry in day.all_day]
    for entry in sorted(entries, key=lambda entry: (max(entry.first, first), entry.first, first - entry.last)):
        begin, end = max(entry.first, first), min(entry.last, last)
        lane = next((n for n, taken in enumerate(lanes) if taken < begin), len(lanes))
        if lane < MAX_LANES:
            lanes[lane : lane + 1] = [end]
            days_count = (end - begin).days + 1
            bars.append(Bar(entry, (begin - first).days, days_count, entry.first < first, entry.last > last))
        else:
            for day in days:
                if begin <= day.date <= end:
                    day.hidden += 1
                    day.all_day = [other for other in day.all_day if other is not entry]
    return bars
