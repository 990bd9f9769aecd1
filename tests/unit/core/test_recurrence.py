"""Dates of rules: fixed cases, the limits of expansions, and the first date."""

from datetime import datetime, time
from itertools import islice

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, Weekday, check_start, expand, period_of, read_rule
from tests.unit.core.rule_cases import CASES, read_dates

NEW_YORK = "America/New_York"
HORIZON = datetime(2110, 1, 1)


@pytest.mark.parametrize(("start", "text", "expected"), CASES)
def test_rule_gives_its_dates(start: str, text: str, expected: str) -> None:
    rule, dates = read_rule(text, NEW_YORK), [*read_dates(expected)]
    is_finite = rule.count is not None or rule.until is not None or not dates
    found = expand(rule, next(read_dates(start)), HORIZON)
    assert [*islice(found, None if is_finite else len(dates))] == dates


def test_there_are_sixty_fixed_cases() -> None:
    assert len({text for _, text, _ in CASES}) >= 60


def test_limits_are_inclusive_and_have_a_time_of_day() -> None:
    rule, start = Rule("daily"), datetime(2027, 1, 1, 19, 30)
    assert [*expand(rule, start, datetime(2027, 1, 3, 19, 30))][-1] == datetime(2027, 1, 3, 19, 30)
    assert [*expand(rule, start, datetime(2027, 1, 3, 19, 29))][-1] == datetime(2027, 1, 2, 19, 30)
    after = [*expand(rule, start, datetime(2027, 1, 5), after=datetime(2027, 1, 3, 19, 30))]
    assert after == [datetime(2027, 1, 3, 19, 30), datetime(2027, 1, 4, 19, 30)]
    assert [*expand(rule, start, datetime(2027, 1, 5), after=datetime(2027, 1, 3, 19, 31))] == after[1:]


def test_end_before_start_gives_nothing() -> None:
    start = datetime(2027, 1, 1, 19, 30)
    assert not [*expand(Rule("daily"), start, datetime(2026, 12, 31))]
    assert not [*expand(Rule("daily"), start, datetime.min)]
    assert not [*expand(Rule("yearly"), start, datetime.max, after=datetime.max)]


@pytest.mark.parametrize(
    "text", ["DAILY", "WEEKLY", "MONTHLY", "YEARLY", "WEEKLY;BYMONTH=12;BYDAY=MO,SU;BYSETPOS=-1"]
)
@pytest.mark.parametrize("week_start", ["MO", "SU", "FR"])
def test_expansion_ends_with_the_calendar(text: str, week_start: str) -> None:
    rule = read_rule(f"FREQ={text};WKST={week_start}", "UTC")
    dates = [*expand(rule, datetime(9998, 12, 1, 23, 59), datetime.max)]
    assert dates
    assert dates[-1].year in (9998, 9999)
    early = next(expand(rule, datetime(1, 1, 1), datetime(2, 12, 31)))
    assert early.year == 1


def test_dates_count_from_the_start_and_not_from_after() -> None:
    rule, start = read_rule("FREQ=WEEKLY;COUNT=5", "UTC"), datetime(2027, 1, 5, 19)
    dates = [*expand(rule, start, HORIZON)]
    assert [*expand(rule, start, HORIZON, after=datetime(2027, 1, 20))] == dates[3:]


@pytest.mark.parametrize(
    ("text", "start", "problem"),
    [
        (
            "FREQ=WEEKLY;BYDAY=TU",
            "2027 Jan 6",
            "2027-01-06 is not a date of this rule. Its first date is 2027-01-12.",
        ),
        (
            "FREQ=MONTHLY;BYDAY=5FR",
            "2027 Feb 1",
            "2027-02-01 is not a date of this rule. Its first date is 2027-04-30.",
        ),
        (
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
            "2027 Jan 1",
            "This rule has no dates between 2027-01-01 and 2067-12-31.",
        ),
        (
            "FREQ=DAILY;BYDAY=MO;UNTIL=20270103",
            "2027 Jan 1",
            "This rule has no dates between 2027-01-01 and 2027-01-03.",
        ),
        ("FREQ=DAILY;UNTIL=20261231", "2027 Jan 1", "The rule ends on 2026-12-31, before the start, 2027-01-01."),
        ("FREQ=WEEKLY;BYMONTH=1", "9999 Dec 31", "This rule has no dates between 9999-12-31 and 9999-12-31."),
    ],
)
def test_start_must_be_a_date_of_the_rule(text: str, start: str, problem: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        check_start(read_rule(text, "UTC"), next(read_dates(start)))
    assert raised.value.text == problem


@pytest.mark.parametrize("day", [datetime(2027, 1, 5, 19), datetime(2027, 1, 12), datetime.max])
def test_start_of_a_rule_without_days_is_its_first_date(day: datetime) -> None:
    for frequency in ("daily", "weekly", "monthly", "yearly"):
        check_start(Rule(frequency), day)


def test_leap_day_on_a_weekday_is_found() -> None:
    with pytest.raises(InvalidValue, match="2104-02-29"):
        check_start(read_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=FR", "UTC"), datetime(2092, 3, 1))


def test_period_is_day_week_month_or_year() -> None:
    sunday, monday = datetime(2027, 1, 31, 9), datetime(2027, 2, 1, 20)
    pairs = {
        "daily": (sunday, sunday.replace(hour=23), monday),
        "weekly": (sunday, datetime(2027, 1, 25), monday),
        "monthly": (sunday, datetime(2027, 1, 1), monday),
        "yearly": (sunday, datetime(2027, 12, 31), datetime(2028, 1, 1)),
    }
    for frequency, (first, same, other) in pairs.items():
        rule = Rule(frequency, interval=3)
        assert period_of(rule, first) == period_of(rule, same) != period_of(rule, other)
    assert period_of(Rule("weekly", week_start=6), sunday) == period_of(Rule("weekly", week_start=6), monday)


def test_midnight_and_last_second_stay() -> None:
    for moment in (time(), time(23, 59, 59)):
        start = datetime.combine(datetime(2027, 1, 1), moment)
        rule = Rule("weekly", weekdays=(Weekday(4),))
        assert {date.time() for date in expand(rule, start, datetime(2027, 6, 1))} == {moment}
