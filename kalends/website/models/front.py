"""The front page: which events are cards, which are rows of the coming days, and how much fits."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from kalends.rendering.cards import Card, PageImage
from kalends.website.models.grid import Entry, Row
from kalends.website.models.page_parts import measure_entry, measure_tiles

MAX_TODAY, MAX_TOMORROW, MAX_WEEKEND, MAX_FEATURED = 6, 3, 6, 3
MAX_ROWS: Final = 5
CARD_WIDTH: Final = 800  # twice the width of a card on the page
MAX_FRONT_BYTES: Final = 23_500
# Bytes of markup per row, day and category, excluding text.
ROW_BYTES: Final = 60
DAY_BYTES: Final = 230
CATEGORY_BYTES: Final = 210


@dataclass(frozen=True, slots=True)
class StripLink:
    """A link to a filtered list, with the number of its events."""

    name: str
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    url: str  # of a page with all the section's events; empty if there is none
    cards: Sequence[Card]
    is_dated: bool  # whether the cards show their days


@dataclass(frozen=True, slots=True)
class DayRows:
    """A day's events that are not cards: the first few, and how many more there are."""

    day: date
    name: str
    url: str
    entries: Sequence[Entry]
    more: int


@dataclass(frozen=True, slots=True)
class CategoryTile:
    name: str
    url: str
    image: PageImage | None
    hue: int


@dataclass(frozen=True, slots=True)
class FrontParts:
    sections: Sequence[Section]
    days: Sequence[DayRows]
    categories: Sequence[CategoryTile]


class Picker:
    """Picks events for sections. No event is picked twice, and other dates of a picked series come last."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.picked: set[int] = set()
        self._series: set[int] = set()

    def pick(self, days: Collection[date], limit: int) -> list[int]:
        """Pick the most notable events of some days, and return their IDs in the order of the page."""
        others = [row for row in self.rows if row["day"] in days and row["id"] not in self.picked]
        first: list[Row] = []
        again: list[Row] = []
        series = set(self._series)
        for row in sorted(others, key=lambda row: (row["nth"], row["day"])):
            (again if row["series_id"] in series else first).append(row)
            series.update({row["series_id"]} - {None})
        best = [*first, *again][:limit]
        self.picked.update(row["id"] for row in best)
        self._series.update({row["series_id"] for row in best} - {None})
        return [row["id"] for row in sorted(best, key=_find_position)]

    def pick_featured(self, ids: Iterable[int]) -> list[int]:
        found = [event_id for event_id in ids if event_id not in self.picked][:MAX_FEATURED]
        self.picked.update(found)
        return found

    def list_others(self, day: date) -> tuple[list[Row], int]:
        """Return a day's most notable events that are not picked, ordered by time, and how many others there are."""
        of_day = [row for row in self.rows if row["day"] == day]
        others = [row for row in of_day if row["id"] not in self.picked]
        hidden = of_day[0]["of_day"] - len(of_day) if of_day else 0
        shown = sorted(others[:MAX_ROWS], key=_find_position)
        return shown, hidden + len(others) - len(shown)


def _find_position(row: Row) -> tuple[object, ...]:
    """Return an event's sort key: after the others come ongoing events, then finished ones, whatever their day."""
    return (row["is_over"], row["is_running"], row["day"], row["start_local"], row["id"])


def shrink_image(image: PageImage | None) -> PageImage | None:
    """Drop the sizes of an image that are larger than a card needs."""
    if image is None:
        return None
    sizes = image.srcset.split(", ")
    widths = [int(size.rpartition(" ")[2][:-1]) for size in sizes]
    count = bisect_left(widths, CARD_WIDTH) + 1
    return replace(image, srcset=", ".join(sizes[:count]))


def fit(parts: FrontParts) -> FrontParts:
    """Shrink an overfull page: drop the categories, then rows, then sections from the last to the second."""
    if _measure(parts) > MAX_FRONT_BYTES:
        parts = replace(parts, categories=())
    for limit in range(MAX_ROWS - 1, -1, -1):
        if _measure(parts) > MAX_FRONT_BYTES:
            parts = replace(parts, days=[_cut(day, limit) for day in parts.days])
    while _measure(parts) > MAX_FRONT_BYTES and len(parts.sections) > 1:
        *sections, last = parts.sections
        starts = [card.when.first for card in last.cards]
        days = [replace(day, more=day.more + starts.count(day.day)) for day in parts.days]
        parts = replace(parts, sections=sections, days=days)
    return replace(parts, days=[day for day in parts.days if day.entries or day.more])


def _cut(day: DayRows, limit: int) -> DayRows:
    return replace(day, entries=day.entries[:limit], more=day.more + len(day.entries[limit:]))


def _measure(parts: FrontParts) -> int:
    tiles = measure_tiles([card for section in parts.sections for card in section.cards])
    entries = [entry for day in parts.days for entry in day.entries]
    rows = sum(ROW_BYTES + measure_entry(entry) for entry in entries) + DAY_BYTES * len(parts.days)
    return tiles + rows + sum(map(_measure_category, parts.categories))


def _measure_category(tile: CategoryTile) -> int:
    texts = [tile.name, tile.url, tile.image.src if tile.image else ""]
    return CATEGORY_BYTES + sum(len(text.encode()) for text in texts)
