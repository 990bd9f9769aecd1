"""The system clock. Nothing else reads the time."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time in UTC, in whole seconds as the API shows them."""
    return datetime.now(UTC).replace(microsecond=0)
