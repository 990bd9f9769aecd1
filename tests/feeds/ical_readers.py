"""Two independent readers of iCalendar, and a subscriber who keeps what they find by UID.

`icalendar` reads in this process, `ical.js` in one Node process that stays open.
"""

import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

import icalendar

NODE = Path(__file__).resolve().parent.parent / "node"


@dataclass(frozen=True)
class FeedEntry:
    """One entry as a reader understood it. `start` and `end` are instants; of whole days, the days."""

    uid: str
    sequence: int
    status: str
    summary: str
    location: str
    start: str
    end: str
    all_day: bool


def read_with_icalendar(text: str) -> list[FeedEntry]:
    calendar = icalendar.Calendar.from_ical(text)
    zones = {str(zone["TZID"]): zone.to_tz(lookup_tzid=False) for zone in calendar.walk("VTIMEZONE")}
    return [_parse_event(event, zones) for event in calendar.walk("VEVENT")]


def _parse_event(event: Any, zones: dict[str, Any]) -> FeedEntry:
    start = _utc_instant(event["DTSTART"], zones)
    end = _utc_instant(event["DTEND"], zones) if "DTEND" in event else start
    return FeedEntry(
        uid=str(event["UID"]),
        sequence=int(event["SEQUENCE"]),
        status=str(event["STATUS"]),
        summary=str(event["SUMMARY"]),
        location=str(event.get("LOCATION", "")),
        start=start,
        end=end,
        all_day=not isinstance(event["DTSTART"].dt, datetime),
    )


def _utc_instant(value: Any, zones: dict[str, Any]) -> str:
    """By the rules that the feed itself brings, not by those of this machine."""
    time: date | datetime = value.dt
    if not isinstance(time, datetime):
        return time.isoformat()
    zone = value.params.get("TZID")
    if zone is not None:
        time = time.replace(tzinfo=zones[str(zone)])
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class NodeProcess:
    """A Node process with ical.js that answers each line of JSON with another one."""

    script: ClassVar[str]

    def __enter__(self) -> Self:
        script = Path(__file__).with_name(self.script)
        self._process = subprocess.Popen(
            ["node", str(script), str(NODE / "node_modules/ical.js/dist/ical.js")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def ask(self, request: object) -> Any:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class IcalJs(NodeProcess):
    """Reads one feed after the other."""

    script = "read_ical.mjs"

    def read(self, text: str) -> list[FeedEntry]:
        return [FeedEntry(**entry) for entry in self.ask(text)]


class Subscriber:
    """A calendar that is fed: one entry per UID, replaced only by what is not older."""

    def __init__(self) -> None:
        self.entries: dict[str, FeedEntry] = {}

    def update(self, entries: list[FeedEntry]) -> None:
        uids = [entry.uid for entry in entries]
        assert len(uids) == len(set(uids)), "one UID twice in a feed"
        for entry in entries:
            previous = self.entries.get(entry.uid)
            assert previous is None or entry.sequence >= previous.sequence, "SEQUENCE fell"
            assert (
                previous is None
                or entry == previous
                or _same_schedule(entry, previous)
                or entry.sequence > previous.sequence
            )
            self.entries[entry.uid] = entry
        # A subscription shows what the feed has: what is gone from it goes.
        self.entries = {uid: entry for uid, entry in self.entries.items() if uid in set(uids)}


def _same_schedule(one: FeedEntry, other: FeedEntry) -> bool:
    """Time, place and status are the same: SEQUENCE need not differ."""
    return [getattr(one, name) == getattr(other, name) for name in ("start", "end", "status", "location")] == [
        True
    ] * 4


def unfold_lines(text: str) -> list[str]:
    return text.replace("\r\n ", "").split("\r\n")


def next_day(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
