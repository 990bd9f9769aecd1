"""What the home page shows above its view: featured events and those of the weekend."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from kalends.website.models.cards import Card

SATURDAY: Final = 6


@dataclass(frozen=True, slots=True)
class Highlights:
    featured: Sequence[Card] = ()
    weekend: Sequence[Card] = ()

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(card.image.src for card in self.featured if card.image)


def find_weekend(today: date) -> tuple[date, date]:
    """Return the rest of the current weekend, or the next one."""
    sunday = today + timedelta(days=7 - today.isoweekday())
    return max(today, sunday - timedelta(days=1)), sunday
