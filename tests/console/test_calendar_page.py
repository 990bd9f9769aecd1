"""The calendar of the console: what it shows to whom, and what moving an event changes."""

import random
import re
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.series.series_client import SeriesClient
from tests.soak import scaled

CALENDAR = "/console/calendar"
MOVE = "/console/calendar/move"
CHANGING = ("modified", "modified_utc", "revision")


def create(app: RunningApp, title: str, start: str, end: str, role: str = "editor", **fields: Any) -> dict[str, Any]:
    return app.caller(role).create("events", title=title, start_date=start, end_date=end, **fields)


def read(app: RunningApp, event_id: int) -> dict[str, Any]:
    event = app.caller("editor").read("events", event_id)
    return {name: value for name, value in event.items() if name not in CHANGING}


def list_days(client: ConsoleClient, query: str) -> dict[str, list[str]]:
    """Return the titles of each day with events."""
    html = client.page(f"{CALENDAR}?{query}").html
    days = re.split(r'<li class="calendar-day[^"]*" data-day="', html)[1:]
    found = {day[:10]: re.findall(r"</span> ([^<\n]+?)(?: <|</)", day) for day in days}
    return {day: titles for day, titles in found.items() if titles}


@pytest.fixture(scope="module")
def filled(app: RunningApp) -> RunningApp:
    create(app, "Concert", "2031-05-07 19:00:00", "2031-05-07 21:00:00")
    create(app, "Draft", "2031-05-08 10:00:00", "2031-05-08 11:00:00", status="draft")
    create(app, "Hidden", "2031-05-08 12:00:00", "2031-05-08 13:00:00", hide_from_listings=True)
    create(app, "Submission", "2031-05-09 10:00:00", "2031-05-09 11:00:00", "contributor", status="pending")
    create(app, "Night", "2031-05-10 22:00:00", "2031-05-11 03:00:00")
    create(app, "June", "2031-06-20 10:00:00", "2031-06-20 11:00:00")
    return app


def test_an_editor_sees_all_statuses(filled: RunningApp) -> None:
    editor = ConsoleClient.signed_in(filled, "editor")
    days = list_days(editor, "date=2031-05-20")
    assert days == {
        "2031-05-07": ["Concert"],
        "2031-05-08": ["Draft", "Hidden"],
        "2031-05-09": ["Submission"],
        "2031-05-10": ["Night"],
    }
    assert list_days(editor, "view=week&date=2031-05-09") == days
    page = editor.page(f"{CALENDAR}?date=2031-05-20")
    assert "May 2031" in page.text
    assert page.html.count("is-unpublished") == 2
    assert "date=2031-04-01" in page.html
    assert "date=2031-06-01" in page.html


def test_a_month_shows_the_first_events_of_a_day_and_a_week_shows_all(app: RunningApp) -> None:
    for hour in range(9, 21):
        create(app, f"Talk {hour}", f"2031-08-07 {hour:02}:00:00", f"2031-08-07 {hour:02}:30:00")
    editor = ConsoleClient.signed_in(app, "editor")
    month = editor.page(f"{CALENDAR}?date=2031-08-01").html
    assert list_days(editor, "date=2031-08-01")["2031-08-07"][:8] == [f"Talk {hour}" for hour in range(9, 17)]
    assert "Talk 17" not in month
    more = re.search(r'href="([^"]+)">4 more<', month)
    assert more
    assert editor.page(more[1].replace("&amp;", "&")).html.count("Talk ") == 24


def test_a_contributor_sees_own_events(filled: RunningApp) -> None:
    contributor = ConsoleClient.signed_in(filled, "contributor")
    assert list_days(contributor, "date=2031-05-20") == {"2031-05-09": ["Submission"]}


@pytest.mark.parametrize("query", ["", "date=0001-01-01", "date=9999-12-31", "date=x", "view=x&date=2031-13-40"])
def test_any_query_shows_a_calendar(filled: RunningApp, query: str) -> None:
    page = ConsoleClient.signed_in(filled, "editor").page(f"{CALENDAR}?{query}")
    assert page.html.count('class="calendar-day') >= 28


def test_a_multi_day_event_is_on_each_of_its_days(app: RunningApp, editor: ConsoleClient) -> None:
    create(app, "Exhibition", "2032-02-27 10:00:00", "2032-03-02 18:00:00")
    html = editor.page(f"{CALENDAR}?view=week&date=2032-02-28").html
    assert html.count("is-further") == html.count("Exhibition") - 2 >= 1
    assert html.count("data-start=") == 1


def test_moving_keeps_the_time_and_is_undone(app: RunningApp, editor: ConsoleClient) -> None:
    event = create(app, "Choir", "2031-07-01 19:00:00", "2031-07-01 21:30:00", venue={"venue": "Chapel"})
    before = read(app, event["id"])
    back = f"{CALENDAR}?view=month&date=2031-07-01"
    response = editor.post(MOVE, {"event": event["id"], "day": "2031-07-15", "back": back})
    location = response.headers["location"]
    assert location.startswith(f"{back}&undo={event['id']}-")
    assert location.endswith(f"&notice=moved#event-{event['id']}")
    moved = read(app, event["id"])
    assert (moved["start_date"], moved["end_date"]) == ("2031-07-15 19:00:00", "2031-07-15 21:30:00")
    page = editor.page(location)
    assert "The event is moved." in page.text
    undone = editor.post(
        f"/console/events/{event['id']}/undo",
        {name: page.fields[name][0] for name in ("before", "after")} | {"back": back},
    )
    assert undone.headers["location"].startswith(f"{back}&notice=undone#")
    assert read(app, event["id"]) == before


def test_a_date_of_a_series_asks_for_its_scope(app: RunningApp, editor: ConsoleClient) -> None:
    api = SeriesClient(app.caller("editor"))
    series = api.create(
        title="Yoga", start_date="2031-08-05 18:00:00", end_date="2031-08-05 19:00:00", rule="FREQ=WEEKLY;COUNT=4"
    )
    second = api.events(series["id"])[1]
    response = editor.post(MOVE, {"event": second["id"], "day": "2031-08-13"})
    assert response.status_code == 200
    page = Page.parse(response.text)
    assert "scope" in response.text
    saved = editor.post(f"/console/events/{second['id']}", page.form(scope="this"))
    assert saved.status_code == 303, saved.text[:500]
    days = [event["start_date"][:10] for event in api.events(series["id"])]
    assert days == ["2031-08-05", "2031-08-13", "2031-08-19", "2031-08-26"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"day": "tomorrow"}, "day"), ({"day": "2031-02-30"}, "day"), ({"day": "2031-03-01", "time": "25:00"}, "time")],
)
def test_a_wrong_day_is_explained(
    app: RunningApp, editor: ConsoleClient, fields: dict[str, str], message: str
) -> None:
    event = create(app, "Lecture", "2031-03-01 10:00:00", "2031-03-01 11:00:00")
    response = editor.post(MOVE, {"event": event["id"], **fields})
    assert response.status_code == 400
    assert f"must be a {message}" in Page.parse(response.text).text


def test_a_change_by_somebody_else_is_not_overwritten(app: RunningApp, editor: ConsoleClient) -> None:
    event = create(app, "Market", "2031-03-02 10:00:00", "2031-03-02 11:00:00")
    form = editor.page(f"{MOVE}?event={event['id']}").form(day="2031-03-05")
    app.caller("editor").change("events", event["id"], start_date="2031-03-03 10:00", end_date="2031-03-03 11:00")
    response = editor.post(MOVE, form)
    assert response.status_code == 412
    assert read(app, event["id"])["start_date"] == "2031-03-03 10:00:00"
    # The form now has the new start, so a second attempt succeeds. Other changes do not prevent a move.
    app.caller("editor").change("events", event["id"], title="Market hall")
    assert editor.post(MOVE, Page.parse(response.text).form(day="2031-03-05")).status_code == 303
    moved = read(app, event["id"])
    assert (moved["start_date"], moved["title"]) == ("2031-03-05 10:00:00", "Market hall")


def test_rights(app: RunningApp) -> None:
    event = create(app, "Gala", "2031-03-03 10:00:00", "2031-03-03 11:00:00")
    author = ConsoleClient.signed_in(app, "author")
    assert author.post(MOVE, {"event": event["id"], "day": "2031-03-05"}).status_code == 403
    assert author.get(f"{MOVE}?event={event['id']}").status_code == 403
    assert author.post(MOVE, {"event": "x", "day": "2031-03-05"}).status_code == 404
    assert author.get(f"{CALENDAR}/check?event={event['id']}&day=2031-03-05").status_code == 403


def test_a_double_booking_shows_before_moving(app: RunningApp, editor: ConsoleClient) -> None:
    hall = app.caller("editor").create("venues", venue="Great Hall")["id"]
    create(app, "Rehearsal", "2031-09-02 19:00:00", "2031-09-02 22:00:00", venue=[hall])
    other = create(app, "Ball", "2031-09-03 20:00:00", "2031-09-03 23:00:00", venue=[hall])
    headers = {"accept": "application/json"}
    query = f"{CALENDAR}/check?event={other['id']}&day=2031-09-02"
    assert editor.get(query, headers=headers).json()["conflicts"] == ["Rehearsal (Great Hall, 7:00\xa0PM)"]
    assert editor.get(f"{query}&time=23:00", headers=headers).json()["conflicts"] == []


ZONES = ("Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo", "America/Sao_Paulo")
# Days around changes of the offset, and others.
DAYS = [
    date(2030, 3, 10),
    date(2030, 3, 31),
    date(2030, 10, 27),
    date(2030, 11, 3),
    date(2030, 4, 7),
    date(2030, 7, 4),
]


@pytest.mark.parametrize("seed", range(scaled(20, 200)))
def test_random_moves_keep_the_length(app: RunningApp, editor: ConsoleClient, seed: int) -> None:
    chosen = random.Random(seed)
    zone = chosen.choice(ZONES)
    start = datetime(2030, 6, chosen.randint(1, 28), chosen.randint(0, 23), chosen.choice((0, 15, 30, 45)))
    length = timedelta(minutes=chosen.choice((0, 15, 60, 150, 420, 1440, 3 * 1440 + 120)))
    event = create(app, f"Event {seed}", f"{start}", f"{start + length}", timezone=zone)
    before = read(app, event["id"])
    day = chosen.choice(DAYS) + timedelta(days=chosen.randint(-1, 1))
    hour = f"{chosen.randint(0, 23):02}:{chosen.choice((0, 15, 30, 45)):02}" if chosen.random() < 0.7 else ""
    response = editor.post(MOVE, {"event": event["id"], "day": f"{day}", "time": hour})
    assert response.status_code == 303, Page.parse(response.text).text
    moved = read(app, event["id"])
    if length <= timedelta(days=1):
        utc = [datetime.fromisoformat(moved[f"utc_{name}_date"]) for name in ("start", "end")]
        assert utc[1] - utc[0] == length
        wanted = datetime.fromisoformat(f"{day}T{hour or start.strftime('%H:%M')}").replace(tzinfo=ZoneInfo(zone))
        assert utc[0].replace(tzinfo=ZoneInfo("UTC")) == wanted.astimezone(ZoneInfo("UTC"))
    else:
        local = [datetime.fromisoformat(moved[f"{name}_date"]) for name in ("start", "end")]
        assert abs(local[1] - local[0] - length) <= timedelta(hours=1)
    page = editor.page(response.headers["location"])
    fields = {name: page.fields[name][0] for name in ("before", "after")}
    assert editor.post(f"/console/events/{event['id']}/undo", fields).status_code == 303
    assert read(app, event["id"]) == before
