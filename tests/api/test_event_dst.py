"""Hours that a clock skips or shows twice, through the whole interface (docs/time.md)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error

# Zone, wall time sent, wall time shown, instant, abbreviation. A skipped time moves on by the gap; of two
# equal times the first is meant, and an offset names the second.
TIMES = [
    # New York: 02:00 -> 03:00 on 14 March, 02:00 -> 01:00 on 7 November 2027.
    ("America/New_York", "2027-03-14 01:59:59", "2027-03-14 01:59:59", "2027-03-14 06:59:59", "EST"),
    ("America/New_York", "2027-03-14 02:00:00", "2027-03-14 03:00:00", "2027-03-14 07:00:00", "EDT"),
    ("America/New_York", "2027-03-14 02:30:00", "2027-03-14 03:30:00", "2027-03-14 07:30:00", "EDT"),
    ("America/New_York", "2027-03-14 03:00:00", "2027-03-14 03:00:00", "2027-03-14 07:00:00", "EDT"),
    ("America/New_York", "2027-11-07 00:59:59", "2027-11-07 00:59:59", "2027-11-07 04:59:59", "EDT"),
    ("America/New_York", "2027-11-07 01:30:00", "2027-11-07 01:30:00", "2027-11-07 05:30:00", "EDT"),
    ("America/New_York", "2027-11-07T01:30:00-05:00", "2027-11-07 01:30:00", "2027-11-07 06:30:00", "EST"),
    ("America/New_York", "2027-11-07T06:30:00Z", "2027-11-07 01:30:00", "2027-11-07 06:30:00", "EST"),
    ("America/New_York", "2027-11-07 02:00:00", "2027-11-07 02:00:00", "2027-11-07 07:00:00", "EST"),
    # Paris: 02:00 -> 03:00 on 28 March, 03:00 -> 02:00 on 31 October 2027.
    ("Europe/Paris", "2027-03-28 02:30:00", "2027-03-28 03:30:00", "2027-03-28 01:30:00", "CEST"),
    ("Europe/Paris", "2027-10-31 02:00:00", "2027-10-31 02:00:00", "2027-10-31 00:00:00", "CEST"),
    ("Europe/Paris", "2027-10-31 02:30:00", "2027-10-31 02:30:00", "2027-10-31 00:30:00", "CEST"),
    ("Europe/Paris", "2027-10-31T02:30:00+01:00", "2027-10-31 02:30:00", "2027-10-31 01:30:00", "CET"),
    ("Europe/Paris", "2027-10-31 03:00:00", "2027-10-31 03:00:00", "2027-10-31 02:00:00", "CET"),
    # Dublin, whose winter is the exception in the database: 01:00 -> 02:00 on 28 March 2027.
    ("Europe/Dublin", "2027-03-28 01:30:00", "2027-03-28 02:30:00", "2027-03-28 01:30:00", "IST"),
    # Lord Howe: half an hour, 02:00 -> 02:30 on 3 October, 02:00 -> 01:30 on 4 April 2027.
    ("Australia/Lord_Howe", "2027-10-03 02:15:00", "2027-10-03 02:45:00", "2027-10-02 15:45:00", "+11"),
    ("Australia/Lord_Howe", "2027-04-04 01:45:00", "2027-04-04 01:45:00", "2027-04-03 14:45:00", "+11"),
    ("Australia/Lord_Howe", "2027-04-04T01:45:00+10:30", "2027-04-04 01:45:00", "2027-04-03 15:15:00", "+1030"),
    # Chatham: 02:45 -> 03:45 on 26 September 2027.
    ("Pacific/Chatham", "2027-09-26 03:00:00", "2027-09-26 04:00:00", "2027-09-25 14:15:00", "+1345"),
    # Apia left out 30 December 2011.
    ("Pacific/Apia", "2011-12-29 23:59:59", "2011-12-29 23:59:59", "2011-12-30 09:59:59", "-10"),
    ("Pacific/Apia", "2011-12-30 12:00:00", "2011-12-31 12:00:00", "2011-12-30 22:00:00", "+14"),
    ("Pacific/Apia", "2011-12-31 00:00:00", "2011-12-31 00:00:00", "2011-12-30 10:00:00", "+14"),
    # Sao Paulo and Asuncion change at midnight.
    ("America/Sao_Paulo", "2018-11-04 00:00:00", "2018-11-04 01:00:00", "2018-11-04 03:00:00", "-02"),
    ("America/Sao_Paulo", "2018-11-04 00:30:00", "2018-11-04 01:30:00", "2018-11-04 03:30:00", "-02"),
    ("America/Sao_Paulo", "2019-02-16 23:30:00", "2019-02-16 23:30:00", "2019-02-17 01:30:00", "-02"),
    ("America/Sao_Paulo", "2019-02-16T23:30:00-03:00", "2019-02-16 23:30:00", "2019-02-17 02:30:00", "-03"),
    ("America/Asuncion", "2023-10-01 00:15:00", "2023-10-01 01:15:00", "2023-10-01 04:15:00", "-03"),
    ("America/Asuncion", "2024-03-23 23:30:00", "2024-03-23 23:30:00", "2024-03-24 02:30:00", "-03"),
    # Troll changes by two hours: 01:00 -> 03:00 on 28 March, 03:00 -> 01:00 on 31 October 2027.
    ("Antarctica/Troll", "2027-03-28 01:30:00", "2027-03-28 03:30:00", "2027-03-28 01:30:00", "+02"),
    ("Antarctica/Troll", "2027-03-28 02:30:00", "2027-03-28 04:30:00", "2027-03-28 02:30:00", "+02"),
    ("Antarctica/Troll", "2027-10-31 02:30:00", "2027-10-31 02:30:00", "2027-10-31 00:30:00", "+02"),
    ("Antarctica/Troll", "2027-10-31T02:30:00+00:00", "2027-10-31 02:30:00", "2027-10-31 02:30:00", "+00"),
]


def create_event(caller: Caller, zone: str, text: str) -> dict[str, Any]:
    return caller.create("events", title="Clock", start_date=text, end_date=text, timezone=zone)


@pytest.mark.quick("America/New_York-2027-03-14 01:59:59-", "Antarctica/Troll-2027-10-31T02:30:00+00:00-")
@pytest.mark.parametrize(("zone", "text", "local", "utc", "abbreviation"), TIMES)
def test_nonexistent_and_ambiguous_times_are_resolved(
    anonymous: Caller, editor: Caller, zone: str, text: str, local: str, utc: str, abbreviation: str
) -> None:
    record = create_event(editor, zone, text)
    keys = ("start_date", "end_date", "utc_start_date", "utc_end_date", "timezone_abbr")
    expected = (local, local, utc, utc, abbreviation)
    assert tuple(record[key] for key in keys) == expected
    assert tuple(anonymous.read("events", record["id"])[key] for key in keys) == expected
    # The instant that was chosen once stays, whatever else changes.
    for fields in (
        {"title": "Other"},
        {"start_date": local if "T" not in text else text},
        {"timezone": zone.lower()},
        {"all_day": False},
    ):
        changed = editor.change("events", record["id"], **fields)
        assert tuple(changed[key] for key in keys) == expected, fields


@pytest.mark.quick("America/Sao_Paulo-2018-11-04-", "Antarctica/Troll-2027-03-28-")
@pytest.mark.parametrize(
    ("zone", "day", "start", "end", "utc_start", "utc_end"),
    [
        # A day that begins an hour late, ends an hour late, is left out, is 23 or 25 hours long.
        (
            "America/Sao_Paulo",
            "2018-11-04",
            "2018-11-04 01:00:00",
            "2018-11-04 23:59:59",
            "2018-11-04 03:00:00",
            "2018-11-05 01:59:59",
        ),
        (
            "America/Sao_Paulo",
            "2019-02-16",
            "2019-02-16 00:00:00",
            "2019-02-16 23:59:59",
            "2019-02-16 02:00:00",
            "2019-02-17 02:59:59",
        ),
        (
            "America/Asuncion",
            "2023-10-01",
            "2023-10-01 01:00:00",
            "2023-10-01 23:59:59",
            "2023-10-01 04:00:00",
            "2023-10-02 02:59:59",
        ),
        (
            "America/Asuncion",
            "2024-03-23",
            "2024-03-23 00:00:00",
            "2024-03-23 23:59:59",
            "2024-03-23 03:00:00",
            "2024-03-24 03:59:59",
        ),
        (
            "Pacific/Apia",
            "2011-12-30",
            "2011-12-31 00:00:00",
            "2011-12-31 23:59:59",
            "2011-12-30 10:00:00",
            "2011-12-31 09:59:59",
        ),
        (
            "America/New_York",
            "2027-03-14",
            "2027-03-14 00:00:00",
            "2027-03-14 23:59:59",
            "2027-03-14 05:00:00",
            "2027-03-15 03:59:59",
        ),
        (
            "America/New_York",
            "2027-11-07",
            "2027-11-07 00:00:00",
            "2027-11-07 23:59:59",
            "2027-11-07 04:00:00",
            "2027-11-08 04:59:59",
        ),
        (
            "Australia/Lord_Howe",
            "2027-04-04",
            "2027-04-04 00:00:00",
            "2027-04-04 23:59:59",
            "2027-04-03 13:00:00",
            "2027-04-04 13:29:59",
        ),
        (
            "Antarctica/Troll",
            "2027-03-28",
            "2027-03-28 00:00:00",
            "2027-03-28 23:59:59",
            "2027-03-28 00:00:00",
            "2027-03-28 21:59:59",
        ),
    ],
)
def test_all_day_events_on_dst_change_days(
    editor: Caller, zone: str, day: str, start: str, end: str, utc_start: str, utc_end: str
) -> None:
    record = editor.create("events", title="Day", start_date=day, end_date=day, timezone=zone, all_day=True)
    times = [record[key] for key in ("start_date", "end_date", "utc_start_date", "utc_end_date")]
    assert times == [start, end, utc_start, utc_end]
    renamed = editor.change("events", record["id"], title="Kept")
    assert [renamed[key] for key in ("start_date", "end_date", "utc_start_date", "utc_end_date")] == times


def test_event_may_span_repeated_hour(editor: Caller) -> None:
    record = editor.create(
        "events", title="Night", timezone="Europe/Paris",
        start_date="2027-10-31T02:30:00+02:00", end_date="2027-10-31T02:15:00+01:00",
    )  # fmt: skip
    assert (record["start_date"], record["end_date"]) == ("2027-10-31 02:30:00", "2027-10-31 02:15:00")
    assert (record["utc_start_date"], record["utc_end_date"]) == ("2027-10-31 00:30:00", "2027-10-31 01:15:00")
    later = editor.change("events", record["id"], start_date="2027-10-31T02:45:00+02:00")
    assert (later["utc_start_date"], later["utc_end_date"]) == ("2027-10-31 00:45:00", "2027-10-31 01:15:00")
    # In another zone the second time is no longer there: the end would come before the start.
    response = editor.patch(f"/events/{record['id']}", {"timezone": "Europe/London"})
    assert_error(response, 400, "rest_invalid_param", "end_date")


def test_update_keeps_the_second_of_two_equal_times(editor: Caller) -> None:
    second = "2027-10-31T02:30:00+01:00"
    record = editor.create("events", title="Night", timezone="Europe/Paris", start_date=second, end_date=second)
    instants = ("2027-10-31 01:30:00", "2027-10-31 01:30:00")
    assert (record["utc_start_date"], record["utc_end_date"]) == instants
    for fields in ({"title": "Late night"}, {"timezone": "Europe/Paris"}, {"all_day": False}):
        changed = editor.change("events", record["id"], **fields)
        assert (changed["utc_start_date"], changed["utc_end_date"]) == instants, fields
    # The side that an update does not send stays, too.
    longer = editor.change("events", record["id"], end_date="2027-10-31 04:00:00")
    assert (longer["utc_start_date"], longer["utc_end_date"]) == (instants[0], "2027-10-31 03:00:00")


def test_start_in_dst_gap_after_end_is_rejected(editor: Caller) -> None:
    body = {
        "title": "x",
        "timezone": "Europe/Paris",
        "start_date": "2027-03-28 02:30",
        "end_date": "2027-03-28 03:15",
    }
    assert_error(editor.post("/events", body), 400, "rest_invalid_param", "end_date")


def test_list_day_length_follows_site_timezone(start_app: Any) -> None:
    app = start_app()
    app.set_site("timezone", "Europe/Paris")
    editor, anonymous = app.caller("editor"), app.caller()
    times = ["2027-10-30T21:59:59Z", "2027-10-30T22:00:00Z", "2027-10-31T22:59:59Z", "2027-10-31T23:00:00Z"]
    ids = [editor.create("events", title="x", start_date=time, end_date=time)["id"] for time in times]
    assert anonymous.ids("events", start_date="2027-10-31", end_date="2027-10-31") == ids[1:3]
