"""The statuses of events, venues and organizers, and how a caller's wish becomes one."""

from datetime import datetime
from typing import Final

# Order of the interface description; `trash` is a move of an existing record, never a beginning.
STATUSES: Final = ("publish", "draft", "pending", "private", "future", "trash")
WRITABLE: Final = STATUSES
# What those who may read it see in a list when no status is asked for.
LISTED: Final = STATUSES[:-1]


def settle_status(asked: str, *, may_publish: bool, date_utc: datetime, now: datetime) -> str:
    """The status that a record gets: publishing needs the right, and the future is scheduled."""
    if asked in ("draft", "pending", "trash"):
        return asked
    if not may_publish:
        return "pending"
    if asked == "private":
        return asked
    return "future" if date_utc > now else "publish"
