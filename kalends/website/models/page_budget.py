"""The size budget of pages: less than 60 kB of HTML, styles and scripts before compression.

If texts are long or days are full, a page shows less and links to the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kalends.website.models.cards import Card
from kalends.website.models.grid import Day, Entry, Week
from kalends.website.models.week import HourGrid

# The budget that styles, scripts and the page layout leave for events.
MAX_CARDS_BYTES: Final = 26_000
MAX_ENTRIES_BYTES: Final = 17_000
# The markup around the texts of one card, image, entry or bar.
CARD_BYTES: Final = 615
IMAGE_BYTES: Final = 220
ENTRY_BYTES: Final = 62
BAR_BYTES: Final = 96
BLOCK_BYTES: Final = 60  # in addition to those of an entry
REST_BYTES: Final = 220


def trim(cards: Sequence[Card], budget: int) -> list[Card]:
    """Drop the excerpts of all cards if together they exceed the budget, then the images."""
    if _measure_cards(cards) > budget:
        cards = [replace(card, excerpt="") for card in cards]
    if _measure_cards(cards) > budget:
        cards = [replace(card, image=None) for card in cards]
    return list(cards)


def fits(weeks: Iterable[Week], agenda: Iterable[Day]) -> bool:
    """Return whether a month of these weeks and its agenda fit into the budget."""
    bars = [cell.entry for week in weeks for lane in week.lanes for cell in lane if cell.entry]
    entries = [*bars]
    entries += [entry for week in weeks for day in week.days for entry in day.entries]
    entries += [entry for day in agenda for entry in (*day.starting, *day.entries)]
    return sum(map(_measure_entry, entries)) + BAR_BYTES * len(bars) <= MAX_ENTRIES_BYTES


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
    return CARD_BYTES + (IMAGE_BYTES if image else 0) + sum(map(_count_bytes, texts))


def _measure_entry(entry: Entry) -> int:
    return ENTRY_BYTES + _count_bytes(entry.title) + _count_bytes(entry.url)


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
