"""The highlights of the home page: featured events and events of the weekend."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from kalends.website.models.cards import Card


@dataclass(frozen=True, slots=True)
class Highlights:
    featured: Sequence[Card] = ()
    weekend: Sequence[Card] = ()
    cache_tags: tuple[str, ...] = ()

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(card.image.src for card in self.featured if card.image)


def find_weekend(today: date) -> tuple[date, date]:
    """Return the rest of the current weekend, or the next one."""
    sunday = today + timedelta(days=7 - today.isoweekday())
    return max(today, sunday - timedelta(days=1)), sunday
