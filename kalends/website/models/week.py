"""The week view: an hour grid whose blocks may overlap, and bars for multi-day and all-day events.

Each grid row is an hour in the site's local time. The hour repeated at the end of daylight saving time has two rows;
an hour missing on a day appears as a gap. Several hours without any event share one row. As on all pages, an event
appears at its local time, and a night belongs to the day on which it began, so the grid can continue after midnight.
"""

from collections.abc import Iterable
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
MIN_STEPS: Final = 6  # half an hour, the smallest block that is readable and easy to tap
STACK_STEPS: Final = 9  # events that start 45 minutes apart may cover each other
MIN_QUIET_ROWS: Final = 3  # rows without events that become one row
# The heights of an hour, a line and a block's edges in week.css, in rem.
HOUR_HEIGHT, LINE_HEIGHT, EDGES = 3.5, 1, 0.375
MAX_LINES: Final = 12
MAX_COLUMNS: Final = 2
MAX_LANES: Final = 5


class Slot(NamedTuple):
    """A row of the grid.

    Hours 24 and later belong to the next morning; `fold` is 1 for the second row of a repeated hour.
    """

    hour: int
    fold: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle in a day's column, measured in steps from the top.

    `place` is the CSS class of its horizontal position: `left` and `right` halves, `under` and `over` for blocks that
    partly cover each other, or empty for the full width. A block without an entry represents `count` events that do
    not fit.
    """

    start: int
    length: int
    entry: Entry | None = None
    count: int = 0
    place: str = ""
    lines: int = 0  # lines of text that fit into the part that no other block covers
    beside_rest: bool = False  # leaves room for the narrow block of events that do not fit

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def css_classes(self) -> str:
        """Return the position as CSS classes, because the Content-Security-Policy forbids style attributes."""
        hour, step = divmod(self.start, STEPS_PER_HOUR)
        hours, steps = divmod(self.length, STEPS_PER_HOUR)
        parts = [("t", hour), ("m", step), ("l", hours), ("k", steps), ("r", self.lines)]
        names = [f"{letter}{number}" for letter, number in parts if number]
        names += [self.place] if self.place else []
        return " ".join([*names, "beside-rest"] if self.beside_rest else names)


@dataclass(frozen=True, slots=True)
class Bar:
    """A multi-day or all-day event. `start` is the number of days since the first day of the week."""

    entry: Entry
    start: int
    days: int
    continues_before: bool
    continues_after: bool
    in_day: bool  # on phones, it is listed on its first day


@dataclass(slots=True)
class WeekDay:
    date: date
    is_today: bool
    is_past: bool
    all_day: list[Entry] = field(default_factory=list[Entry])
    blocks: list[Block] = field(default_factory=list[Block])
    gaps: list[Block] = field(default_factory=list[Block])
    hidden: int = 0  # events that are not on the page
    # Unix times at which each row begins and the last one ends, to draw the current-time line; only for today
    slot_times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HourGrid:
    days: list[WeekDay]
    hours: list[time]
    bars: list[Bar]

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
    max_lanes: int = MAX_LANES,
) -> HourGrid:
    """Arrange the events of the week that begins on `first`. `zone` is the site's time zone.

    `rows` are the same events as `entries`; `of_day` in a row is the number of single-day events on that day. At most
    `max_columns` events appear side by side, at most `max_entries` per day in total, and bars in `max_lanes` rows.
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
    shown = _shown_rows(slots, [block for day in days for block in day.blocks])
    begins = [slots[hours.start] for hours in shown]
    offsets = {hours.start: (hours.start - row) * STEPS_PER_HOUR for row, hours in enumerate(shown)}
    quiet = [Block(row * STEPS_PER_HOUR, STEPS_PER_HOUR) for row, hours in enumerate(shown) if len(hours) > 1]
    for day in days:
        day.hidden = totals.get(day.date, 0) - len(day.all_day) - len(day.blocks)
        moved = [replace(block, start=block.start - offsets[block.start // STEPS_PER_HOUR]) for block in day.blocks]
        day.blocks = _place_blocks(moved, max_columns)
        day.gaps = quiet + _find_gaps(day.date, shown, slots, zone)
        if day.is_today:
            end = Slot(slots[shown[-1].stop - 1].hour + 1)
            day.slot_times = tuple(_begin_slot(day.date, slot, zone) for slot in (*begins, end))
    return HourGrid(days, [time(slot.hour % 24) for slot in begins], _make_bars(days, long, max_lanes))


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


def _find_gaps(day: date, shown: list[range], slots: list[Slot], zone: str) -> list[Block]:
    """Return blocks for the rows, or half rows, that do not exist on a day."""
    has_change = _changes_offset(day, zone)
    gaps: list[Block] = []
    for index, hours in enumerate(shown):
        slot = slots[hours.start]
        if len(hours) > 1 or (not has_change and not slot.fold):
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


def _shown_rows(slots: list[Slot], blocks: list[Block]) -> list[range]:
    """Return the slots of each row from the first to the last event, including at least FIRST_HOUR to LAST_HOUR."""
    spans = [range(block.start // STEPS_PER_HOUR, -(-block.end // STEPS_PER_HOUR)) for block in blocks]
    busy = {slot for span in spans for slot in span}
    at = min(busy | {slots.index(Slot(FIRST_HOUR))})
    last = max(busy | {slots.index(Slot(LAST_HOUR)) - 1}) + 1
    rows: list[range] = []
    while at < last:
        end = at
        while end < last and end not in busy:
            end += 1
        end = end if end - at >= MIN_QUIET_ROWS else at + 1
        rows.append(range(at, end))
        at = end
    return rows


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


def _place_blocks(blocks: list[Block], max_columns: int) -> list[Block]:
    """Place overlapping blocks side by side, or let them cover each other."""
    placed: list[Block] = []
    group: list[Block] = []
    end = 0
    for block in sorted(blocks, key=lambda block: (block.start, -block.length)):
        if block.start >= end:
            placed += _place_group(group, max_columns)
            group = []
        group.append(block)
        end = max(end, block.end)
    return [*placed, *_place_group(group, max_columns)]


def _place_group(group: list[Block], max_columns: int) -> list[Block]:
    """Place each block in the first free column; combine blocks without a free column into one narrow block.

    If all overlapping blocks start far enough apart to keep each beginning readable, the second column covers part of
    the first. Otherwise, the columns are side by side.
    """
    columns: list[list[int]] = []  # for each column, the numbers of its blocks
    shown: list[tuple[Block, int]] = []
    pairs: list[tuple[int, int]] = []  # blocks that overlap, the earlier one first
    rest: list[Block] = []
    for block in group:
        # Within a column, only the last block can overlap a later one.
        taken = [column[-1] for column in columns if shown[column[-1]][0].end > block.start]
        column = next((n for n, numbers in enumerate(columns) if numbers[-1] not in taken), len(columns))
        if column == max_columns:
            rest.append(block)
            continue
        if column == len(columns):
            columns.append([])
        columns[column].append(len(shown))
        pairs += [(earlier, len(shown)) for earlier in taken]
        shown.append((block, column))
    is_stack = all(shown[later][0].start - shown[earlier][0].start >= STACK_STEPS for earlier, later in pairs)
    places = ("under", "over") if is_stack else ("left", "right")
    beside = {number for pair in pairs for number in pair}
    visible = [block.length for block, _ in shown]
    for earlier, later in pairs if is_stack else ():
        visible[earlier] = min(visible[earlier], shown[later][0].start - shown[earlier][0].start)
    blocks = [
        replace(
            block,
            place=places[column] if number in beside else "",
            lines=_count_lines(visible[number]),
            beside_rest=bool(rest),
        )
        for number, (block, column) in enumerate(shown)
    ]
    if not rest:
        return blocks
    start = rest[0].start
    return [*blocks, Block(start, max([block.end for block in rest]) - start, count=len(rest))]


def _count_lines(steps: int) -> int:
    lines = int((steps * HOUR_HEIGHT / STEPS_PER_HOUR - EDGES) / LINE_HEIGHT)
    return min(MAX_LINES, max(1, lines))


# Bars --------------------------------------------------------------------------------------------


def _make_bars(days: list[WeekDay], long: list[Entry], max_lanes: int) -> list[Bar]:
    """Return the bars that fit in a lane; each day's `hidden` counts the others.

    A multi-day event also becomes an all-day entry of its first day if it begins after today or, in other weeks,
    after the first day.
    """
    first, last = days[0].date, days[-1].date
    today = next((n for n, day in enumerate(days) if day.is_today), 0)
    bars: list[Bar] = []
    lanes: list[date] = []  # last occupied day of each lane
    entries = [entry for entry in long if entry.first <= last and entry.last >= first]
    entries += [entry for day in days for entry in day.all_day]
    for entry in sorted(entries, key=lambda entry: (max(entry.first, first), entry.first, first - entry.last)):
        begin, end = max(entry.first, first), min(entry.last, last)
        lane = next((n for n, taken in enumerate(lanes) if taken < begin), len(lanes))
        if lane < max_lanes:
            lanes[lane : lane + 1] = [end]
            start, days_count = (begin - first).days, (end - begin).days + 1
            in_day = entry.first == entry.last
            if not in_day and start > today:
                # Phones hide past days and list events that began earlier for the whole week.
                days[start].all_day.append(entry)
                in_day = True
            bars.append(Bar(entry, start, days_count, entry.first < first, entry.last > last, in_day))
        else:
            for day in days:
                if begin <= day.date <= end:
                    day.hidden += 1
                    day.all_day = [other for other in day.all_day if other is not entry]
    return bars
