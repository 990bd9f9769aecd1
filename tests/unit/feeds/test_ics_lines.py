"""The lines of an iCalendar component, as functions of events."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kalends.calendar.rules.record_types import Event
from kalends.feeds.ics import (
    Calendar,
    CancelledEvent,
    Times,
    begin_calendar,
    escape,
    fold,
    format_address,
    write_cancelled,
    write_event,
)
from kalends.feeds.vtimezone import zone_lines
from tests.unit.website.records import CLUB, EVENT, HALL, IMAGE, MUSIC, at

CALENDAR = Calendar("Town; events", "https://x.example/events.ics", "Europe/Berlin", "Called off")


def lines_of(event: Event, sequence: int = 0) -> list[str]:
    return write_event(event, sequence).replace("\r\n ", "").splitlines()


def values_of(event: Event, name: str) -> list[str]:
    return [line for line in lines_of(event) if line.startswith(name)]


def test_event_with_everything() -> None:
    event = replace(
        EVENT,
        description="<p>One,\ntwo</p>",
        image=IMAGE,
        categories=(MUSIC,),
        venues=(HALL,),
        organizers=(replace(CLUB, modified_utc=datetime(2031, 2, 1, tzinfo=UTC)),),
    )
    assert lines_of(event, 3) == [
        "BEGIN:VEVENT",
        "UID:01900000-0000-7000-8000-000000000000",
        "DTSTAMP:20310201T000000Z",
        "LAST-MODIFIED:20310201T000000Z",
        "CREATED:20310102T030405Z",
        "SEQUENCE:3",
        "STATUS:CONFIRMED",
        "TRANSP:TRANSPARENT",
        "DTSTART;TZID=Europe/Berlin:20310314T193000",
        "DTEND;TZID=Europe/Berlin:20310314T220000",
        "SUMMARY:Tea & talk",
        "URL:https://x.example/event/tea/",
        "DESCRIPTION:One\\, two\\n\\nhttps://x.example/event/tea/",
        "X-ALT-DESC;FMTTYPE=text/html:<p>One\\,\\ntwo</p>",
        "LOCATION:The & Hall\\, Am Markt 1\\, 12345 Lindenstadt\\, Germany",
        "GEO:52.518600;13.408100",
        "CATEGORIES:Music\\, loud",
        "CONTACT:Club 1 a@example.org",
        "IMAGE;VALUE=URI;DISPLAY=BADGE;FMTTYPE=image/jpeg:https://x.example/1600.jpg",
        "END:VEVENT",
    ]


def test_all_day_event_ends_on_the_day_after_its_last() -> None:
    event = at("2031-03-14 00:00:00", "2031-03-15 23:59:59", all_day=True)
    assert values_of(event, "DT")[1:] == ["DTSTART;VALUE=DATE:20310314", "DTEND;VALUE=DATE:20310316"]


def test_event_without_duration_has_no_end() -> None:
    assert values_of(at("2031-03-14 10:00:00", "2031-03-14 10:00:00"), "DTEND") == []


@pytest.mark.parametrize(
    ("start", "zone", "line"),
    [
        ("2031-10-26 02:30:00", "Europe/Berlin", "DTSTART:20311026T003000Z"),  # ambiguous
        ("2031-03-14 10:00:00", "UTC+2", "DTSTART:20310314T080000Z"),  # a fixed offset
        ("0999-03-14 10:00:00", "Europe/Berlin", "DTSTART:09990314T090632Z"),  # local mean time
    ],
)
def test_time_that_readers_could_misinterpret_is_written_in_utc(start: str, zone: str, line: str) -> None:
    assert values_of(at(start, start, zone), "DTSTART") == [line]


def test_location_of_several_venues_has_no_coordinates() -> None:
    other = replace(HALL, name="Yard", address="", zip="", city="Town", country="Town", latitude=None, longitude=None)
    assert format_address(other) == "Yard, Town"
    event = replace(EVENT, venues=(other, HALL))
    assert values_of(event, "LOCATION")[0].startswith("LOCATION:Yard\\, Town\\; The & Hall")
    assert values_of(event, "GEO") == []
    assert values_of(replace(EVENT, venues=(other,)), "GEO") == []


def test_image_of_unknown_type_has_no_format() -> None:
    event = replace(EVENT, image=replace(IMAGE, extension="tiff", url='https://x.example/"1.tiff'))
    assert values_of(event, "IMAGE") == ["IMAGE;VALUE=URI;DISPLAY=BADGE:https://x.example/1.tiff"]


def test_cancelled_event_discloses_only_its_times() -> None:
    times = Times(EVENT.start_local, EVENT.end_local, EVENT.start_utc, EVENT.end_utc, EVENT.timezone, all_day=False)
    text = write_cancelled(CancelledEvent(EVENT.uid, 4, EVENT.modified_utc, times), CALENDAR)
    assert text.splitlines() == [
        "BEGIN:VEVENT",
        f"UID:{EVENT.uid}",
        "DTSTAMP:20310102T030405Z",
        "LAST-MODIFIED:20310102T030405Z",
        "SEQUENCE:4",
        "STATUS:CANCELLED",
        "TRANSP:TRANSPARENT",
        "DTSTART;TZID=Europe/Berlin:20310314T193000",
        "DTEND;TZID=Europe/Berlin:20310314T220000",
        "SUMMARY:Called off",
        "END:VEVENT",
    ]


def test_calendar_has_each_zone_once_and_none_for_all_day_events() -> None:
    text = begin_calendar(CALENDAR, [EVENT, at("2031-07-01 10:00:00", "2031-07-01 11:00:00")])
    assert "NAME:Town\\; events\r\n" in text
    assert text.count("BEGIN:VTIMEZONE") == 1
    assert text.count("BEGIN:DAYLIGHT") == 1
    assert "VTIMEZONE" not in begin_calendar(CALENDAR, [replace(EVENT, all_day=True)])


def test_zone_of_a_day_in_winter_has_one_observance() -> None:
    assert list(zone_lines("Europe/Berlin", EVENT.start_utc, EVENT.end_utc)) == [
        "BEGIN:VTIMEZONE",
        "TZID:Europe/Berlin",
        "BEGIN:STANDARD",
        "DTSTART:20301027T030000",
        "TZOFFSETFROM:+0200",
        "TZOFFSETTO:+0100",
        "TZNAME:CET",
        "END:STANDARD",
        "END:VTIMEZONE",
    ]


def test_text_is_escaped() -> None:
    assert escape("a;b,c\\d\r\ne\x00") == "a\\;b\\,c\\\\d\\ne"


@pytest.mark.parametrize("line", ["x" * 200, "ü" * 100, "会" * 60])
def test_folded_lines_have_at_most_75_octets(line: str) -> None:
    folded = fold(line)
    assert max(len(part.encode()) for part in folded.split("\r\n")) <= 75
    assert folded.replace("\r\n ", "") == line
    assert fold("x" * 75) == "x" * 75
