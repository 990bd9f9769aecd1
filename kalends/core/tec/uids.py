"""UIDs of events in the iCalendar feeds of The Events Calendar."""

from datetime import UTC, datetime


def compute_uid(post_id: int, start_local: datetime, end_local: datetime, host: str) -> str:
    """Return the UID that subscribers know. TEC reads the local times as if they were UTC."""
    return f"{post_id}-{_seconds(start_local)}-{_seconds(end_local)}@{host}"


def _seconds(local: datetime) -> int:
    return round(local.replace(tzinfo=UTC).timestamp())
