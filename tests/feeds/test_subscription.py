"""A subscriber never has an event twice, never at a wrong instant, and is never told the same thing anew."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.api.conftest import Start
from tests.api.running_app import Caller, Interface
from tests.feeds.ical_readers import IcalJs, Read, Subscriber, next_day, read_with_icalendar

CHANGES = 500 if os.environ.get("KALENDS_SOAK") else 50
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC", "UTC+5:30", "Asia/Tokyo")
# Around the ends and beginnings of summer time in several of these, and hours that come twice or not at all.
STARTS = (
    "2031-03-30 02:30:00", "2031-03-30 01:59:00", "2031-03-30 03:00:00", "2031-10-26 02:30:00",
    "2031-10-26T02:30:00+01:00", "2031-10-26T02:30:00+02:00", "2031-11-02 01:30:00", "2031-11-02T01:30:00-05:00",
    "2031-03-09 02:30:00", "2031-04-06 01:45:00", "2031-10-05 02:15:00", "2031-07-01 12:00:00", "2031-01-01 00:00:00",
)  # fmt: skip
LENGTHS = ("0", "1", "90", "1440", "20160")


@pytest.fixture(scope="module")
def ical_js() -> Iterator[IcalJs]:
    with IcalJs() as reader:
        yield reader


def feed_of(interface: Interface, path: str = "/events.ics", query: bytes = b"") -> str:
    status, headers, body = interface.raw("GET", path, query=query)
    assert status == 200, body
    assert headers["content-type"] == "text/calendar; charset=utf-8"
    return body.decode()


def expected(record: dict[str, Any], sequence: int) -> Read:
    """What every reader has to understand, from the interface's own answer."""
    whole = record["all_day"]
    utc = [record[f"utc_{side}_date"].replace(" ", "T") + "Z" for side in ("start", "end")]
    days = [record["start_date"][:10], next_day(record["end_date"][:10])]
    start, end = days if whole else utc
    return Read(record["uid"], sequence, "CONFIRMED", record["title"], place_of(record), start, end, whole)


def place_of(record: dict[str, Any]) -> str:
    return record["venue"]["venue"] if record["venue"] else ""


class Author:
    """Changes one event in ways that a subscriber can get wrong."""

    def __init__(self, editor: Caller) -> None:
        self.editor = editor
        self.random = Random(8)
        self.venues = [editor.create("venues", venue=f"Hall {n}")["id"] for n in range(3)]
        self.event = editor.create(
            "events", title="Moving", start_date="2031-01-01 10:00", end_date="2031-01-01 12:00",
            timezone="Europe/Berlin", venue=self.venues[0],
        )  # fmt: skip

    def change(self) -> dict[str, Any]:
        turn = self.random.choice(("time", "zone", "place", "venue", "status", "whole days", "title"))
        return getattr(self, turn.replace(" ", "_"))()

    def time(self) -> dict[str, Any]:
        start = self.random.choice(STARTS)
        length = int(self.random.choice(LENGTHS))
        end = datetime.fromisoformat(start) + timedelta(minutes=length)
        return self._write(start_date=start, end_date=end.isoformat(), all_day=False)

    def zone(self) -> dict[str, Any]:
        return self._write(timezone=self.random.choice(ZONES))

    def place(self) -> dict[str, Any]:
        return self._write(venue=self.random.choice([*self.venues, []]))

    def venue(self) -> dict[str, Any]:
        name = f"Hall {self.random.randrange(1000)}"
        assert self.editor.post(f"/venues/{self.random.choice(self.venues)}", {"venue": name}).status_code == 200
        return self.editor.get(f"/events/{self.event['id']}").json()

    def status(self) -> dict[str, Any]:
        return self._write(status=self.random.choice(("publish", "publish", "draft", "private")))

    def whole_days(self) -> dict[str, Any]:
        return self._write(
            all_day=True, start_date="2031-03-29", end_date=self.random.choice(("2031-03-29", "2031-04-02"))
        )

    def title(self) -> dict[str, Any]:
        return self._write(title=f"Moving {self.random.randrange(1000)}")

    def _write(self, **values: Any) -> dict[str, Any]:
        answer = self.editor.post(f"/events/{self.event['id']}", values)
        if answer.status_code == 400:  # A shorter night can put the end before the start.
            return self.editor.get(f"/events/{self.event['id']}").json()
        assert answer.status_code == 200, answer.text
        return answer.json()


def test_subscriber_has_one_correct_entry_after_each_change(fresh: Start, ical_js: IcalJs) -> None:
    interface = fresh()
    interface.set_site("timezone", "Europe/Berlin")
    author = Author(interface.caller("editor"))
    people = [(Subscriber(), read_with_icalendar), (Subscriber(), ical_js.read)]
    shown = cancelled = 0
    for _ in range(CHANGES):
        record = author.change()
        text = feed_of(interface)
        assert feed_of(interface) == text
        for subscriber, read in people:
            subscriber.take(read(text))
            entry = subscriber.entries.get(record["uid"])
            if record["status"] == "publish":
                assert entry == expected(record, entry.sequence)
                shown += 1
            elif entry is not None:
                # It is off, and nothing but that is told.
                assert (entry.status, entry.summary, entry.location) == ("CANCELLED", "Cancelled", "")
                cancelled += 1
    assert shown > CHANGES
    assert cancelled > 2


def test_feed_bytes_are_identical_in_all_processes(fresh: Start) -> None:
    interface = fresh({"KALENDS_CACHE_MB": "0"})
    author = Author(interface.caller("editor"))
    text = feed_of(interface)
    tag = interface.raw("GET", "/events.ics")[1]["etag"]
    with Interface(interface.database_url, interface.people) as other:
        assert feed_of(other) == text
        # A change of something that the feed does not show leaves it as it is.
        author.editor.create("organizers", organizer="Nobody's")
        assert feed_of(other) == text
        status, _, body = other.raw("GET", "/events.ics", headers=[("if-none-match", tag)])
        assert (status, body) == (304, b"")
    author.place()
    author._write(title="Another")
    assert feed_of(interface) != text
    assert interface.raw("GET", "/events.ics", headers=[("if-none-match", tag)])[0] == 200
