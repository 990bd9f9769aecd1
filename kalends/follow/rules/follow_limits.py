"""How much people can follow, how often they can ask for emails, and how long data is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kalends.core.limits import Limit

MAX_LISTS: Final = 20  # per address
MAX_EVENTS: Final = 50  # per address, and in one form
PER_NETWORK: Final = Limit(10, 360)  # form posts
PER_ADDRESS: Final = Limit(3, 1200)  # confirmations and new links
PER_SITE: Final = Limit(500, 7.2)  # the same, for all addresses
CONFIRM_PERIOD: Final = timedelta(hours=48)
PAST_PERIOD: Final = timedelta(days=7)  # after an event that people followed
SUPPRESSED_PERIOD: Final = timedelta(days=365)
MIN_SHOWN: Final = 5  # lists with fewer followers are only counted together
SHOWN_DAYS: Final = 90
DEFAULT_WEEKDAY: Final = 4
DEFAULT_HOUR: Final = 8

# Refusals ------------------------------------------------------------------------------------------------

# Enhanced codes that say that an address does not exist or is closed.
DEAD_CODES: Final = ("5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1")
MAX_REFUSALS: Final = 3  # in a row
MAX_RUN_REFUSALS: Final = 20
MAX_REFUSED_SHARE: Final = 0.2
PAUSE: Final = timedelta(hours=1)
RETRY_DELAY: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Refusal:
    site_id: int
    follower_id: str
    code: str  # enhanced, such as 5.1.1, or three digits

    @property
    def is_final(self) -> bool:
        return self.code in DEAD_CODES


def is_credible(refusals: Sequence[Refusal], recipients: int) -> bool:
    """Return whether refusals are about addresses. If there are too many, the relay is the likely cause."""
    return len(refusals) <= MAX_RUN_REFUSALS or len(refusals) <= recipients * MAX_REFUSED_SHARE
