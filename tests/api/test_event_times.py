"""When an event is: forms of dates, offsets, whole days, each date alone, zones (behaviour 4.3 to 4.5)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json


@pytest.fixture(scope="module", autouse=True)
def new_york(app: RunningApp) -> None:
    app.set_site("timezone", "America/New_York")


def create_event(caller: Caller, start: str, end: str, **fields: Any) -> dict[str, Any]:
    return caller.create("events", title="Timed", start_date=start, end_date=end, **fields)


def local_times(record: dict[str, Any]) -> tuple[str, str]:
    return record["start_date"], record["end_date"]


def utc_times(record: dict[str, Any]) -> tuple[str, str]:
    return record["utc_start_date"], record["utc_end_date"]


@pytest.mark.quick("2027-04-01-2027-04-01 00:00:00-", "9998-06-01 12:00-9998-06-01")
@pytest.mark.parametrize(
    ("text", "local", "utc"),
    [
        ("2027-04-01", "2027-04-01 00:00:00", "2027-04-01 04:00:00"),
        ("2027-04-01 10:30", "2027-04-01 10:30:00", "2027-04-01 14:30:00"),
        ("2027-04-01 10:30:15", "2027-04-01 10:30:15", "2027-04-01 14:30:15"),
        ("2027-04-01T10:30:15", "2027-04-01 10:30:15", "2027-04-01 14:30:15"),
        ("2027-04-01T10:30:15.999", "2027-04-01 10:30:15", "2027-04-01 14:30:15"),
        ("2027-04-01T10:30:00Z", "2027-04-01 06:30:00", "2027-04-01 10:30:00"),
        ("2027-04-01T10:30:00+05:00", "2027-04-01 01:30:00", "2027-04-01 05:30:00"),
        ("2027-04-01 10:30+0530", "2027-04-01 01:00:00", "2027-04-01 05:00:00"),
        ("2027-04-01T10:30:00-12", "2027-04-01 18:30:00", "2027-04-01 22:30:00"),
        ("@1806660000", "2027-04-02 06:00:00", "2027-04-02 10:00:00"),
        ("1970-01-01 00:00:00", "1970-01-01 00:00:00", "1970-01-01 05:00:00"),
        ("2028-02-29 12:00", "2028-02-29 12:00:00", "2028-02-29 17:00:00"),
        ("0002-01-01 12:00", "0002-01-01 12:00:00", "0002-01-01 16:56:02"),
        ("9998-06-01 12:00", "9998-06-01 12:00:00", "9998-06-01 16:00:00"),
    ],
)
def test_date_notations(editor: Caller, text: str, local: str, utc: str) -> None:
    record = create_event(editor, text, text)
    assert (local_times(record), utc_times(record)) == ((local, local), (utc, utc))
    assert record["timezone"] == "America/New_York"


@pytest.mark.quick("-start_date", "2027-04-01\\x00-end_date")
@pytest.mark.parametrize("name", ["start_date", "end_date"])
@pytest.mark.parametrize(
    "wrong",
    ["", " ", "next friday", "+1 week 2 hours", "15/04/2027", "01.04.2027", "2027", "20270401", "1806660000",
    "2027-02-29",
     "2027-04-31", "2027-13-01", "2027-04-01 25:00", "2027-04-01 24:00:00", "2027-04-01 23:60", "2027-04-01 23:59:60",
     "0000-00-00 00:00:00", "10000-01-01", "9999-01-01", "5th of April 2027", "soon", 5, 1806660000, True, [],
     ["2027-04-01"], {},
     "2027-04-01T10:00:00+25:00", "2027-04-01 10:00 Europe/Nowhere", "2027-04-01\x00"],
)  # fmt: skip
def test_invalid_dates_are_rejected(editor: Caller, name: str, wrong: object) -> None:
    body = {"title": "x", "start_date": "2027-04-01", "end_date": "2027-04-02", name: wrong}
    assert_error(editor.post("/events", body), 400, "rest_invalid_param", name)


def test_end_before_start_is_rejected(editor: Caller) -> None:
    for start, end, more in (
        ("2027-04-02 10:00", "2027-04-02 09:59:59", {}),
        ("2027-04-02", "2027-04-01", {}),
        ("2027-04-02", "2027-04-01", {"all_day": True}),
        ("2027-04-02T10:00:00+02:00", "2027-04-02T09:00:00+02:00", {}),
    ):
        response = editor.post("/events", {"title": "x", "start_date": start, "end_date": end, **more})
        assert_error(response, 400, "rest_invalid_param", "end_date")
    record = create_event(editor, "2027-04-02 10:00", "2027-04-02 10:00")
    assert local_times(record) == ("2027-04-02 10:00:00", "2027-04-02 10:00:00")
    response = editor.patch(f"/events/{record['id']}", {"end_date": "2027-04-02 09:00"})
    assert_error(response, 400, "rest_invalid_param", "end_date")
    response = editor.patch(f"/events/{record['id']}", {"start_date": "2027-04-02 11:00"})
    assert_error(response, 400, "rest_invalid_param", "start_date")
    assert local_times(editor.read("events", record["id"])) == local_times(record)


def test_start_and_end_can_be_changed_separately(editor: Caller) -> None:
    record = create_event(editor, "2027-06-10 19:30", "2027-06-10 22:00", timezone="Europe/Paris")
    started = editor.change("events", record["id"], start_date="2027-06-10 18:00")
    assert (local_times(started), utc_times(started)) == (
        ("2027-06-10 18:00:00", "2027-06-10 22:00:00"),
        ("2027-06-10 16:00:00", "2027-06-10 20:00:00"),
    )
    ended = editor.change("events", record["id"], end_date="2027-06-10T21:00:00Z")
    assert (local_times(ended), utc_times(ended)) == (
        ("2027-06-10 18:00:00", "2027-06-10 23:00:00"),
        ("2027-06-10 16:00:00", "2027-06-10 21:00:00"),
    )
    assert ended["timezone"] == "Europe/Paris"


def test_changing_timezone_keeps_local_time(editor: Caller) -> None:
    record = create_event(editor, "2027-06-10 19:30", "2027-06-10 22:00", timezone="Europe/Paris")
    moved = editor.change("events", record["id"], timezone="Asia/Tokyo")
    assert (local_times(moved), utc_times(moved)) == (
        local_times(record),
        ("2027-06-10 10:30:00", "2027-06-10 13:00:00"),
    )
    assert (moved["timezone"], moved["timezone_abbr"]) == ("Asia/Tokyo", "JST")
    both = editor.change("events", record["id"], timezone="Europe/Paris", start_date="2027-06-10T08:00:00Z")
    assert (local_times(both), utc_times(both)) == (
        ("2027-06-10 10:00:00", "2027-06-10 22:00:00"),
        ("2027-06-10 08:00:00", "2027-06-10 20:00:00"),
    )
    for nothing in ("", None):
        reset = editor.change("events", record["id"], timezone=nothing)
        assert (reset["timezone"], local_times(reset)) == ("America/New_York", local_times(both))


def test_changing_site_timezone_does_not_move_events(start_app: Any) -> None:
    app = start_app()
    editor = app.caller("editor")
    record = create_event(editor, "2027-06-10 19:30", "2027-06-10 22:00")
    app.set_site("timezone", "Asia/Tokyo")
    read = editor.read("events", record["id"])
    assert (read["timezone"], local_times(read), utc_times(read)) == ("UTC", local_times(record), utc_times(record))
    retitled = editor.change("events", record["id"], title="x", start_date="2027-06-10 19:00")
    assert (retitled["timezone"], retitled["utc_start_date"]) == ("UTC", "2027-06-10 19:00:00")


def test_all_day_events(editor: Caller) -> None:
    record = create_event(editor, "2027-07-01 15:00", "2027-07-02 09:00", all_day=True, timezone="Europe/Paris")
    assert (local_times(record), utc_times(record)) == (
        ("2027-07-01 00:00:00", "2027-07-02 23:59:59"),
        ("2027-06-30 22:00:00", "2027-07-02 21:59:59"),
    )
    shortened = editor.change("events", record["id"], end_date="2027-07-01")
    assert (shortened["all_day"], local_times(shortened)) == (True, ("2027-07-01 00:00:00", "2027-07-01 23:59:59"))
    moved = editor.change("events", record["id"], timezone="Asia/Tokyo")
    assert (local_times(moved), utc_times(moved)) == (
        local_times(shortened),
        ("2027-06-30 15:00:00", "2027-07-01 14:59:59"),
    )
    timed = editor.change("events", record["id"], all_day=False)
    assert (timed["all_day"], local_times(timed)) == (False, local_times(shortened))
    timed = editor.change("events", record["id"], end_date="2027-07-01 12:00:00")
    assert local_times(timed) == ("2027-07-01 00:00:00", "2027-07-01 12:00:00")
    again = editor.change("events", record["id"], all_day="yes")
    assert local_times(again) == ("2027-07-01 00:00:00", "2027-07-01 23:59:59")


ALL_DAY, HOURS = True, False


@pytest.mark.quick("fields0-False-local0", "fields11-True-None")
@pytest.mark.parametrize(
    ("fields", "all_day", "local"),
    [
        ({"start_date": "2027-05-06 18:00", "end_date": "2027-05-06 20:00"}, HOURS, ("06 18:00:00", "06 20:00:00")),
        ({"end_date": "2027-05-06 20:00"}, HOURS, ("05 00:00:00", "06 20:00:00")),
        ({"start_date": "2027-05-06 18:00"}, HOURS, ("06 18:00:00", "06 23:59:59")),
        ({"start_date": "2027-05-06 00:00", "end_date": "2027-05-06 20:00"}, HOURS, ("06 00:00:00", "06 20:00:00")),
        ({"start_date": "2027-05-05T22:30:00Z"}, HOURS, ("06 00:30:00", "06 23:59:59")),
        # The first and the last second of days are no hours, nor are dates without a time.
        ({"start_date": "2027-05-05 00:00:00", "end_date": "2027-05-06 23:59:59"}, ALL_DAY, None),
        ({"start_date": "2027-05-04T22:00:00Z"}, ALL_DAY, None),
        ({"start_date": "2027-05-04 00:00"}, ALL_DAY, ("04 00:00:00", "06 23:59:59")),
        ({"start_date": "5 May 2027", "end_date": "2027-05-05"}, ALL_DAY, ("05 00:00:00", "05 23:59:59")),
        ({"start_date": "2027-05-06 18:00", "all_day": True}, ALL_DAY, ("06 00:00:00", "06 23:59:59")),
        ({"title": "Other"}, ALL_DAY, None),
        ({"timezone": "Asia/Tokyo"}, ALL_DAY, None),
    ],
)  # fmt: skip
def test_hours_turn_all_day_event_into_one_of_hours(
    editor: Caller, fields: dict[str, Any], all_day: bool, local: tuple[str, str] | None
) -> None:
    record = create_event(editor, "2027-05-05", "2027-05-06", all_day=True, timezone="Europe/Berlin")
    changed = editor.change("events", record["id"], **fields)
    expected = local_times(record) if local is None else tuple(f"2027-05-{text}" for text in local)
    assert (changed["all_day"], local_times(changed)) == (all_day, expected)


@pytest.mark.quick("America/Sao_Paulo-2018-11-04", "America/New_York-2027-11-07")
@pytest.mark.parametrize(
    ("zone", "day"),
    [("America/Sao_Paulo", "2018-11-04"), ("America/Sao_Paulo", "2018-02-17"), ("Europe/Berlin", "2027-03-28"),
     ("America/New_York", "2027-11-07")],
)  # fmt: skip
def test_writing_back_all_day_event_changes_nothing(editor: Caller, zone: str, day: str) -> None:
    record = create_event(editor, day, day, all_day=True, timezone=zone)
    written = editor.change("events", record["id"], start_date=record["start_date"], end_date=record["end_date"])
    assert (written["all_day"], local_times(written), utc_times(written)) == (
        True, local_times(record), utc_times(record),
    )  # fmt: skip


def test_all_day_date_is_local_date_of_instant(editor: Caller) -> None:
    record = create_event(editor, "2027-07-01T23:00:00Z", "2027-07-01T23:30:00Z", all_day=True, timezone="Asia/Tokyo")
    assert local_times(record) == ("2027-07-02 00:00:00", "2027-07-02 23:59:59")


@pytest.mark.quick("europe/PARIS-Europe/Paris-CEST-", "Asia/Kathmandu-Asia/Kathmandu-")
@pytest.mark.parametrize(
    ("timezone", "zone", "abbreviation", "utc"),
    [
        ("europe/PARIS", "Europe/Paris", "CEST", "2027-07-01 08:00:00"),
        ("Asia/Kolkata", "Asia/Kolkata", "IST", "2027-07-01 04:30:00"),
        ("Asia/Calcutta", "Asia/Kolkata", "IST", "2027-07-01 04:30:00"),
        ("US/Eastern", "America/New_York", "EDT", "2027-07-01 14:00:00"),
        ("UTC", "UTC", "UTC", "2027-07-01 10:00:00"),
        ("utc+5", "UTC+5", "UTC+5", "2027-07-01 05:00:00"),
        ("+05:00", "UTC+5", "UTC+5", "2027-07-01 05:00:00"),
        ("UTC-3", "UTC-3", "UTC-3", "2027-07-01 13:00:00"),
        ("UTC+5.5", "UTC+5.5", "UTC+5.5", "2027-07-01 04:30:00"),
        ("UTC+5:30", "UTC+5:30", "UTC+5:30", "2027-07-01 04:30:00"),
        ("UTC+14", "UTC+14", "UTC+14", "2027-06-30 20:00:00"),
        ("UTC-12", "UTC-12", "UTC-12", "2027-07-01 22:00:00"),
        ("Asia/Kathmandu", "Asia/Kathmandu", "+0545", "2027-07-01 04:15:00"),
    ],
)
def test_timezones_are_normalized(editor: Caller, timezone: str, zone: str, abbreviation: str, utc: str) -> None:
    record = create_event(editor, "2027-07-01 10:00", "2027-07-01 10:00", timezone=timezone)
    assert (record["timezone"], record["timezone_abbr"], record["utc_start_date"]) == (zone, abbreviation, utc)


@pytest.mark.quick("UTC+15", "UTC+5:60")
@pytest.mark.parametrize(
    "wrong",
    ["UTC+15", "UTC-12.5", "+0500", "PST", "Z", "Mars/Base", " Europe/Paris", "0", 5, True, [], "UTC+5:60"],
)
def test_unknown_timezones_are_rejected(editor: Caller, wrong: object) -> None:
    body = {"title": "x", "start_date": "2027-04-01", "end_date": "2027-04-02", "timezone": wrong}
    assert_error(editor.post("/events", body), 400, "rest_invalid_param", "timezone")


def test_list_filters_compare_instants(anonymous: Caller, editor: Caller) -> None:
    """Later on the wall, earlier in the world."""
    tokyo = create_event(editor, "2028-03-02 08:00", "2028-03-02 09:00", timezone="Asia/Tokyo")["id"]
    local = create_event(editor, "2028-03-01 19:00", "2028-03-01 20:00")["id"]
    window = {"start_date": "2028-03-01", "end_date": "2028-03-01"}
    assert anonymous.ids("events", **window) == [tokyo, local]
    strict = {"start_date": "2028-03-01 18:00:01", "end_date": "2028-03-02", "strict_dates": "true"}
    assert anonymous.ids("events", **strict) == [local]
    strict["start_date"] = "2028-03-01T23:00:00Z"
    assert anonymous.ids("events", **strict) == [tokyo, local]


def test_moved_event_is_listed_at_new_time(anonymous: Caller, editor: Caller) -> None:
    record = create_event(editor, "2028-05-01 10:00", "2028-05-01 11:00")["id"]
    assert anonymous.ids("events", start_date="2028-05-01", end_date="2028-05-01") == [record]
    editor.change("events", record, timezone="Pacific/Kiritimati")
    assert anonymous.ids("events", start_date="2028-05-01", end_date="2028-05-01") == []
    assert anonymous.ids("events", start_date="2028-04-30", end_date="2028-04-30") == [record]
    expect_json(editor.delete(f"/events/{record}"))
    assert anonymous.ids("events", start_date="2028-04-30", end_date="2028-04-30") == []
