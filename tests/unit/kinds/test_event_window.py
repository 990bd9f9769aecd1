"""The limits that date parameters set, and the keys of the indexes that find the events inside them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kalends.calendar.kinds.event_list import build_window
from kalends.calendar.kinds.event_window import (
    DURATION_CLASSES,
    EARLIEST,
    MAX_MONTHS,
    Window,
    duration_classes_before,
    find_month_keys,
    plan_branches,
)
from kalends.core.errors import ApiError
from kalends.core.times import DateTimeInput
from tests.unit.kinds.conftest import MakeQuery

MIDNIGHT = datetime(2026, 3, 28, 23, tzinfo=UTC)  # 29 March in Berlin, a day of 23 hours
LAST_SECOND = datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC)
TWO_YEARS_LATER = datetime(2028, 3, 29, 21, 59, 59, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def day(year: int, month: int, number: int) -> DateTimeInput:
    return DateTimeInput(datetime(year, month, number), None, True)


def local_time(*parts: int) -> DateTimeInput:
    return DateTimeInput(datetime(*parts), None, False)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def test_default_window_is_two_years_from_local_midnight(make_query: MakeQuery) -> None:
    assert build_window(make_query()) == Window(start_from=MIDNIGHT, end_to=TWO_YEARS_LATER)


def test_include_has_no_window(make_query: MakeQuery) -> None:
    assert build_window(make_query(include=[1], start_date=day(2026, 3, 29))) == Window()


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("start_date", Window(start_from=MIDNIGHT, end_to=TWO_YEARS_LATER)),
        ("end_date", Window(start_from=MIDNIGHT, end_to=LAST_SECOND)),
        ("starts_after", Window(start_from=LAST_SECOND + SECOND)),
        ("starts_before", Window(start_to=LAST_SECOND - SECOND)),
        ("ends_after", Window(end_from=LAST_SECOND + SECOND)),
        ("ends_before", Window(end_to=LAST_SECOND - SECOND)),
        ("overlaps_from", Window(end_from=MIDNIGHT + SECOND, include_zero_length=True)),
        ("overlaps_to", Window(start_to=LAST_SECOND)),
    ],
)
def test_parameter_covers_whole_local_day(make_query: MakeQuery, name: str, window: Window) -> None:
    assert build_window(make_query(**{name: day(2026, 3, 29)})) == window


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("starts_after", Window(start_from=utc(2026, 3, 29, 10, 0, 1))),
        ("starts_before", Window(start_to=utc(2026, 3, 29, 9, 59, 59))),
        ("overlaps_from", Window(end_from=utc(2026, 3, 29, 10, 0, 1), include_zero_length=True)),
        ("overlaps_to", Window(start_to=utc(2026, 3, 29, 9, 59, 59))),
    ],
)
def test_strict_dates_use_exact_time(make_query: MakeQuery, name: str, window: Window) -> None:
    values: dict[str, Any] = {name: local_time(2026, 3, 29, 12), "strict_dates": True}
    assert build_window(make_query(**values)) == window


def test_narrower_of_two_limits_applies(make_query: MakeQuery) -> None:
    query = make_query(start_date=day(2026, 5, 1), starts_after=day(2026, 5, 10), overlaps_to=day(2026, 5, 20),
                       starts_before=day(2026, 5, 30))  # fmt: skip
    window = build_window(query)
    assert (window.start_from, window.start_to) == (utc(2026, 5, 10, 22), utc(2026, 5, 20, 21, 59, 59))


def test_date_after_last_year_is_rejected(make_query: MakeQuery) -> None:
    with pytest.raises(ApiError) as rejected:
        build_window(make_query(starts_after=day(9999, 12, 31)))
    assert rejected.value.status == 400


def test_latest_start_is_before_both_upper_limits() -> None:
    early, late = utc(2026, 1, 1), utc(2026, 2, 1)
    assert Window().last_start is None
    assert Window(start_to=late, end_to=early).last_start == early
    assert Window(start_to=early, end_to=late).last_start == early


def test_window_without_limits_has_no_conditions() -> None:
    assert Window().clauses() == []
    limits = [clause.values for clause in Window(start_from=MIDNIGHT, end_to=LAST_SECOND).clauses()]
    assert limits == [(MIDNIGHT,), (LAST_SECOND,), (LAST_SECOND,)]


def test_unlimited_period_has_no_month_keys() -> None:
    assert find_month_keys(None, None) is None


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (utc(2026, 1, 1), utc(2026, 1, 31)),
        (utc(2025, 11, 30), utc(2026, 2, 1)),
        (utc(1999, 12, 31), utc(2050, 6, 1)),
        (utc(1, 1, 1), utc(9999, 12, 31)),
    ],
)
def test_month_keys_cover_each_month_once(first: datetime, last: datetime) -> None:
    keys = find_month_keys(first, last)
    assert keys is not None
    months = [
        month
        for level, number in (divmod(key, MAX_MONTHS) for key in keys)
        for month in range(number * 10**level, (number + 1) * 10**level)
    ]
    assert months == list(range(12 * first.year + first.month - 1, 12 * last.year + last.month))
    assert len(keys) <= 60  # The lookups stay few, however long the period is.


def test_period_without_end_reaches_last_key() -> None:
    keys = find_month_keys(utc(2026, 1, 1), None)
    assert keys is not None
    level, number = divmod(keys[-1], MAX_MONTHS)
    assert (number + 1) * 10**level == MAX_MONTHS


def test_duration_classes_begin_their_duration_before_the_instant() -> None:
    classes = duration_classes_before(utc(2026, 1, 1))
    assert [n for n, _ in classes] == list(range(len(DURATION_CLASSES)))
    assert classes[3] == (3, utc(2025, 12, 31, 16))
    assert classes[-1][1] == EARLIEST


def test_shorter_duration_classes_are_left_out() -> None:
    assert duration_classes_before(utc(2026, 1, 1), timedelta(hours=4))[0][0] == 3


@pytest.mark.parametrize(
    ("window", "branches"),
    [
        (Window(), 1),
        (Window(start_from=MIDNIGHT), 1),
        (Window(end_from=MIDNIGHT), 2),
        (Window(start_from=MIDNIGHT, end_from=MIDNIGHT), 1),
        (Window(start_from=MIDNIGHT - SECOND, end_from=MIDNIGHT), 2),
        (Window(start_from=MIDNIGHT - SECOND, end_from=MIDNIGHT, include_zero_length=True), 1),
        (Window(end_from=EARLIEST), 1),
    ],
)
def test_running_events_need_a_second_branch(make_query: MakeQuery, window: Window, branches: int) -> None:
    planned = plan_branches(make_query(), window, [])
    assert len(planned) == branches
    for source, conditions in planned:
        (source + conditions).render()  # It fails where placeholders and values do not match.
