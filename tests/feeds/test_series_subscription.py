"""A subscriber of a series has each date once and at the right time, whatever the scope of an edit is."""

from collections import Counter
from random import Random
from typing import Any

from kalends.core.errors import ApiError
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.feeds.ical_readers import FeedEntry, IcalJs, Subscriber, read_with_icalendar, unfold_lines
from tests.feeds.test_subscription import expected_entry, read_feed
from tests.series.series_client import EXTENSION, SeriesClient, join
from tests.soak import scaled

CHANGE_COUNT = scaled(30, 500)
RULES = ("FREQ=WEEKLY;BYDAY=WE;COUNT=10", "FREQ=WEEKLY;BYDAY=TU,TH;COUNT=12", "FREQ=DAILY;INTERVAL=4;COUNT=8",
         "FREQ=MONTHLY;BYDAY=-1SU;COUNT=6", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;COUNT=9")  # fmt: skip
# Some of them do not exist, or come twice, on the nights of the clock changes of March and October 2031.
TIMES = ("02:30", "01:15", "19:30", "00:00", "23:45")
SCOPES = ("this", "following", "all")
MOST_SERIES = 6
# The actions of the editor; frequent ones are listed more than once.
CHANGES = ("create", "content", "content", "times", "times", "rule", "remove", "trash", "restore_date", "undo",
           "split", "split", "merge", "merge", "detach", "detach", "convert", "convert", "dissolve",
           "join")  # fmt: skip
# The actions with which every run begins.
FIRST = ("split", "split", "merge", "detach", "convert", "content", "times", "detach", "detach", "join", "rule")


class SeriesEditor:
    """Changes series with every scope."""

    def __init__(self, app: RunningApp) -> None:
        self.app, self.client = app, SeriesClient(app.caller("editor"))
        self.random = Random(18)
        self.venues = [self.client.caller.create("venues", venue=f"Hall {n}")["id"] for n in range(3)]
        self.series: list[int] = []
        self.first = [*reversed(FIRST)]
        self.halves: list[tuple[int, int]] = []  # series that were one
        self.single: list[int] = []  # events that have left their series
        self.done: Counter[str] = Counter()
        self.create()

    def change(self) -> None:
        name = self.first.pop() if self.first else self.random.choice(CHANGES)
        self.done[name] += bool(getattr(self, name)())

    def list_public(self) -> list[Any]:
        """Return the public dates of all series."""
        events = [event for series in self.series for event in self.client.events(series)]
        return [event for event in events if event["status"] == "publish"]

    def list_all_public(self) -> list[Any]:
        """Return all public events, also those without a series."""
        query = {"start_date": "2000-01-01", "end_date": "2100-01-01", "per_page": 50, "status": "publish"}
        page = self.client.caller.get("/events", query).json()
        events = list(page["events"])
        for number in range(2, page["total_pages"] + 1):
            events += self.client.caller.get("/events", {**query, "page": number}).json()["events"]
        return events

    def create(self) -> bool:
        if len(self.series) > 2:
            return False
        day = self.random.choice(("2031-03-16", "2031-03-30", "2031-10-12"))
        created = self.client.create(
            title=f"Class {len(self.series)}", start_date=f"{day} 02:30", end_date=f"{day} 04:00",
            rule="FREQ=WEEKLY;COUNT=12", venue=self.venues[0],
        )  # fmt: skip
        self.series.append(created["id"])
        return True

    def content(self) -> bool:
        values = self.random.choice(
            (
                {"title": f"Class {self.random.randrange(1000)}"},
                {"venue": self.random.choice(self.venues)},
                {"event_status": self.random.choice(("cancelled", "scheduled", "postponed"))},
            )
        )
        return self._edit(**values)

    def times(self) -> bool:
        start = self.random.choice(TIMES)
        hour = (int(start[:2]) + 1) % 24
        return self._edit(start_date=start, end_date=f"{hour:02}{start[2:]}" if hour else "23:59")

    def rule(self) -> bool:
        return self._edit(("following", "all"), rule=self.random.choice(RULES))

    def remove(self) -> bool:
        return self._delete("this")

    def trash(self) -> bool:
        return self._delete(self.random.choice(("following", "all")))

    def restore_date(self) -> bool:
        query = f"?status=trash&series={self.random.choice(self.series)}&per_page=50&start_date=2000-01-01"
        trashed = self.client.caller.get(f"/events{query}").json()["events"]
        if not trashed:
            return False
        event = self.random.choice(trashed)
        return self.client.caller.post(f"/events/{event['id']}", {"status": "publish"}).status_code == 200

    def undo(self) -> bool:
        """Go back to an earlier state of a series, even from the trash."""
        series = self.random.choice(self.series)
        history = self.client.caller.get(f"{EXTENSION}/series/{series}/history").json()["history"]
        revision = self.random.choice(history[: min(3, len(history))])["revision"]
        body = {"revision": revision, "force": True}
        return self.client.caller.post(f"{EXTENSION}/series/{series}/restore", body).status_code == 200

    def split(self) -> bool:
        dates = [event["series"] for event in self.list_public() if event["series"]]
        if not dates or len(self.series) >= MOST_SERIES:
            return False
        series = self.random.choice(dates)
        body = self._act(f"/series/{series['id']}/split", **{"from": series["slot"]})
        if body:
            self.series.append(body["new_series"]["id"])
            self.halves.append((series["id"], self.series[-1]))
        return bool(body)

    def merge(self) -> bool:
        """Join two series; those that share dates are refused."""
        if len(self.series) < 2:
            return False
        halves = [pair for pair in self.halves if {*pair} <= {*self.series}]
        first, second = self.random.choice([*halves, self.random.sample(self.series, 2)])
        is_done = bool(self._act(f"/series/{first}/merge", series=second))
        self.series = [series for series in self.series if not is_done or series != second]
        return is_done

    def detach(self) -> bool:
        events = self.list_public()
        event = self.random.choice(events)["id"] if events else 0
        is_done = bool(event and self._act(f"/events/{event}/detach"))
        self.single += [event] if is_done else []
        return is_done

    def convert(self) -> bool:
        if not self.single or len(self.series) >= MOST_SERIES:
            return False
        event = self.single.pop(self.random.randrange(len(self.single)))
        body = self._act(f"/events/{event}/series", rule="FREQ=WEEKLY;COUNT=4")
        self.series += [body["series"]["id"]] if body else []
        return bool(body)

    def dissolve(self) -> bool:
        if len(self.series) < 2:
            return False
        series, keep = self.random.choice(self.series), self.random.choice(("all", "upcoming", "next"))
        is_done = bool(self._act(f"/series/{series}/dissolve", keep=keep))
        self.series = [other for other in self.series if not is_done or other != series]
        return is_done

    def join(self) -> bool:
        """Join events that have no series; two at the same time are refused."""
        single = [event["id"] for event in self.list_all_public() if event["series"] is None]
        if len(single) < 2 or len(self.series) >= MOST_SERIES:
            return False
        chosen = self.random.sample(single, min(len(single), self.random.randint(2, 12)))
        try:
            self.series.append(join(self.app, chosen))
        except ApiError:
            return False
        self.single = [event for event in self.single if event not in chosen]
        return True

    def _act(self, path: str, **values: Any) -> Any:
        """Send a request; return the response, or None if it is refused."""
        response = self.client.caller.post(f"{EXTENSION}{path}", values)
        assert response.status_code in (200, 400, 409, 410), response.text
        return response.json() if response.status_code == 200 else None

    def _edit(self, scopes: tuple[str, ...] = SCOPES, **values: Any) -> bool:
        events = self.list_public()
        if not events:
            return False
        event, scope = self.random.choice(events), self.random.choice(scopes)
        if scope == "this" and "start_date" in values:
            day = event["start_date"][:10]
            values = {name: f"{day} {value}" for name, value in values.items()}
        path = f"{EXTENSION}/events/{event['id']}?scope={scope}&overrides=replace"
        response = self.client.caller.patch(path, values)
        assert response.status_code in (200, 400, 409, 410), response.text
        return response.status_code == 200

    def _delete(self, scope: str) -> bool:
        events = self.list_public()
        path = f"{EXTENSION}/events/{self.random.choice(events)['id']}?scope={scope}" if events else ""
        return bool(path) and self.client.caller.delete(path).status_code == 200


def assert_correct(entries: dict[str, FeedEntry], records: dict[str, Any]) -> None:
    """Compare what a subscriber has with the public dates."""
    for uid, record in records.items():
        assert entries[uid] == expected_entry(record, entries[uid].sequence)
    gone = [entry for uid, entry in entries.items() if uid not in records]
    assert {(entry.status, entry.summary, entry.location) for entry in gone} <= {("CANCELLED", "Cancelled", "")}
    shown = Counter((entry.start, entry.summary) for uid, entry in entries.items() if uid in records)
    assert shown == Counter((entry.start, entry.summary) for entry in map(_expect, records.values()))


def _expect(record: Any) -> FeedEntry:
    return expected_entry(record, 0)


def test_subscriber_of_series_has_each_date_once(start_app: StartApp, ical_js: IcalJs) -> None:
    app = start_app()
    app.set_site("timezone", "Europe/Berlin")
    editor = SeriesEditor(app)
    subscribers = [(Subscriber(), read_with_icalendar), (Subscriber(), ical_js.read)]
    for _ in range(CHANGE_COUNT):
        editor.change()
        text = read_feed(app)
        records = {event["uid"]: event for event in editor.list_all_public()}
        for subscriber, read in subscribers:
            subscriber.update(read(text))
            assert_correct(subscriber.entries, records)
    done = {name for name, count in editor.done.items() if count}
    assert {"content", "times", "rule", "split", "merge", "detach", "convert", "join"} <= done


def test_entries_name_their_series(start_app: StartApp) -> None:
    app = start_app()
    client = SeriesClient(app.caller("editor"))
    series = client.create(start_date="2031-01-07 19:30", end_date="2031-01-07 21:00", rule="FREQ=WEEKLY;COUNT=5")
    client.caller.create("events", title="Once", start_date="2031-01-01 10:00", end_date="2031-01-01 12:00")
    lines = unfold_lines(read_feed(app))
    assert Counter(line for line in lines if line.startswith("REFID")) == {f"REFID:{series['uid']}": series["total"]}
    assert len([line for line in lines if line == "BEGIN:VEVENT"]) == series["total"] + 1
