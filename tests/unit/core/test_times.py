"""Reading dates, and wall times at the borders of zones."""

from datetime import UTC, datetime, timedelta

import pytest

from kalends.core.date_forms import read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.times import (
    DateTimeInput,
    LocalTime,
    Span,
    abbreviation,
    datetime_parts,
    day_begins,
    day_ends,
    default_window,
    event_span,
    format_datetime,
    resolve,
    to_utc,
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_time_at(local: str, utc_text: str, fold: int = 0) -> LocalTime:
    return LocalTime(datetime.fromisoformat(local), fold, utc(utc_text))


def parse_local(text: str, zone: str) -> LocalTime:
    return resolve(read_datetime(text), zone)


def all_day_span(day: str, zone: str) -> Span:
    return event_span(read_datetime(day), read_datetime(day), zone, all_day=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-04-01", DateTimeInput(datetime(2027, 4, 1), None, is_date_only=True)),
        ("2027-04-01 10:30", DateTimeInput(datetime(2027, 4, 1, 10, 30), None, is_date_only=False)),
        ("2027-04-01T10:30:05", DateTimeInput(datetime(2027, 4, 1, 10, 30, 5), None, is_date_only=False)),
        (
            "2027-04-01T10:30:05.999Z",
            DateTimeInput(datetime(2027, 4, 1, 10, 30, 5), timedelta(0), is_date_only=False),
        ),
        ("2027-04-01 10:30+02", DateTimeInput(datetime(2027, 4, 1, 10, 30), timedelta(hours=2), is_date_only=False)),
        (
            "2027-04-01 10:30-0330",
            DateTimeInput(datetime(2027, 4, 1, 10, 30), -timedelta(hours=3.5), is_date_only=False),
        ),
        (
            "2027-04-01 10:30+05:45",
            DateTimeInput(datetime(2027, 4, 1, 10, 30), timedelta(hours=5.75), is_date_only=False),
        ),
        ("\t2027-04-01\n", DateTimeInput(datetime(2027, 4, 1), None, is_date_only=True)),
        ("@0", DateTimeInput(datetime(1970, 1, 1), timedelta(0), is_date_only=False)),
        ("@-86400", DateTimeInput(datetime(1969, 12, 31), timedelta(0), is_date_only=False)),
        ("0001-01-01", DateTimeInput(datetime(1, 1, 1), None, is_date_only=True)),
        ("9998-12-31", DateTimeInput(datetime(9998, 12, 31), None, is_date_only=True)),
    ],
)
def test_iso_notations_are_parsed(text: str, expected: DateTimeInput) -> None:
    assert read_datetime(text) == expected


INVALID_DATES = [
    "",
    " ",
    "2027",
    "20270401",
    "20270401T103000",
    "1806660000",
    "2027-02-29",
    "2027-13-01",
    "2027-04-31",
    "0000-00-00",
    "0000-01-01",
    "9999-01-01",
    "10000-01-01",
    "-2027-01-01",
    "2027-04-01 24:00",
    "2027-04-01 10:60",
    "2027-04-01 10:30:60",
    "2027-04-01 10",
    "2027-04-01T",
    "2027-W14",
    "2027-04-01 10:30 02:00",
    "2027-04-01 10:30+2",
    "2027-04-01 10:30+24:00",
    "2027-04-01 10:30+02:60",
    "2027-04-01Z",
    "2027-04-01 10:30:00.Z",
    "@",
    "@1.5",
    "@99999999999999",
    "@999999999999",
    "٢٠٢٧-٠٤-٠١",
    "2027-04-01\x00",
    "2027-04-01\u3000",
    "2027-04-01 10:30:00." + "0" * 100,
]


@pytest.mark.parametrize("text", INVALID_DATES)
def test_invalid_notations_are_rejected(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_datetime(text)


@pytest.mark.parametrize(
    ("zone", "text", "local_time"),
    [
        # Spring: the clock jumps, the time moves forward by the jump.
        ("America/New_York", "2027-03-14 01:59:59", local_time_at("2027-03-14 01:59:59", "2027-03-14 06:59:59")),
        ("America/New_York", "2027-03-14 02:00:00", local_time_at("2027-03-14 03:00:00", "2027-03-14 07:00:00")),
        ("America/New_York", "2027-03-14 02:30:00", local_time_at("2027-03-14 03:30:00", "2027-03-14 07:30:00")),
        ("America/New_York", "2027-03-14 03:00:00", local_time_at("2027-03-14 03:00:00", "2027-03-14 07:00:00")),
        ("Europe/Paris", "2027-03-28 02:30:00", local_time_at("2027-03-28 03:30:00", "2027-03-28 01:30:00")),
        ("Australia/Lord_Howe", "2027-10-03 02:15:00", local_time_at("2027-10-03 02:45:00", "2027-10-02 15:45:00")),
        ("America/Sao_Paulo", "2018-11-04 00:15:00", local_time_at("2018-11-04 01:15:00", "2018-11-04 03:15:00")),
        ("Africa/Cairo", "2027-04-30 00:30:00", local_time_at("2027-04-30 01:30:00", "2027-04-29 22:30:00")),
        ("Antarctica/Troll", "2027-03-28 01:30:00", local_time_at("2027-03-28 03:30:00", "2027-03-28 01:30:00")),
        ("Pacific/Apia", "2011-12-30 12:00:00", local_time_at("2011-12-31 12:00:00", "2011-12-30 22:00:00")),
        # Autumn: the first of two equal times is meant.
        ("America/New_York", "2027-11-07 01:30:00", local_time_at("2027-11-07 01:30:00", "2027-11-07 05:30:00")),
        ("Europe/Paris", "2027-10-31 02:30:00", local_time_at("2027-10-31 02:30:00", "2027-10-31 00:30:00")),
        ("Australia/Lord_Howe", "2027-04-04 01:45:00", local_time_at("2027-04-04 01:45:00", "2027-04-03 14:45:00")),
        ("Africa/Cairo", "2027-10-28 23:30:00", local_time_at("2027-10-28 23:30:00", "2027-10-28 20:30:00")),
        ("Antarctica/Troll", "2027-10-31 02:30:00", local_time_at("2027-10-31 02:30:00", "2027-10-31 00:30:00")),
        # An offset names one of them.
        (
            "America/New_York",
            "2027-11-07T01:30:00-04:00",
            local_time_at("2027-11-07 01:30:00", "2027-11-07 05:30:00"),
        ),
        (
            "America/New_York",
            "2027-11-07T01:30:00-05:00",
            local_time_at("2027-11-07 01:30:00", "2027-11-07 06:30:00", 1),
        ),
        ("Europe/Paris", "2027-10-31T01:30:00Z", local_time_at("2027-10-31 02:30:00", "2027-10-31 01:30:00", 1)),
        (
            "Australia/Lord_Howe",
            "2027-04-03T15:15:00Z",
            local_time_at("2027-04-04 01:45:00", "2027-04-03 15:15:00", 1),
        ),
        ("Antarctica/Troll", "2027-10-31T02:30:00Z", local_time_at("2027-10-31 02:30:00", "2027-10-31 02:30:00", 1)),
        ("UTC+5:30", "2027-07-01 10:00:00", local_time_at("2027-07-01 10:00:00", "2027-07-01 04:30:00")),
    ],
)
def test_local_time_is_resolved(zone: str, text: str, local_time: LocalTime) -> None:
    assert parse_local(text, zone) == local_time


@pytest.mark.parametrize(
    ("zone", "day", "span"),
    [
        ("Europe/Paris", "2027-06-01", Span(local_time_at("2027-06-01 00:00:00", "2027-05-31 22:00:00"),
                                             local_time_at("2027-06-01 23:59:59", "2027-06-01 21:59:59"))),
        # Midnight does not exist: the day begins with its first second.
        ("America/Sao_Paulo", "2018-11-04", Span(local_time_at("2018-11-04 01:00:00", "2018-11-04 03:00:00"),
                                                  local_time_at("2018-11-04 23:59:59", "2018-11-05 01:59:59"))),
        ("Africa/Cairo", "2027-04-30", Span(local_time_at("2027-04-30 01:00:00", "2027-04-29 22:00:00"),
                                             local_time_at("2027-04-30 23:59:59", "2027-04-30 20:59:59"))),
        # The last hour comes twice: the day ends with the second one.
        ("Africa/Cairo", "2027-10-28", Span(local_time_at("2027-10-28 00:00:00", "2027-10-27 21:00:00"),
                                             local_time_at("2027-10-28 23:59:59", "2027-10-28 21:59:59", 1))),
        ("America/Sao_Paulo", "2018-02-17", Span(local_time_at("2018-02-17 00:00:00", "2018-02-17 02:00:00"),
                                                  local_time_at("2018-02-17 23:59:59", "2018-02-18 02:59:59", 1))),
        # The first hour comes twice: the day begins with the first one.
        ("America/Havana", "2027-11-07", Span(local_time_at("2027-11-07 00:00:00", "2027-11-07 04:00:00"),
                                               local_time_at("2027-11-07 23:59:59", "2027-11-08 04:59:59"))),
        # The jump goes over midnight: one day ends early, the next begins late.
        ("America/Toronto", "1919-03-30", Span(local_time_at("1919-03-30 00:00:00", "1919-03-30 05:00:00"),
                                                local_time_at("1919-03-30 23:29:59", "1919-03-31 04:29:59"))),
        ("America/Toronto", "1919-03-31", Span(local_time_at("1919-03-31 00:30:00", "1919-03-31 04:30:00"),
                                                local_time_at("1919-03-31 23:59:59", "1919-04-01 03:59:59"))),
        # The day does not exist at all: the next one takes its place.
        ("Pacific/Apia", "2011-12-30", Span(local_time_at("2011-12-31 00:00:00", "2011-12-30 10:00:00"),
                                             local_time_at("2011-12-31 23:59:59", "2011-12-31 09:59:59"))),
    ],
)  # fmt: skip
def test_all_day_event_spans_first_to_last_second(zone: str, day: str, span: Span) -> None:
    assert all_day_span(day, zone) == span
    assert day_begins(read_datetime(day), zone) == span.start.utc
    assert day_ends(read_datetime(day), zone) == span.end.utc


def test_all_day_date_is_local_date_of_instant() -> None:
    late = read_datetime("2027-06-01T23:30:00Z")
    assert event_span(late, late, "Asia/Tokyo", all_day=True) == all_day_span("2027-06-02", "Asia/Tokyo")
    assert day_begins(late, "Asia/Tokyo") == utc("2027-06-01 15:00:00")
    assert day_ends(late, "America/New_York") == utc("2027-06-02 03:59:59")


def test_end_before_start_is_compared_by_instant() -> None:
    zone = "America/New_York"
    with pytest.raises(
        InvalidValue, match="end, 2027-01-01 10:00:00, must not be before the start, 2027-01-01 10:00:01"
    ):
        event_span(read_datetime("2027-01-01 10:00:01"), read_datetime("2027-01-01 10:00"), zone, all_day=False)
    first = read_datetime("2027-11-07T01:50:00-04:00")
    second = read_datetime("2027-11-07T01:10:00-05:00")
    assert event_span(first, second, zone, all_day=False).end.fold == 1
    with pytest.raises(InvalidValue):
        event_span(second, first, zone, all_day=False)
    with pytest.raises(InvalidValue):
        event_span(read_datetime("2027-01-02"), read_datetime("2027-01-01"), zone, all_day=True)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("9998-12-31 23:00:00", "America/New_York"),
        ("9998-12-31T23:00:00-05:00", "UTC"),
        ("9998-12-31T23:00:00Z", "Asia/Tokyo"),
        ("0001-01-01 00:00:00", "Asia/Tokyo"),
        ("0001-01-01T00:00:00+10:00", "UTC"),
        ("0001-01-01T00:00:00Z", "America/New_York"),
    ],
)
def test_dates_outside_supported_years_are_rejected(text: str, zone: str) -> None:
    with pytest.raises(InvalidValue, match="years 1 and 9998"):
        parse_local(text, zone)


def test_instant_is_exact() -> None:
    assert to_utc(read_datetime("2027-01-01 10:00"), "Europe/Paris") == utc("2027-01-01 09:00:00")
    assert to_utc(read_datetime("2027-01-01T10:00+01:00"), "Asia/Tokyo") == utc("2027-01-01 09:00:00")
    assert to_utc(read_datetime("@1806660000"), "Asia/Tokyo") == utc("2027-04-02 10:00:00")


def test_default_window_is_two_years_from_today() -> None:
    assert default_window(utc("2027-06-02 03:00:00"), "America/New_York") == (
        datetime(2027, 6, 1),
        datetime(2029, 6, 1, 23, 59, 59),
    )
    assert default_window(utc("2028-02-29 12:00:00"), "UTC") == (
        datetime(2028, 2, 29),
        datetime(2030, 2, 28, 23, 59, 59),
    )


def test_datetime_format() -> None:
    value = datetime(33, 4, 3, 9, 5, 7)
    assert format_datetime(value) == "0033-04-03 09:05:07"
    assert format_datetime(value.replace(microsecond=999999, tzinfo=UTC)) == "0033-04-03 09:05:07"
    assert format_datetime(datetime.max) == "9999-12-31 23:59:59"
    assert datetime_parts(value) == {
        "year": "0033", "month": "04", "day": "03", "hour": "09", "minutes": "05", "seconds": "07",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("instant_utc", "zone", "letters"),
    [
        ("2027-01-01 00:00:00", "Europe/Paris", "CET"),
        ("2027-07-01 00:00:00", "Europe/Paris", "CEST"),
        ("2027-07-01 00:00:00", "UTC+5.5", "UTC+5.5"),
        ("2027-07-01 00:00:00", "America/Sao_Paulo", "-03"),
        ("2027-07-01 00:00:00", "UTC", "UTC"),
    ],
)
def test_timezone_abbreviations(instant_utc: str, zone: str, letters: str) -> None:
    assert abbreviation(utc(instant_utc), zone) == letters
