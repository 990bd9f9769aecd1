"""Two independent programs that expand the rules of a calendar to dates: start, end and title."""

from datetime import UTC, date, datetime
from typing import Any

import icalendar
import recurring_ical_events

from tests.feeds.ical_readers import NodeProcess

# Start and end in UTC, of whole days the first day and the day after the last; and the title.
Entry = tuple[str, str, str]


def expand_with_recurring_ical_events(text: str, since: datetime, until: datetime) -> list[Entry]:
    calendar = icalendar.Calendar.from_ical(text)
    return sorted(_read(event) for event in recurring_ical_events.of(calendar).between(since, until))


def _read(event: Any) -> Entry:
    start = event["DTSTART"].dt
    return _format(start), _format(event["DTEND"].dt if "DTEND" in event else start), str(event["SUMMARY"])


def _format(value: date | datetime) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat()


class RuleReader(NodeProcess):
    """Expands one calendar after the other with ical.js."""

    script = "expand_ical.mjs"

    def expand(self, text: str, until: datetime) -> list[Entry]:
        entries = self.ask({"text": text, "until": until.timestamp()})
        return sorted((start, end, title) for start, end, title in entries)
