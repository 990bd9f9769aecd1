"""How much people can follow, how often they can ask for emails, and how long data is kept."""

from datetime import timedelta
from typing import Final

from kalends.core.limits import Limit

MAX_EVENTS: Final = 50  # per address, and in one form
MAX_FOLLOWED: Final = {"query": 20, "event_id": MAX_EVENTS}  # per address
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
# Refusals in a row that end emails to an address. There is never only one, because relays also fail for an hour.
MAX_DEAD_REFUSALS: Final = 2
MAX_REFUSALS: Final = 3
MAX_CREDIBLE_REFUSALS: Final = 20
MAX_REFUSED_SHARE: Final = 0.2
REFUSED_DELAY: Final = timedelta(hours=1)
RETRY_DELAY: Final = timedelta(minutes=15)


def is_credible(recipients: int, refused: int) -> bool:
    """Return whether refusals are about addresses. If there are too many, the relay is the likely cause."""
    return refused <= MAX_CREDIBLE_REFUSALS or refused <= recipients * MAX_REFUSED_SHARE


def ends_emails(refusals: int, code: str) -> bool:
    """Return whether an address gets no more emails after refusals in a row, the last with this code."""
    return refusals >= (MAX_DEAD_REFUSALS if code in DEAD_CODES else MAX_REFUSALS)
