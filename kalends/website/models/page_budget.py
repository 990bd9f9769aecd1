"""A page stays light however full its site is: below 60 kB of HTML, style and script, before compression.

Where texts are long or days are full, a page shows less of each and leads to the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kalends.website.models.cards import Card
from kalends.website.models.grid import Day, Entry, Week

# What style, script and the frame of a page leave for its events.
ROOM_FOR_CARDS: Final = 26_000
ROOM_FOR_ENTRIES: Final = 17_000
# The markup around the texts of one.
CARD: Final = 600
PICTURE: Final = 220
ENTRY: Final = 62
BAR: Final = 60


def lighten(cards: Sequence[Card], room: int) -> list[Card]:
    """Cards that would weigh too much together lose their excerpts, then their pictures."""
    if _weigh_cards(cards) > room:
        cards = [replace(card, excerpt="") for card in cards]
    if _weigh_cards(cards) > room:
        cards = [replace(card, picture=None) for card in cards]
    return list(cards)


def is_light(weeks: Iterable[Week], agenda: Iterable[Day]) -> bool:
    """Whether a month of these weeks, with the days that a phone lists below, is."""
    bars = [cell.entry for week in weeks for lane in week.lanes for cell in lane if cell.entry]
    shown = [*bars]
    shown += [entry for week in weeks for day in week.days for entry in day.entries]
    shown += [entry for day in agenda for entry in (*day.begins, *day.entries)]
    return sum(map(_weigh_entry, shown)) + BAR * len(bars) <= ROOM_FOR_ENTRIES


def _weigh_cards(cards: Iterable[Card]) -> int:
    return sum(map(_weigh_card, cards))


def _weigh_card(card: Card) -> int:
    picture = card.picture
    shown = [card.title, card.url, card.excerpt, card.place, card.town, card.cost]
    shown += [picture.src, picture.srcset, picture.alt] if picture else []
    return CARD + (PICTURE if picture else 0) + sum(map(_weigh, shown))


def _weigh_entry(entry: Entry) -> int:
    return ENTRY + _weigh(entry.title) + _weigh(entry.url)


def _weigh(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
