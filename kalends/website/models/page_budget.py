"""The size budget of pages: less than 60 kB of HTML, styles and scripts before compression.

If texts are long or days are full, a page shows less and links to the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kalends.website.models.cards import Card
from kalends.website.models.grid import Entry
from kalends.website.models.highlights import Highlights
from kalends.website.models.month_cells import MonthLayout
from kalends.website.models.week import HourGrid

# The budget that styles, scripts and the page layout leave for events.
MAX_CARDS_BYTES: Final = 26_000
MAX_RESULTS_BYTES: Final = 18_000  # of a search, beside the filters
MAX_ENTRIES_BYTES: Final = 19_500
MAX_FEATURED_BYTES: Final = 5_000
# The markup around the texts of one card, image, entry, bar, free place, link or tile.
CARD_BYTES: Final = 615
IMAGE_BYTES: Final = 220
ENTRY_BYTES: Final = 62
BAR_BYTES: Final = 130
BLOCK_BYTES: Final = 60  # in addition to those of an entry
REST_BYTES: Final = 220
SPACE_BYTES: Final = 48
MORE_BYTES: Final = 115
TILE_BYTES: Final = 370
STATE_BYTES: Final = 45  # in addition to the label of the badge
REPEATS_BYTES: Final = 35  # in addition to the text of the mark


def trim(cards: Sequence[Card], budget: int) -> list[Card]:
    """Drop the excerpts of all cards if together they exceed the budget, then the images."""
    if _measure_cards(cards) > budget:
        cards = [replace(card, excerpt="") for card in cards]
    if _measure_cards(cards) > budget:
        cards = [replace(card, image=None) for card in cards]
    return list(cards)


def measure_month(layout: MonthLayout, highlights: Highlights) -> int:
    """Return the size of a month and the highlights above it, of which MAX_ENTRIES_BYTES are available."""
    days = [day for week in layout.weeks for day, _ in week] + list(layout.agenda)
    slots = [slot for week in layout.weeks for _, cell in week for slot in cell]
    entries = [slot.entry for slot in slots if slot.entry]
    entries += [entry for day in layout.agenda for entry in (*day.starting, *day.entries)]
    bars, spaces = sum(slot.days > 0 for slot in slots), sum(slot.entry is None for slot in slots)
    links = sum(day.more_count > 0 for day in days)
    markup = BAR_BYTES * bars + SPACE_BYTES * spaces + MORE_BYTES * links + _measure_highlights(highlights)
    return markup + sum(map(_measure_entry, entries))


def _measure_highlights(highlights: Highlights) -> int:
    tiles = [*highlights.featured, *[replace(card, image=None) for card in highlights.weekend]]
    return _measure_cards(tiles) - (CARD_BYTES - TILE_BYTES) * len(tiles)


def week_fits(grid: HourGrid) -> bool:
    """Return whether a week fits into the budget."""
    all_blocks = [block for day in grid.days for block in day.blocks]
    blocks = [block.entry for block in all_blocks if block.entry]
    bars = [*[bar.entry for bar in grid.bars], *[entry for day in grid.days for entry in day.all_day]]
    markup = BLOCK_BYTES * len(blocks) + BAR_BYTES * len(bars) + REST_BYTES * (len(all_blocks) - len(blocks))
    return sum(map(_measure_entry, [*blocks, *bars])) + markup <= MAX_ENTRIES_BYTES


def _measure_cards(cards: Iterable[Card]) -> int:
    return sum(map(_measure_card, cards))


def _measure_card(card: Card) -> int:
    image = card.image
    texts = [card.title, card.url, card.excerpt, card.place, card.town, card.cost]
    texts += [image.src, image.srcset, image.alt] if image else []
    return CARD_BYTES + (IMAGE_BYTES if image else 0) + sum(map(_count_bytes, texts)) + _measure_state(card)


def _measure_entry(entry: Entry) -> int:
    return ENTRY_BYTES + _count_bytes(entry.title) + _count_bytes(entry.url) + _measure_state(entry)


def _measure_state(shown: Card | Entry) -> int:
    """Measure the badge of the state and the mark of a series."""
    state = STATE_BYTES + _count_bytes(shown.state.label) if shown.state else 0
    return state + (REPEATS_BYTES + _count_bytes(shown.repeats) if shown.repeats else 0)


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
