"""Two independent programs that expand the rules of a calendar to dates: start, end and title."""

import json
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self

import icalendar
import recurring_ical_events

from tests.feeds.ical_readers import NODE

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


class RuleReader:
    """ical.js in a Node process that expands one calendar after the other."""

    def __enter__(self) -> Self:
        script = Path(__file__).with_name("expand_ical.mjs")
        self._process = subprocess.Popen(
            ["node", str(script), str(NODE / "node_modules/ical.js/dist/ical.js")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def expand(self, text: str, until: datetime) -> list[Entry]:
        request = {"text": text, "until": until.timestamp()}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return sorted((start, end, title) for start, end, title in json.loads(self._process.stdout.readline()))
