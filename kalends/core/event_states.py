"""The states of an event (`event_status`): whether it takes place as announced.

Unlike the status of a post (core/statuses.py), the state has no influence on who sees the event.
"""

from typing import Final

SCHEDULED, CANCELLED, POSTPONED, MOVED_ONLINE, SOLD_OUT = STATES = (
    "scheduled",
    "cancelled",
    "postponed",
    "moved_online",
    "sold_out",
)
MAX_REASON_LENGTH: Final = 500
