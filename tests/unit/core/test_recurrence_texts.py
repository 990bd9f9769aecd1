"""RRULE texts and rule objects: what is accepted, how it is written, and the errors."""

from datetime import date

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, Weekday, format_rule, read_rule, read_rule_object, serialize_rule

BERLIN = "Europe/Berlin"

FULL = "FREQ=YEARLY;INTERVAL=2;BYMONTH=1,12;BYMONTHDAY=1,-1;BYDAY=MO,2TU,-53FR;BYSETPOS=1,-1;WKST=SU;COUNT=10"


def read_problem(text: str) -> str:
    with pytest.raises(InvalidValue) as raised:
        read_rule(text, BERLIN)
    return raised.value.text


def read_object_problem(value: dict[str, object]) -> str:
    with pytest.raises(InvalidValue) as raised:
        read_rule_object(value, BERLIN)
    return raised.value.text


def test_text_becomes_a_rule() -> None:
    assert read_rule(FULL, BERLIN) == Rule(
        frequency="yearly",
        interval=2,
        count=10,
        until=None,
        weekdays=(Weekday(0, None), Weekday(1, 2), Weekday(4, -53)),
        month_days=(1, -1),
        months=(1, 12),
        set_positions=(1, -1),
        week_start=6,
    )
    assert read_rule("FREQ=DAILY", BERLIN) == Rule("daily", 1, None, None, (), (), (), (), 0)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (FULL, FULL),
        ("RRULE:FREQ=WEEKLY", "FREQ=WEEKLY"),
        (" rrule:freq=weekly;byday=tu \n", "FREQ=WEEKLY;BYDAY=TU"),
        ("FREQ=WEEKLY;", "FREQ=WEEKLY"),
        ("FREQ=WEEKLY; BYDAY = TH, TU ,TU", "FREQ=WEEKLY;BYDAY=TU,TH"),
        ("UNTIL=20270503;WKST=MO;INTERVAL=01;FREQ=WEEKLY", "FREQ=WEEKLY;UNTIL=20270503"),
        ("FREQ=MONTHLY;BYDAY=+1MO,-1FR,FR", "FREQ=MONTHLY;BYDAY=FR,1MO,-1FR"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1,+15,1", "FREQ=MONTHLY;BYMONTHDAY=1,15,-1"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1,+2", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2,-1"),
        ("FREQ=DAILY;INTERVAL=999;COUNT=1000", "FREQ=DAILY;INTERVAL=999;COUNT=1000"),
        ("FREQ=DAILY;UNTIL=99991231", "FREQ=DAILY;UNTIL=99991231"),
        ("FREQ=DAILY;UNTIL=00010101T000060", "FREQ=DAILY;UNTIL=00010101"),
    ],
)
def test_text_is_written_in_canonical_form(text: str, canonical: str) -> None:
    rule = read_rule(text, BERLIN)
    assert format_rule(rule) == canonical
    assert read_rule(canonical, BERLIN) == rule


@pytest.mark.parametrize(
    ("until", "zone", "day"),
    [
        ("20270503", BERLIN, date(2027, 5, 3)),
        ("20270503T000000", BERLIN, date(2027, 5, 3)),
        ("20270503T235959", "America/New_York", date(2027, 5, 3)),
        ("20270503T000000Z", BERLIN, date(2027, 5, 3)),
        ("20270503T220000Z", BERLIN, date(2027, 5, 4)),
        ("20270503T215959Z", BERLIN, date(2027, 5, 3)),
        ("20270503T000000Z", "America/New_York", date(2027, 5, 2)),
        ("20270503T120000Z", "Pacific/Kiritimati", date(2027, 5, 4)),
        ("20270503T120000Z", "UTC-12", date(2027, 5, 3)),
        ("99991231T235959Z", BERLIN, date.max),
        ("00010101T000000Z", "America/New_York", date.min),
    ],
)
def test_until_is_a_day_in_the_zone(until: str, zone: str, day: date) -> None:
    assert read_rule(f"FREQ=DAILY;UNTIL={until}", zone).until == day


FREQUENCY = (
    "`FREQ` must be DAILY, WEEKLY, MONTHLY or YEARLY. For several times a day, create one series for each time."
)
INTERVAL = "`INTERVAL` must be a whole number from 1 to 999."
COUNT = "`COUNT` must be a whole number from 1 to 1,000."
UNTIL = "`UNTIL` must be a date such as 20270503, or a time such as 20270503T170000Z."
WEEKDAYS = '`BYDAY` must be a list of weekdays, such as "MO,TU" or "-1FR".'
ONE_RULE = "A series has one rule. Create a series for each rule, or list the dates."


def not_a_part(part: str) -> str:
    return f'A rule consists of parts such as FREQ=WEEKLY, separated by semicolons; "{part}" is not one.'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", not_a_part("")),
        ("RRULE:", not_a_part("")),
        ("WEEKLY", not_a_part("WEEKLY")),
        ("FREQ=", not_a_part("FREQ=")),
        ("=WEEKLY", not_a_part("=WEEKLY")),
        ("FREQ=WEEKLY;;BYDAY=TU", not_a_part("")),
        ("FREQ=WEEKLY;BYDAY=TU;;", not_a_part("")),
        ("BYDAY=TU", FREQUENCY),
        ("FREQ=HOURLY", FREQUENCY),
        ("FREQ=FORTNIGHTLY", FREQUENCY),
        *[
            (f"FREQ=DAILY;INTERVAL={value}", INTERVAL)
            for value in ("0", "-1", "+5", "1000", "1.5", "１０", "x", "9" * 99)
        ],
        *[(f"FREQ=DAILY;COUNT={value}", COUNT) for value in ("0", "-1", "+5", "1001", "1e3", "１０", "٣", "1 0")],
        *[
            (f"FREQ=DAILY;UNTIL={value}", UNTIL)
            for value in (
                *("2027-05-03", "20270230", "20271301", "00000101", "2027050", "20270503T25", "20270503T2500"),
                *("20270503T240000", "20270503Z", "20270503T1200Z", "20270503T120000+0200", "２0270503", "TOMORROW"),
            )
        ],
        ("FREQ=DAILY;COUNT=3;UNTIL=20270503", "Use either `COUNT` or `UNTIL`, not both."),
        *[
            (f"FREQ=MONTHLY;BYDAY={value}", WEEKDAYS)
            for value in ("XX", "MO,", ",MO", "1", "MO1", "１MO", "1 MO", "--1MO")
        ],
        *[
            (
                f"FREQ={frequency};BYDAY=5TU",
                '`BYDAY`: a number, as in "5TU", can only be used with MONTHLY or YEARLY.',
            )
            for frequency in ("DAILY", "WEEKLY")
        ],
        *[
            (
                f"FREQ={frequency};BYDAY={day}",
                f"`BYDAY`: with {frequency}, the number of a weekday must be "
                f"from 1 to {limit} or from -{limit} to -1.",
            )
            for frequency, day, limit in (
                *(("MONTHLY", "0MO", 5), ("MONTHLY", "6MO", 5), ("MONTHLY", "-6MO", 5)),
                *(("YEARLY", "54MO", 53), ("YEARLY", "-99MO", 53), ("YEARLY", "-0MO", 53)),
            )
        ],
        *[
            (
                f"FREQ=MONTHLY;{name}={value}",
                f"`{name}` must be a list of numbers from 1 to {limit} or from -{limit} to -1.",
            )
            for name, value, limit in (
                *(
                    ("BYMONTHDAY", "0", 31),
                    ("BYMONTHDAY", "32", 31),
                    ("BYMONTHDAY", "1,,2", 31),
                    ("BYMONTHDAY", "x", 31),
                ),
                *(("BYSETPOS", "0", 366), ("BYSETPOS", "-367", 366), ("BYSETPOS", "１", 366)),
            )
        ],
        *[
            (f"FREQ=YEARLY;BYMONTH={value}", "`BYMONTH` must be a list of numbers from 1 to 12.")
            for value in ("0", "13", "-1", "+1", "5L", "JAN")
        ],
        ("FREQ=WEEKLY;WKST=XX", "`WKST` must be a weekday such as MO."),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "`BYMONTHDAY` cannot be used with WEEKLY."),
        ("FREQ=MONTHLY;BYSETPOS=1", "`BYSETPOS` needs one of `BYDAY`, `BYMONTHDAY`, `BYMONTH`."),
        *[
            (f"FREQ=YEARLY;{name}=1", f"`{name}` is not supported.")
            for name in (
                "BYHOUR",
                "BYMINUTE",
                "BYSECOND",
                "BYWEEKNO",
                "BYYEARDAY",
                "BYEASTER",
                "RSCALE",
                "SKIP",
                "X-A",
            )
        ],
        ("FREQ=DAILY;INTERVALL=2", "`INTERVALL` is not supported. Did you mean INTERVAL?"),
        ("FREQ=DAILY;COUNT=1;COUNT=2", "`COUNT` appears more than once."),
        ("FREQ=DAILY;freq=DAILY", "`FREQ` appears more than once."),
        ("FREQ=DAILY;BYMONTH=" + "1," * 250 + "1", "A rule can have at most 500 characters."),
        ("RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY", ONE_RULE),
        ("RRULE:FREQ=DAILY RRULE:FREQ=WEEKLY", ONE_RULE),
        ("FREQ=DAILY\x00", FREQUENCY),
    ],
)
def test_invalid_text_is_rejected(text: str, problem: str) -> None:
    assert read_problem(text) == problem


OBJECT: dict[str, object] = {
    "rrule": FULL,
    "frequency": "yearly",
    "interval": 2,
    "weekdays": ["monday", {"weekday": "tuesday", "ordinal": 2}, {"weekday": "friday", "ordinal": -53}],
    "month_days": [1, -1],
    "months": [1, 12],
    "set_positions": [1, -1],
    "count": 10,
    "week_start": "sunday",
}


def test_rule_is_serialized_as_text_and_fields() -> None:
    assert serialize_rule(read_rule(FULL, BERLIN)) == OBJECT
    assert serialize_rule(read_rule("FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503", BERLIN)) == {
        "rrule": "FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503",
        "frequency": "weekly",
        "interval": 1,
        "weekdays": ["tuesday"],
        "until": "2027-05-03",
    }


@pytest.mark.parametrize(
    "value",
    [
        OBJECT,
        {name: value for name, value in OBJECT.items() if name != "rrule"},
        {"rrule": FULL},
        {**OBJECT, "rrule": None, "until": None, "frequency": "Yearly", "interval": "2", "count": 10.0},
        {**OBJECT, "months": "1,12", "month_days": ["1", "-1"], "week_start": "SUNDAY"},
    ],
)
def test_object_is_read(value: dict[str, object]) -> None:
    assert read_rule_object(value, BERLIN) == read_rule(FULL, BERLIN)


def test_empty_lists_of_an_object_are_ignored() -> None:
    value = {"frequency": "weekly", "weekdays": [], "month_days": [], "until": "2027-05-03"}
    assert format_rule(read_rule_object(value, BERLIN)) == "FREQ=WEEKLY;UNTIL=20270503"


def weekly(**fields: object) -> dict[str, object]:
    return {"frequency": "weekly", **fields}


OBJECT_FREQUENCY = (
    "`frequency` must be daily, weekly, monthly or yearly. For several times a day, create one series for each time."
)
OBJECT_WEEKDAY = "a weekday must be one of monday, tuesday, wednesday, thursday, friday, saturday, sunday."


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, OBJECT_FREQUENCY),
        ({"frequency": "hourly"}, OBJECT_FREQUENCY),
        ({"frequency": 7}, OBJECT_FREQUENCY),
        (weekly(interval=0), "`interval` must be a whole number from 1 to 999."),
        (weekly(interval=True), "`interval` must be a whole number from 1 to 999."),
        (weekly(count=[3]), "`count` must be a whole number from 1 to 1,000."),
        (weekly(count=10**30), "`count` must be a whole number from 1 to 1,000."),
        (weekly(count=1.5), "`count` must be a whole number from 1 to 1,000."),
        (weekly(count=3, until="2027-05-03"), "Use either `count` or `until`, not both."),
        (weekly(until="20270503"), "`until` must be a date such as 2027-05-03."),
        (weekly(until=20270503), "`until` must be a date such as 2027-05-03."),
        (weekly(until="2027-02-30"), "`until` must be a date such as 2027-05-03."),
        (weekly(weekdays=["teusday"]), f"`weekdays`: {OBJECT_WEEKDAY} Did you mean tuesday?"),
        (weekly(weekdays=[1]), f"`weekdays`: {OBJECT_WEEKDAY}"),
        (weekly(weekdays=[["monday"]]), f"`weekdays`: {OBJECT_WEEKDAY}"),
        (weekly(weekdays=[{"ordinal": 1}]), f"`weekdays`: {OBJECT_WEEKDAY}"),
        (weekly(weekdays=[{"weekday": "monday", "day": 1}]), "There is no field `day`."),
        (weekly(week_start=0), f"`week_start`: {OBJECT_WEEKDAY}"),
        (
            weekly(weekdays=[{"weekday": "monday", "ordinal": "first"}]),
            "`weekdays`: `ordinal` must be a whole number such as -1.",
        ),
        (
            weekly(weekdays=[{"weekday": "monday", "ordinal": 1}]),
            '`weekdays`: a number, as in "5TU", can only be used with MONTHLY or YEARLY.',
        ),
        (weekly(months=[0]), "`months` must be a list of numbers from 1 to 12."),
        (weekly(months={"a": 1}), "`months` must be a list of numbers from 1 to 12."),
        (weekly(month_days=[1]), "`month_days` cannot be used with WEEKLY."),
        (weekly(set_positions=[1]), "`set_positions` needs one of `weekdays`, `month_days`, `months`."),
        (weekly(bymonth=1, x=2), "There is no field `bymonth`, `x`."),
        (weekly(weekday="monday"), "There is no field `weekday`. Did you mean weekdays?"),
        (
            weekly(rrule="FREQ=DAILY"),
            "`rrule` and the other fields describe different rules. Send only one of the two.",
        ),
        ({"rrule": 1}, "`rrule` must be a string."),
        ({"rrule": "FREQ=X"}, FREQUENCY),
        (weekly(months=[1] * 501), "A rule can have at most 500 characters."),
        (
            {"frequency": "yearly", "months": [1], "set_positions": list(range(1, 367))},
            "A rule can have at most 500 characters.",
        ),
    ],
)
def test_invalid_object_is_rejected(value: dict[str, object], problem: str) -> None:
    assert read_object_problem(value) == problem
