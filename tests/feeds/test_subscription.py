"""A subscriber never has duplicate events, wrong instants or repeated notifications."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle
from random import Random
from typing import Any

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.feeds.ical_readers import FeedEntry, IcalJs, Subscriber, next_day, read_with_icalendar

CHANGE_COUNT = 500 if os.environ.get("KALENDS_SOAK") else 50
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC", "UTC+5:30", "Asia/Tokyo")
# Around the ends and beginnings of summer time in several of these, and hours that come twice or not at all.
STARTS = (
    "2031-03-30 02:30:00", "2031-03-30 01:59:00", "2031-03-30 03:00:00", "2031-10-26 02:30:00",
    "2031-10-26T02:30:00+01:00", "2031-10-26T02:30:00+02:00", "2031-11-02 01:30:00", "2031-11-02T01:30:00-05:00",
    "2031-03-09 02:30:00", "2031-04-06 01:45:00", "2031-10-05 02:15:00", "2031-07-01 12:00:00", "2031-01-01 00:00:00",
)  # fmt: skip
LENGTHS = ("0", "1", "90", "1440", "20160")
# The STATUS of each state, and the mark of its title.
STATES = {
    "scheduled": ("CONFIRMED", ""),
    "cancelled": ("CANCELLED", "Cancelled: "),
    "postponed": ("TENTATIVE", "Postponed: "),
    "moved_online": ("CONFIRMED", "Moved online: "),
    "sold_out": ("CONFIRMED", "Sold out: "),
}


def read_feed(app: RunningApp, path: str = "/events.ics", query: bytes = b"") -> str:
    status, headers, body = app.raw("GET", path, query=query)
    assert status == 200, body
    assert headers["content-type"] == "text/calendar; charset=utf-8"
    return body.decode()


def expected_entry(record: dict[str, Any], sequence: int) -> FeedEntry:
    """What every reader has to understand, from the interface's own answer."""
    all_day = record["all_day"]
    utc = [record[f"utc_{side}_date"].replace(" ", "T") + "Z" for side in ("start", "end")]
    days = [record["start_date"][:10], next_day(record["end_date"][:10])]
    start, end = days if all_day else utc
    status, mark = STATES[record["event_status"]]
    title = f"{mark}{record['title']}"
    return FeedEntry(record["uid"], sequence, status, title, location_of(record), start, end, all_day)


def location_of(record: dict[str, Any]) -> str:
    """An event that has moved online is no longer at its venue."""
    if record["venue"] and record["event_status"] != "moved_online":
        return record["venue"]["venue"]
    return record["online_url"]


class EventEditor:
    """Changes one event in ways that a subscriber can get wrong."""

    def __init__(self, editor: Caller) -> None:
        self.editor = editor
        self.random = Random(24)
        self.states = cycle([*STATES][::-1])
        self.venues = [editor.create("venues", venue=f"Hall {n}")["id"] for n in range(3)]
        self.event = editor.create(
            "events", title="Moving", start_date="2031-01-01 10:00", end_date="2031-01-01 12:00",
            timezone="Europe/Berlin", venue=self.venues[0],
        )  # fmt: skip

    def change(self) -> dict[str, Any]:
        action = self.random.choice(("time", "zone", "place", "venue", "status", "state", "whole days", "title"))
        return getattr(self, action.replace(" ", "_"))()

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

    def state(self) -> dict[str, Any]:
        url = self.random.choice(("", "https://meet.example/1", "https://meet.example/2"))
        return self._write(event_status=next(self.states), online_url=url)

    def whole_days(self) -> dict[str, Any]:
        return self._write(
            all_day=True, start_date="2031-03-29", end_date=self.random.choice(("2031-03-29", "2031-04-02"))
        )

    def title(self) -> dict[str, Any]:
        return self._write(title=f"Moving {self.random.randrange(1000)}")

    def _write(self, **values: Any) -> dict[str, Any]:
        response = self.editor.post(f"/events/{self.event['id']}", values)
        if response.status_code == 400:  # A shorter night can put the end before the start.
            return self.editor.get(f"/events/{self.event['id']}").json()
        assert response.status_code == 200, response.text
        return response.json()


def test_subscriber_has_one_correct_entry_after_each_change(start_app: StartApp, ical_js: IcalJs) -> None:
    app = start_app()
    app.set_site("timezone", "Europe/Berlin")
    author = EventEditor(app.caller("editor"))
    subscribers = [(Subscriber(), read_with_icalendar), (Subscriber(), ical_js.read)]
    shown = withdrawn = 0
    states: set[str] = set()
    for _ in range(CHANGE_COUNT):
        record = author.change()
        text = read_feed(app)
        assert read_feed(app) == text
        for subscriber, read in subscribers:
            subscriber.update(read(text))
            entry = subscriber.entries.get(record["uid"])
            if record["status"] == "publish":
                assert entry == expected_entry(record, entry.sequence)
                shown += 1
                states.add(record["event_status"])
            elif entry is not None:
                # The event is withdrawn, and the feed contains no other change.
                assert (entry.status, entry.summary, entry.location) == ("CANCELLED", "Cancelled", "")
                withdrawn += 1
    assert shown > CHANGE_COUNT
    assert withdrawn > 2
    assert states == set(STATES)


def test_cancelled_event_comes_back_as_same_entry(start_app: StartApp) -> None:
    app = start_app()
    author = EventEditor(app.caller("editor"))
    subscriber = Subscriber()

    def read_entry(**values: Any) -> FeedEntry:
        record = author._write(**values)
        subscriber.update(read_with_icalendar(read_feed(app)))
        (entry,) = subscriber.entries.values()
        assert entry == expected_entry(record, entry.sequence)
        (single,) = read_with_icalendar(read_feed(app, f"/event/{record['slug']}.ics"))
        assert single == entry
        return entry

    first = read_entry()
    entries = [first, *[read_entry(event_status=state) for state in STATES if state != "scheduled"]]
    entries.append(read_entry(event_status="scheduled"))
    assert {entry.uid for entry in entries} == {first.uid}
    assert [entry.status for entry in entries][:3] == ["CONFIRMED", "CANCELLED", "TENTATIVE"]
    sequences = [entry.sequence for entry in entries]
    assert sequences == sorted(set(sequences))
    assert replace(entries[-1], sequence=first.sequence) == first


def test_sequence_grows_with_time_and_place_only(start_app: StartApp) -> None:
    """Calendars ask their owners again if SEQUENCE grows."""
    app = start_app()
    author = EventEditor(app.caller("editor"))

    def read_sequence(**values: Any) -> int:
        author._write(**values)
        (entry,) = read_with_icalendar(read_feed(app))
        return entry.sequence

    sequence = read_sequence()
    for values in (
        {"start_date": "2031-01-01 09:00"},
        {"end_date": "2031-01-01 13:00"},
        {"timezone": "Europe/Lisbon"},
        {"all_day": True},
        {"venue": author.venues[1]},
        {"event_status": "postponed"},
    ):
        raised = read_sequence(**values)
        assert raised > sequence, values
        sequence = raised
    for values in ({"title": "Renamed"}, {"description": "Longer"}, {"featured": True}):
        assert read_sequence(**values) == sequence, values


def test_feed_bytes_are_identical_in_all_processes(start_app: StartApp) -> None:
    app = start_app({"KALENDS_CACHE_MB": "0"})
    author = EventEditor(app.caller("editor"))
    text = read_feed(app)
    tag = app.raw("GET", "/events.ics")[1]["etag"]
    with app.twin() as other:
        assert read_feed(other) == text
        # A change of something that the feed does not show leaves it as it is.
        author.editor.create("organizers", organizer="Nobody's")
        assert read_feed(other) == text
        status, _, body = other.raw("GET", "/events.ics", headers=[("if-none-match", tag)])
        assert (status, body) == (304, b"")
    author.place()
    author._write(title="Another")
    assert read_feed(app) != text
    assert app.raw("GET", "/events.ics", headers=[("if-none-match", tag)])[0] == 200
