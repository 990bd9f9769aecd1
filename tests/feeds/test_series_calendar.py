"""`/series/{slug}.ics`: the calendar of a series by its rules, from the server."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.feeds.ical_readers import unfold_lines
from tests.feeds.rule_readers import Entry, RuleReader, expand_with_recurring_ical_events
from tests.series.series_client import EXTENSION, SeriesClient

SINCE, UNTIL = datetime(2030, 1, 1, tzinfo=UTC), datetime(2033, 1, 1, tzinfo=UTC)
COURSE: dict[str, Any] = {
    "title": "Class",
    "start_date": "2031-02-02 22:00",
    "end_date": "2031-02-03 03:30",
    "timezone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=SA,SU;COUNT=30",
}


@pytest.fixture
def app(start_app: StartApp) -> RunningApp:
    started = start_app()
    started.set_site("timezone", "Europe/Berlin")
    return started


@pytest.fixture
def client(app: RunningApp) -> SeriesClient:
    return SeriesClient(app.caller("editor"))


def read_calendar(app: RunningApp, slug: str = "class") -> str:
    status, headers, body = app.raw("GET", f"/series/{slug}.ics")
    assert status == 200, body
    assert headers["content-type"] == "text/calendar; charset=utf-8"
    return body.decode()


def list_rows(client: SeriesClient, series_id: int) -> list[Entry]:
    return sorted(
        (
            f"{event['utc_start_date'].replace(' ', 'T')}Z",
            f"{event['utc_end_date'].replace(' ', 'T')}Z",
            ("Cancelled: " if event["event_status"] == "cancelled" else "") + event["title"],
        )
        for event in client.events(series_id)
    )


def test_calendar_has_the_dates_after_edits_of_every_scope(
    app: RunningApp, client: SeriesClient, rule_reader: RuleReader
) -> None:
    series = client.create(**COURSE)
    events = client.events(series["id"])
    edits: list[tuple[int, str, dict[str, Any]]] = [
        (3, "this", {"title": "Class with guests"}),
        (5, "this", {"start_date": "2031-02-26 10:00", "end_date": "2031-02-26 11:00"}),
        (7, "this", {"event_status": "cancelled"}),
        (10, "following", {"title": "Course"}),
        (14, "following", {"start_date": "21:30"}),
        (20, "following", {"rule": "FREQ=WEEKLY;BYDAY=WE;COUNT=8"}),
        (2, "all", {"description": "<p>New text</p>"}),
    ]
    for number, scope, values in edits:
        client.edit(events[number]["id"], scope, **values)
        text = read_calendar(app)
        rows = list_rows(client, series["id"])
        assert expand_with_recurring_ical_events(text, SINCE, UNTIL) == rows, (scope, values)
        assert rule_reader.expand(text, UNTIL) == rows, (scope, values)
    assert client.caller.delete(f"/events/{events[4]['id']}").status_code == 200
    text = read_calendar(app)
    assert rule_reader.expand(text, UNTIL) == list_rows(client, series["id"])
    lines = unfold_lines(text)
    assert lines.count(f"REFID:{series['uid']}") == lines.count("BEGIN:VEVENT")
    assert len([line for line in lines if line.startswith("RRULE")]) >= 3


def test_master_has_the_form_of_rfc_5545(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(
        title="Yoga", start_date="2031-01-07 19:30", end_date="2031-01-07 21:00", timezone="Europe/Berlin",
        rule="FREQ=WEEKLY;BYDAY=TU;UNTIL=20310503", remove_dates=["2031-02-11"], add_dates=["2031-06-06"],
    )  # fmt: skip
    lines = unfold_lines(read_calendar(app, "yoga"))
    first = lines.index("BEGIN:VEVENT")
    assert lines[first + 1] == f"UID:{series['uid']}"
    begin = lines.index("DTSTART;TZID=Europe/Berlin:20310107T193000")
    assert lines[begin : begin + 5] == [
        "DTSTART;TZID=Europe/Berlin:20310107T193000",
        "DTEND;TZID=Europe/Berlin:20310107T210000",
        "RRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20310503T215959Z",
        "EXDATE;TZID=Europe/Berlin:20310211T193000",
        "RDATE;TZID=Europe/Berlin:20310606T193000",
    ]
    assert lines.count("BEGIN:VEVENT") == 1


def test_endless_rule_stays_endless(app: RunningApp, client: SeriesClient, rule_reader: RuleReader) -> None:
    client.create(**{**COURSE, "rule": "FREQ=WEEKLY;BYDAY=SU"})
    text = read_calendar(app)
    assert "RRULE:FREQ=WEEKLY;BYDAY=SU\r\n" in text
    late = [
        entry
        for entry in rule_reader.expand(text, datetime(2040, 8, 1, tzinfo=UTC))
        if entry[0].startswith("2040-07")
    ]
    # Years after the last date that exists, readers know when summer time is.
    assert [entry[0][10:] for entry in late] == ["T20:00:00Z"] * len(late)
    assert late


def test_rule_that_readers_misread_is_written_as_dates(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**{**COURSE, "rule": "FREQ=MONTHLY;BYDAY=1SU,WE;COUNT=6"})
    text = read_calendar(app)
    assert "RRULE" not in text
    assert {line[4:] for line in unfold_lines(text) if line.startswith("UID:")} == {
        event["uid"] for event in client.events(series["id"])
    }


def test_sequence_rises_with_times(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**COURSE)
    sequences = []
    for scope, start in (("this", "2031-02-02 20:00"), ("following", "21:00"), ("all", "21:15")):
        client.edit(client.events(series["id"])[0]["id"], scope, start_date=start)
        lines = unfold_lines(read_calendar(app))
        (sequence,) = {int(line[9:]) for line in lines if line.startswith("SEQUENCE:")}
        sequences.append(sequence)
    assert sequences == sorted(set(sequences))


def test_series_that_is_not_public_has_no_calendar(app: RunningApp, client: SeriesClient) -> None:
    client.create(**COURSE, new_password="opensesame")
    assert app.raw("GET", "/series/class.ics")[0] == 403
    draft = client.create(**{**COURSE, "title": "Draft"}, status="draft")
    assert app.raw("GET", f"/series/{draft['slug']}.ics")[0] in (401, 403, 404)
    gone = client.create(**{**COURSE, "title": "Gone"})
    assert client.caller.delete(f"{EXTENSION}/series/{gone['id']}").status_code == 200
    assert app.raw("GET", "/series/gone.ics")[0] in (404, 410)


def test_hidden_and_protected_dates_are_not_disclosed(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**COURSE, description="<p>Open.</p>")
    events = client.events(series["id"])
    client.edit(events[2]["id"], "this", new_password="opensesame", description="<p>Secret text</p>")
    client.edit(events[9]["id"], "following", new_password="opensesame", description="<p>Secret text</p>")
    text = read_calendar(app)
    assert "Open." in text
    assert "Secret" not in text
