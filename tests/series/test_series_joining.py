"""Joining single events into a series: what stays, what becomes an exception, and who may do it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from kalends.core.errors import ApiError
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.feeds.ical_readers import FeedEntry, Subscriber, read_with_icalendar
from tests.feeds.test_subscription import read_feed
from tests.series.series_client import SeriesClient, join, strip_revisions
from tests.soak import scaled

GROUP_COUNT = scaled(8, 100)
FIRST = datetime(2031, 1, 7, 19, 30)  # a Tuesday
WEEK = timedelta(days=7)
OF_SERIES = ("series", "json_ld")
ZONES = ("Europe/Berlin", "Europe/Berlin", "Europe/Berlin", "America/New_York")
STATUSES = ("publish", "publish", "publish", "draft", "private")
STATES = ("scheduled", "scheduled", "scheduled", "cancelled", "postponed")


def add_event(caller: Caller, start: datetime, title: str = "Choir", **fields: Any) -> dict[str, Any]:
    times = {"start_date": f"{start}", "end_date": f"{start + timedelta(hours=2)}"}
    return caller.create("events", **{"title": title, "timezone": "Europe/Berlin", **times, **fields})


def read_all(caller: Caller, ids: list[int]) -> list[Any]:
    """Return the events without what names their series, and without what every write changes."""
    records = [strip_revisions(caller.read("events", event_id)) for event_id in ids]
    return [{name: value for name, value in record.items() if name not in OF_SERIES} for record in records]


def read_entries(app: RunningApp) -> dict[str, FeedEntry]:
    return {entry.uid: entry for entry in read_with_icalendar(read_feed(app))}


def test_weekly_events_become_a_series_with_exceptions(app: RunningApp, editor: Caller) -> None:
    client = SeriesClient(editor)
    starts = [FIRST + n * WEEK for n in range(15) if n != 4]
    starts[7] += timedelta(days=1, hours=1)
    events = [add_event(editor, start, "Gala" if start == starts[-1] else "Rehearsal") for start in starts]
    ids = [event["id"] for event in events]
    before = read_all(editor, ids)
    series = client.read(join(app, ids))
    assert series["rule"]["rrule"] == "FREQ=WEEKLY;BYDAY=TU;UNTIL=20310415"
    assert (series["title"], series["slug"], series["status"]) == ("Rehearsal", "rehearsal", "publish")
    assert (series["total"], series["created_until"]) == (14, None)
    assert series["removed"] == [f"{FIRST + 4 * WEEK}"]
    joined = client.events(series["id"])
    assert [event["id"] for event in joined] == ids
    assert read_all(editor, ids) == before
    own = {event["id"]: event["series"]["own"] for event in joined if event["series"]["own"]}
    assert own == {ids[7]: ["times"], ids[-1]: ["title"]}
    assert joined[7]["series"]["slot"] == f"{FIRST + 8 * WEEK}"
    client.edit(ids[0], "all", title="Choir", start_date="20:00")
    edited = client.events(series["id"])
    assert [event["title"] for event in edited] == ["Choir"] * 13 + ["Gala"]
    assert [event["start_date"] for event in edited][6:8] == [f"{FIRST + 7 * WEEK:%Y-%m-%d} 20:00:00", f"{starts[7]}"]


def test_events_without_a_rule_become_a_list_of_dates(app: RunningApp, editor: Caller) -> None:
    starts = [FIRST + timedelta(days=days) for days in (0, 2, 9, 23, 40)]
    ids = [add_event(editor, start, "Concert")["id"] for start in starts]
    series = SeriesClient(editor).read(join(app, ids))
    assert (series["rule"], series["added"], series["removed"]) == (None, [f"{start}" for start in starts[1:]], [])
    assert {event["series"]["own"] == [] for event in SeriesClient(editor).events(series["id"])} == {True}


class RandomGroups:
    """Groups of events that follow a rule more or less, and differ in some fields."""

    def __init__(self, caller: Caller) -> None:
        self.random = Random(5)
        self.caller = caller
        self.venues = [caller.create("venues", venue=f"Hall {n}")["id"] for n in range(2)]

    def add(self, name: str) -> list[int]:
        random = self.random
        step = random.choice((timedelta(days=1), WEEK, WEEK, 2 * WEEK, timedelta(days=30)))
        first = FIRST + timedelta(days=random.randrange(60), minutes=random.choice((0, 15, -1170)))
        numbers = [n for n in range(random.randint(2, scaled(12, 30))) if n < 2 or random.random() > 0.15]
        starts = [first + n * step + (self._move() if n > 1 else timedelta()) for n in numbers]
        by_day = {start.date(): start for start in starts}  # whole days begin at the same time
        return [self._add_event(by_day[day], f"{name} {random.choice(('', '', '', 'b'))}") for day in sorted(by_day)]

    def _move(self) -> timedelta:
        if self.random.random() > 0.2:
            return timedelta()
        return timedelta(days=self.random.randint(-2, 2), minutes=self.random.choice((0, 20, 40)))

    def _add_event(self, start: datetime, title: str) -> int:
        choose = self.random.choice
        fields: dict[str, Any] = {
            "timezone": choose(ZONES), "status": choose(STATUSES), "event_status": choose(STATES),
            "venue": choose(self.venues), "cost": choose(("", "5")), "tags": choose(([], ["music"])),
            "all_day": self.random.random() < 0.1,
        }  # fmt: skip
        return int(add_event(self.caller, start, title, **fields)["id"])


def test_random_groups_keep_ids_slugs_and_uids(start_app: StartApp, report: Callable[[object], None]) -> None:
    """Subscribers notice neither that events become dates of a series nor that they become single events again."""
    app = start_app()
    client = SeriesClient(app.caller("editor"))
    groups, subscriber, with_rule = RandomGroups(client.caller), Subscriber(), 0
    for number in range(GROUP_COUNT):
        ids = groups.add(f"Group {number}")
        before, entries = read_all(client.caller, ids), read_entries(app)
        series = client.read(series_id := join(app, ids))
        assert len(client.occurrences(series_id, state="made")["occurrences"]) == len(ids)
        assert client.occurrences(series_id, state="planned")["occurrences"] == []
        assert read_all(client.caller, ids) == before
        assert read_entries(app) == entries
        subscriber.update(list(entries.values()))
        subscriber.update(list(read_entries(app).values()))
        with_rule += series["rule"] is not None
        client.post(f"/series/{series_id}/dissolve")
        assert read_all(client.caller, ids) == before
        assert {client.caller.read("events", event_id)["series"] for event_id in ids} == {None}
        assert read_entries(app) == entries
    report(f"{with_rule} of {GROUP_COUNT} random groups follow a rule")
    assert with_rule > GROUP_COUNT / 4


def test_most_events_are_joined_at_once(app: RunningApp, editor: Caller) -> None:
    ids = [add_event(editor, FIRST + n * WEEK, "Weekly", status="draft")["id"] for n in range(201)]
    with pytest.raises(ApiError, match="Select 2 to 200 events"):
        join(app, ids)
    assert SeriesClient(editor).read(join(app, ids[1:]))["rule"]["weekdays"] == ["tuesday"]


def test_contributors_join_their_drafts(app: RunningApp, contributor: Caller, editor: Caller) -> None:
    own = [add_event(contributor, FIRST + n * WEEK, "Draft", status="draft")["id"] for n in range(3)]
    foreign = add_event(editor, FIRST + 3 * WEEK, "Draft", status="draft")["id"]
    with pytest.raises(ApiError, match="not allowed to edit event") as caught:
        join(app, [*own, foreign], "contributor")
    assert caught.value.status == 403
    assert SeriesClient(editor).read(join(app, own, "contributor"))["status"] == "draft"


def test_scheduled_events_become_a_scheduled_series(app: RunningApp, editor: Caller) -> None:
    ids = [
        add_event(editor, FIRST + n * WEEK, "Later", status="publish", date=f"2030-06-0{n + 1} 08:00")["id"]
        for n in range(3)
    ]
    series = SeriesClient(editor).read(join(app, ids))
    assert (series["status"], series["date"]) == ("future", "2030-06-01 08:00:00")
    jobs = [job["args"] for job in app.jobs() if job["args"].get("kind") == "series"]
    assert series["id"] in [job["record_id"] for job in jobs]


def test_joining_is_refused(app: RunningApp, editor: Caller) -> None:
    """Nothing changes if one of the events has changed, has no place of its own, or is not a single event."""
    ids = [add_event(editor, FIRST + n * WEEK, "Refused")["id"] for n in range(3)]
    same = add_event(editor, FIRST, "Same time")["id"]
    trashed = add_event(editor, FIRST + 4 * WEEK, "Trashed", status="draft")["id"]
    editor.delete(f"/events/{trashed}")
    date = SeriesClient(editor).events(SeriesClient(editor).create(title="Known")["id"])[0]["id"]
    early = add_event(editor, datetime(1, 6, 1, 10), "Early", status="draft")["id"]
    for others, status, text in (
        ([], 412, "modified since"),
        ([same], 409, "2031-01-07 19:30:00"),
        ([trashed], 410, "trash"),
        ([date], 400, "“Known” already belongs"),
        ([early], 400, "between the years"),
    ):
        with pytest.raises(ApiError, match=text) as caught:
            join(app, [*ids, *others], before=0 if others else 1)
        assert caught.value.status == status
    assert {record["series"] for record in (editor.read("events", event_id) for event_id in ids)} == {None}
