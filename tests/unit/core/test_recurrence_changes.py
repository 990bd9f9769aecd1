"""Rules that move, end earlier or continue; warnings; rules that other programs misread."""

from datetime import datetime, timedelta

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import (
    end_before,
    expand,
    find_warnings,
    format_rule,
    is_ambiguous,
    read_rule,
    rest_from,
    shift_rule,
)

HORIZON = datetime(2029, 1, 1)
TUESDAY = datetime(2027, 1, 5, 19, 30)


@pytest.mark.parametrize(
    ("text", "days", "shifted"),
    [
        ("FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503", 1, "FREQ=WEEKLY;BYDAY=WE;UNTIL=20270504"),
        ("FREQ=WEEKLY;BYDAY=TU,SU", 1, "FREQ=WEEKLY;BYDAY=MO,WE"),
        ("FREQ=WEEKLY;BYDAY=TU,SU", -2, "FREQ=WEEKLY;BYDAY=FR,SU"),
        ("FREQ=WEEKLY;BYDAY=TU;COUNT=5", 14, "FREQ=WEEKLY;BYDAY=TU;COUNT=5"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", 6, "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU", 1, "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;WKST=TU"),
        ("FREQ=DAILY", 1, "FREQ=DAILY"),
        ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR", 1, "FREQ=DAILY;BYDAY=TU,WE,TH,FR,SA"),
        ("FREQ=MONTHLY;UNTIL=20270503", -3, "FREQ=MONTHLY;UNTIL=20270430"),
        ("FREQ=YEARLY", 40, "FREQ=YEARLY"),
        ("FREQ=YEARLY;UNTIL=99991231", 1, "FREQ=YEARLY;UNTIL=99991231"),
        ("FREQ=MONTHLY;BYDAY=1TU", 0, "FREQ=MONTHLY;BYDAY=1TU"),
    ],
)
def test_rule_moves_with_its_series(text: str, days: int, shifted: str) -> None:
    assert format_rule(shift_rule(read_rule(text, "UTC"), days)) == shifted


@pytest.mark.parametrize("days", [-8, -1, 1, 5, 7])
@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;INTERVAL=3;UNTIL=20280301",
        "FREQ=DAILY;INTERVAL=2;BYDAY=MO,TU",
        "FREQ=WEEKLY;COUNT=20",
        "FREQ=WEEKLY;BYDAY=TU,FR,SU;UNTIL=20280301",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,SU",
        "FREQ=WEEKLY;BYDAY=MO,TU,SU;BYSETPOS=-1,2",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,SU;BYSETPOS=2;WKST=SU;COUNT=30",
    ],
)
def test_every_date_moves_by_the_same_number_of_days(text: str, days: int) -> None:
    rule, distance = read_rule(text, "UTC"), timedelta(days=days)
    moved = expand(shift_rule(rule, days), TUESDAY + distance, HORIZON + distance)
    assert [*moved] == [moment + distance for moment in expand(rule, TUESDAY, HORIZON)]


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=MONTHLY;BYDAY=1TU",
        "FREQ=MONTHLY;BYMONTHDAY=5",
        "FREQ=WEEKLY;BYMONTH=1",
        "FREQ=DAILY;BYMONTHDAY=5",
        "FREQ=YEARLY;BYDAY=TU",
    ],
)
def test_rule_that_cannot_move_is_required(text: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        shift_rule(read_rule(text, "UTC"), 1)
    assert raised.value.text == "Moving this series to another day changes its rule. Send the new `rule` as well."


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=WEEKLY;BYDAY=TU,TH",
        "FREQ=WEEKLY;BYDAY=TU,TH;COUNT=30",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;COUNT=30",
        "FREQ=MONTHLY;BYDAY=1TU;UNTIL=20280601",
        "FREQ=DAILY;INTERVAL=5",
    ],
)
@pytest.mark.parametrize("index", [1, 2, 9])
def test_rule_is_divided_at_a_date(text: str, index: int) -> None:
    rule = read_rule(text, "UTC")
    dates = [*expand(rule, TUESDAY, HORIZON)]
    slot = dates[index]
    assert [*expand(end_before(rule, TUESDAY, slot), TUESDAY, HORIZON)] == dates[:index]
    assert [*expand(rest_from(rule, TUESDAY, slot), slot, HORIZON)] == dates[index:]


def test_rule_that_ends_earlier_keeps_its_kind_of_end() -> None:
    slot = datetime(2027, 1, 19, 19, 30)
    for text, ended, rest in [
        ("FREQ=WEEKLY;COUNT=5", "FREQ=WEEKLY;COUNT=2", "FREQ=WEEKLY;COUNT=3"),
        ("FREQ=WEEKLY", "FREQ=WEEKLY;UNTIL=20270118", "FREQ=WEEKLY"),
        ("FREQ=WEEKLY;UNTIL=20270301", "FREQ=WEEKLY;UNTIL=20270118", "FREQ=WEEKLY;UNTIL=20270301"),
        ("FREQ=WEEKLY;UNTIL=20270107", "FREQ=WEEKLY;UNTIL=20270107", "FREQ=WEEKLY;UNTIL=20270107"),
    ]:
        rule = read_rule(text, "UTC")
        assert format_rule(end_before(rule, TUESDAY, slot)) == ended
        assert format_rule(rest_from(rule, TUESDAY, slot)) == rest


def test_rule_that_ends_before_its_start_has_no_dates() -> None:
    for text in ("FREQ=WEEKLY;COUNT=5", "FREQ=WEEKLY"):
        ended = end_before(read_rule(text, "UTC"), TUESDAY, TUESDAY)
        assert not [*expand(ended, TUESDAY, HORIZON)]


NO_31ST = "Five months of the year have no 31st. Use `BYMONTHDAY=-1` for the last day of every month."
NO_30TH = "February has no 30th. Use `BYMONTHDAY=-1` for the last day of every month."
NO_29TH = "February has a 29th only in leap years."
NO_FIFTH = 'Not every month has five of a weekday. Use -1, as in "-1TU", for the last one of every month.'


@pytest.mark.parametrize(
    ("text", "start", "warnings"),
    [
        ("FREQ=MONTHLY;BYMONTHDAY=31", None, [NO_31ST]),
        ("FREQ=MONTHLY", datetime(2027, 1, 31), [NO_31ST]),
        ("FREQ=MONTHLY", datetime(2027, 1, 30), [NO_30TH]),
        ("FREQ=MONTHLY", datetime(2027, 1, 28), []),
        ("FREQ=MONTHLY", None, []),
        ("FREQ=MONTHLY;BYMONTHDAY=1,29", None, [NO_29TH]),
        ("FREQ=MONTHLY;BYMONTHDAY=30,31", None, [NO_31ST]),
        ("FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=1,3", None, []),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", datetime(2027, 1, 31), []),
        ("FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1", None, []),
        ("FREQ=YEARLY", datetime(2028, 2, 29), [NO_29TH]),
        ("FREQ=YEARLY", datetime(2027, 1, 31), []),
        ("FREQ=YEARLY;BYMONTH=1,6", datetime(2027, 1, 31), [NO_31ST]),
        ("FREQ=MONTHLY;BYDAY=5TU", None, [NO_FIFTH]),
        ("FREQ=MONTHLY;BYDAY=4TU,-1FR", datetime(2027, 1, 31), []),
        ("FREQ=YEARLY;BYDAY=5TU", None, []),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-5TU", None, [NO_FIFTH]),
        ("FREQ=WEEKLY", datetime(2027, 1, 31), []),
        ("FREQ=DAILY;BYMONTHDAY=31", None, []),
    ],
)
def test_skipped_dates_cause_warnings(text: str, start: datetime | None, warnings: list[str]) -> None:
    assert [str(message) for message in find_warnings(read_rule(text, "UTC"), start)] == warnings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=MONTHLY;BYDAY=3SU,TH", True),
        ("FREQ=MONTHLY;BYDAY=3SU,1TH", False),
        ("FREQ=MONTHLY;BYDAY=SU,TH", False),
        ("FREQ=WEEKLY;BYDAY=SU,TH;BYSETPOS=1", True),
        ("FREQ=MONTHLY;BYDAY=SU,TH;BYSETPOS=1", False),
        ("FREQ=MONTHLY;BYDAY=SU,TH;BYSETPOS=1,-1", True),
        ("FREQ=YEARLY", False),
    ],
)
def test_rules_that_programs_misread_are_known(text: str, expected: bool) -> None:
    assert is_ambiguous(read_rule(text, "UTC")) is expected


@pytest.mark.parametrize("rule", ["FREQ=WEEKLY", "FREQ=WEEKLY;COUNT=9", "FREQ=WEEKLY;UNTIL=20270503"])
@pytest.mark.parametrize(("hour", "count"), [(18, 2), (19, 2), (20, 3)])
def test_a_rule_ends_before_a_time_of_day(rule: str, hour: int, count: int) -> None:
    start = datetime(2027, 1, 5, 19)
    ended = end_before(read_rule(rule, "UTC"), start, datetime(2027, 1, 19, hour))
    assert len(list(expand(ended, start, datetime(2028, 1, 1)))) == count
