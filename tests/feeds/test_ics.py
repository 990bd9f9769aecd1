"""What stands in an .ics, line by line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kalends.feeds.ics import Calendar as OwnCalendar, Times, begin_calendar, escape, fold
from tests.api.running_app import Caller, RunningApp
from tests.feeds.ical_readers import read_with_icalendar, unfold_lines

EVENT: dict[str, Any] = {
    "title": "Tea, cake; and <em>talk</em>",
    "start_date": "2031-03-29 19:30:00",
    "end_date": "2031-03-30 03:30:00",
    "timezone": "Europe/Berlin",
}


def read_feed(app: RunningApp, query: str = "", path: str = "/events.ics") -> list[str]:
    status, _, body = app.raw("GET", path, query=query.encode())
    assert status == 200, body
    return unfold_lines(body.decode())


def property_value(lines: list[str], name: str) -> str:
    matches = [line for line in lines if re.match(rf"{name}[;:]", line)]
    assert len(matches) == 1, matches
    return matches[0].partition(":")[2]


@pytest.fixture
def app(shared_app_with_purges: RunningApp) -> RunningApp:
    started = shared_app_with_purges.add_site()
    started.set_site("timezone", "Europe/Berlin")
    started.set_site("name", "Lindenstadt; Kultur")
    return started


@pytest.fixture
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")


def test_event_with_all_fields(app: RunningApp, editor: Caller) -> None:
    venue = editor.create("venues", venue="Hall", address="Am Markt 1", zip="12345", city="Lindenstadt",
                          country="Germany", geo_lat=52.5186, geo_lng=13.4081)  # fmt: skip
    organizer = editor.create("organizers", organizer="Verein", email="a@example.org", phone="1")
    music = editor.create("categories", name="Music, loud")
    event = editor.create(
        "events", **EVENT, venue=venue["id"], organizer=[organizer["id"]], categories=[music["id"]],
        description="First line\nsecond, line\n\n<ul><li>one</li></ul>",
    )  # fmt: skip
    lines = read_feed(app)
    modified = re.sub(r"[-:]", "", event["modified_utc"]).replace(" ", "T") + "Z"
    begin, end = lines.index("BEGIN:VEVENT"), lines.index("END:VEVENT")
    assert lines[begin + 1 : end] == [
        f"UID:{event['uid']}",
        f"DTSTAMP:{modified}",
        f"LAST-MODIFIED:{modified}",
        "CREATED:" + re.sub(r"[-:]", "", event["date_utc"]).replace(" ", "T") + "Z",
        "SEQUENCE:0",
        "STATUS:CONFIRMED",
        "TRANSP:TRANSPARENT",
        "DTSTART;TZID=Europe/Berlin:20310329T193000",
        "DTEND;TZID=Europe/Berlin:20310330T033000",
        r"SUMMARY:Tea\, cake\; and talk",
        f"URL:{event['url']}",
        rf"DESCRIPTION:First line\nsecond\, line\n\n- one\n\n{event['url']}",
        r"X-ALT-DESC;FMTTYPE=text/html:<p>First line<br />\nsecond\, line</p>\n<ul><li>one</li></ul>",
        r"LOCATION:Hall\, Am Markt 1\, 12345 Lindenstadt\, Germany",
        "GEO:52.518600;13.408100",
        r"CATEGORIES:Music\, loud",
        "CONTACT:Verein 1 a@example.org",
    ]
    assert lines[:begin] == [
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Kalends//Calendar//EN", "CALSCALE:GREGORIAN", "METHOD:PUBLISH",
        r"NAME:Lindenstadt\; Kultur", r"X-WR-CALNAME:Lindenstadt\; Kultur", "X-WR-TIMEZONE:Europe/Berlin",
        f"SOURCE;VALUE=URI:{app.base_url}/events.ics", "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
        # Only the transitions during the event: summer time begins in its night.
        "BEGIN:VTIMEZONE", "TZID:Europe/Berlin",
        "BEGIN:STANDARD", "DTSTART:20301027T030000", "TZOFFSETFROM:+0200", "TZOFFSETTO:+0100", "TZNAME:CET",
        "END:STANDARD",
        "BEGIN:DAYLIGHT", "DTSTART:20310330T020000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "TZNAME:CEST",
        "END:DAYLIGHT",
        "END:VTIMEZONE",
    ]  # fmt: skip


def test_all_day_events_have_exclusive_end_date(app: RunningApp, editor: Caller) -> None:
    editor.create("events", title="Fair", start_date="2031-12-30", end_date="2031-12-31", all_day=True)
    lines = read_feed(app)
    assert property_value(lines, "DTSTART") == "20311230"
    assert property_value(lines, "DTEND") == "20320101"
    assert "BEGIN:VTIMEZONE" not in lines


def test_ambiguous_times_and_fixed_offsets_are_written_in_utc(app: RunningApp, editor: Caller) -> None:
    for title, start, end, zone in (
        ("First", "2031-10-26T02:30:00+02:00", "2031-10-26T02:45:00+02:00", "Europe/Berlin"),
        ("Second", "2031-10-26T02:30:00+01:00", "2031-10-26T03:30:00+01:00", "Europe/Berlin"),
        ("Fixed", "2031-11-01 10:00", "2031-11-01 10:00", "UTC+5:30"),
    ):
        editor.create("events", title=title, start_date=start, end_date=end, timezone=zone)
    lines = read_feed(app)
    assert [line for line in lines if line.startswith(("DTSTART", "DTEND"))][-5:] == [
        "DTSTART:20311026T003000Z",
        "DTEND:20311026T004500Z",
        "DTSTART:20311026T013000Z",
        "DTEND;TZID=Europe/Berlin:20311026T033000",
        "DTSTART:20311101T043000Z",  # It takes no time, so it has no end.
    ]


def test_feed_accepts_list_parameters(app: RunningApp, editor: Caller) -> None:
    music, talks = (editor.create("categories", name=name) for name in ("Music", "Talks"))
    venue = editor.create("venues", venue="Hall")
    for number, (category, more) in enumerate(
        ((music, {}), (talks, {"venue": venue["id"]}), (music, {"featured": True}))
    ):
        editor.create("events", **{**EVENT, "title": f"E{number}"}, categories=[category["id"]], **more)
    for query, expected in (
        ("", ["E0", "E1", "E2"]),
        ("categories=music", ["E0", "E2"]),
        (f"venue={venue['id']}", ["E1"]),
        ("featured=true&categories=music", ["E2"]),
        ("search=e1", ["E1"]),
        ("start_date=2031-04-01&end_date=2031-04-30", []),
        ("overlaps_from=2031-03-29&overlaps_to=2031-03-30&page=7", ["E0", "E1", "E2"]),
    ):
        parameters = {"start_date": "2031-01-01", "end_date": "2031-12-31"}
        parameters |= dict(pair.split("=") for pair in query.split("&") if pair)
        listed = editor.get("/events", {**parameters, "page": 1}).json()
        assert [event["title"] for event in listed["events"]] == expected, query
        titles = [line.removeprefix("SUMMARY:") for line in read_feed(app, query) if line.startswith("SUMMARY:")]
        assert titles == expected, query
    assert app.raw("GET", "/events.ics", query=b"start_date=never")[0] == 400


def test_default_feed_starts_at_previous_month(app: RunningApp, editor: Caller) -> None:
    today = datetime.now(ZoneInfo("Europe/Berlin")).date()
    last_month = (today.replace(day=1) - timedelta(days=1)).replace(day=1)
    for title, day in (("long ago", last_month - timedelta(days=1)), ("last month", last_month), ("today", today)):
        editor.create("events", title=title, start_date=f"{day} 12:00", end_date=f"{day} 13:00")
    editor.create("events", title="runs", start_date="2020-01-01", end_date="2040-01-01", all_day=True)
    titles = [entry.summary for entry in read_with_icalendar("\r\n".join(read_feed(app)))]
    assert titles == ["last month", "runs", "today"]


@pytest.mark.quick("trash", "private")
@pytest.mark.parametrize("way", ["trash", "draft", "private"])
def test_withdrawn_event_is_cancelled_temporarily(app: RunningApp, editor: Caller, way: str) -> None:
    event = editor.create("events", **EVENT, description="Secret by now")
    if way == "trash":
        editor.trash("events", event["id"])
    else:
        editor.change("events", event["id"], status=way)
    lines = read_feed(app)
    assert (property_value(lines, "UID"), property_value(lines, "STATUS"), property_value(lines, "SUMMARY")) == (
        event["uid"], "CANCELLED", "Cancelled")  # fmt: skip
    assert int(property_value(lines, "SEQUENCE")) > 0
    assert "Secret" not in "".join(lines)
    assert "Tea" not in "".join(lines)
    assert property_value(read_feed(app, path=f"/event/{event['slug']}.ics"), "STATUS") == "CANCELLED"
    app.sql("UPDATE events SET withdrawn_at = now() - interval '31 days', modified_utc = now() - interval '31 days'")
    app.sql("UPDATE sites SET revision = revision + 1")
    assert "BEGIN:VEVENT" not in read_feed(app)


def test_hidden_event_is_removed_and_not_cancelled(app: RunningApp, editor: Caller) -> None:
    event = editor.create("events", **EVENT)
    editor.change("events", event["id"], hide_from_listings=True)
    assert "BEGIN:VEVENT" not in read_feed(app)
    own = read_feed(app, path=f"/event/{event['slug']}.ics")
    assert (property_value(own, "STATUS"), property_value(own, "SEQUENCE")) == ("CONFIRMED", "0")
    # This feed never contained the event, so it has no cancellation; the feed of its page has one.
    editor.trash("events", event["id"])
    assert "BEGIN:VEVENT" not in read_feed(app)
    assert property_value(read_feed(app, path=f"/event/{event['slug']}.ics"), "STATUS") == "CANCELLED"


def test_cancellations_respect_date_filters(app: RunningApp, editor: Caller) -> None:
    editor.trash("events", editor.create("events", **EVENT)["id"])
    for query, announced in (
        ("start_date=2031-03-01&end_date=2031-03-31", True),
        ("overlaps_from=2031-03-30", True),
        ("overlaps_from=2031-03-31", False),
        ("start_date=2031-04-01", False),
        ("ends_before=2031-03-01", False),
    ):
        assert ("STATUS:CANCELLED" in read_feed(app, query)) is announced, query


def test_changes_after_withdrawal_are_not_announced(app: RunningApp, editor: Caller) -> None:
    event = editor.create("events", **EVENT)
    editor.change("events", event["id"], status="draft")
    assert "BEGIN:VEVENT" in read_feed(app)
    app.sql("UPDATE events SET withdrawn_at = withdrawn_at - interval '1 minute'")
    editor.change("events", event["id"], start_date="2031-04-01 10:00", end_date="2031-04-01 11:00")
    assert "BEGIN:VEVENT" not in read_feed(app)


def test_never_published_event_is_not_cancelled(app: RunningApp, editor: Caller) -> None:
    event = editor.create("events", **EVENT, status="draft", slug="never")
    editor.change("events", event["id"], status="private")
    editor.trash("events", event["id"])
    assert "BEGIN:VEVENT" not in read_feed(app)
    assert app.raw("GET", "/event/never.ics")[0] == 404


def test_protected_event_contains_only_title_and_time(app: RunningApp, editor: Caller) -> None:
    venue = editor.create("venues", venue="Secret place")
    event = editor.create("events", **EVENT, description="Secret words", venue=venue["id"], new_password="lilacs")
    lines = read_feed(app)
    assert property_value(lines, "SUMMARY") == r"Tea\, cake\; and talk"
    assert "Secret" not in "".join(lines)
    assert app.raw("GET", f"/event/{event['slug']}.ics")[0] == 403


def test_sequence_increases_only_with_time_place_and_status(app: RunningApp, editor: Caller) -> None:
    venues = [editor.create("venues", venue=name)["id"] for name in ("One", "Two")]
    event = editor.create("events", **EVENT, venue=venues[0])

    def sequence() -> int:
        return int(property_value(read_feed(app), "SEQUENCE"))

    previous = sequence()
    for kind, record_id, change, rises in (
        ("events", event["id"], {"title": "Another"}, False),
        ("events", event["id"], {"description": "Another", "cost": "5", "featured": True}, False),
        ("events", event["id"], {"start_date": "2031-03-29 20:00"}, True),
        ("events", event["id"], {"timezone": "Europe/London"}, True),
        ("events", event["id"], {"venue": venues[1]}, True),
        ("events", event["id"], {"venue": venues[0]}, True),
        ("venues", venues[0], {"address": "Somewhere else 2"}, True),
        ("venues", venues[0], {"phone": "5"}, False),
        ("venues", venues[1], {"address": "Nobody cares"}, False),
        ("events", event["id"], {"status": "draft"}, True),
        ("events", event["id"], {"status": "publish"}, True),
    ):
        editor.change(kind, record_id, **change)
        now = sequence()
        assert (now > previous) is rises, change
        assert now >= previous, change
        previous = now
    editor.trash("venues", venues[0])
    assert sequence() > previous


def test_feed_is_cacheable_until_changed(app: RunningApp, editor: Caller) -> None:
    editor.create("events", **EVENT)
    _, headers, body = app.raw("GET", "/events.ics")
    assert headers["cache-control"].startswith("public")
    assert f"s{app.site_id}-events" in headers["surrogate-key"].split()
    status, again, nothing = app.raw("GET", "/events.ics", headers=[("if-none-match", headers["etag"])])
    assert (status, again["etag"], nothing) == (304, headers["etag"], b"")
    assert app.raw("GET", "/events.ics")[2] == body
    assert app.raw("HEAD", "/events.ics")[2] == b""
    assert app.raw("POST", "/events.ics")[0] == 405


def test_text_is_escaped_and_lines_are_folded_between_characters() -> None:
    assert escape("a\\b;c,d\r\ne\x07") == r"a\\b\;c\,d\ne"
    line = "SUMMARY:" + "ä€😀" * 60
    parts = fold(line).split("\r\n")
    assert all(len(part.encode()) <= 75 for part in parts)
    assert all(part.startswith(" ") for part in parts[1:])
    assert parts[0] + "".join(part[1:] for part in parts[1:]) == line
    assert fold("x" * 75) == "x" * 75
    assert fold("x" * 76) == "x" * 75 + "\r\n x"


def test_far_future_times_are_written_in_utc() -> None:
    utc = datetime(9000, 1, 1, 11, tzinfo=UTC)
    local = datetime(9000, 1, 1, 12)
    times = Times(local, local, utc, utc, "Europe/Berlin", all_day=False)
    assert "VTIMEZONE" not in begin_calendar(OwnCalendar("x", "http://x/", "UTC"), [times])
