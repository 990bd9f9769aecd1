"""No rule takes long to expand, wherever it starts and whatever a client sends."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import islice
from time import process_time

import pytest
from hypothesis import given, settings, strategies as st

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import check_start, expand, format_rule, read_rule, read_rule_object
from tests.soak import scaled, slowdown
from tests.unit.core.hostile_rules import HOSTILE_RULES

MAX_SECONDS = 0.02
MAX_DATES = 1000
NOW, HORIZON = datetime(2027, 1, 4, 19, 30), datetime(2029, 2, 4)
FIRST_MONDAY = datetime(1, 1, 1, 19, 30)


def measure(action: Callable[[], object]) -> float:
    """Return the CPU time on a quiet machine, the least of several attempts."""
    times: list[float] = []
    while len(times) < 5 and (not times or times[-1] > MAX_SECONDS):
        begin = process_time()
        action()
        times.append(process_time() - begin)
        if times[-1] > MAX_SECONDS:
            times[-1] /= slowdown()
    return min(times)


def find_slow(action: Callable[[str], object], rules: list[str] = HOSTILE_RULES) -> dict[str, float]:
    times = {text: measure(lambda text=text: action(text)) for text in rules}
    return {text: time for text, time in times.items() if time > MAX_SECONDS}


def expand_text(text: str, start: datetime, until: datetime, after: datetime | None = None) -> list[datetime]:
    return [*islice(expand(read_rule(text, "Europe/Berlin"), start, until, after=after), MAX_DATES)]


def check_text(text: str) -> None:
    with suppress(InvalidValue):
        check_start(read_rule(text, "Europe/Berlin"), NOW)


def test_there_are_two_hundred_hostile_rules() -> None:
    assert len({*HOSTILE_RULES}) >= 200


@pytest.mark.parametrize("start", [NOW, FIRST_MONDAY], ids=["this-year", "year-1"])
def test_hostile_rules_are_expanded_quickly(start: datetime) -> None:
    assert not find_slow(lambda text: expand_text(text, start, HORIZON, NOW))


def test_hostile_rules_are_searched_quickly_to_the_end_of_the_calendar() -> None:
    assert not find_slow(lambda text: expand_text(text, NOW, datetime.max), HOSTILE_RULES[:: scaled(7, 1)])


def test_first_date_of_hostile_rules_is_found_quickly() -> None:
    assert not find_slow(check_text)


names = st.sampled_from(["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST"])
words = st.sampled_from(
    ["DAILY", "WEEKLY", "MONTHLY", "YEARLY", "MO", "SU", "-1FR", "53TH", "20270503", "Z", "T000000"]
)
numbers = st.integers(-400, 1100).map(str)
values = st.lists(words | numbers | st.text(max_size=3), min_size=1, max_size=9).map(",".join)
parts = st.tuples(names, words | numbers | values).map("=".join)
texts = st.lists(parts, min_size=1, max_size=9).map(";".join) | st.text(max_size=600)


@settings(deadline=None, max_examples=scaled(60, 2000))
@given(texts, st.datetimes() | st.just(NOW))
def test_any_text_is_rejected_or_expanded_quickly(text: str, start: datetime) -> None:
    def read_and_expand() -> None:
        with suppress(InvalidValue):
            rule = read_rule(text, "Europe/Berlin")
            assert read_rule(format_rule(rule), "Europe/Berlin") == rule
            [*islice(expand(rule, start, datetime.max), MAX_DATES)]

    assert measure(read_and_expand) < MAX_SECONDS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | words,
    lambda entries: st.lists(entries, max_size=5) | st.dictionaries(st.text(max_size=10), entries, max_size=3),
    max_leaves=10,
)
fields = st.sampled_from(
    ["frequency", "interval", "count", "until", "weekdays", "month_days", "months", "week_start"]
)


@settings(deadline=None, max_examples=scaled(60, 2000))
@given(st.dictionaries(fields, json_values), st.sampled_from(["daily", "weekly", "monthly", "yearly"]))
def test_any_object_is_rejected_or_read(value: dict[str, object], frequency: str) -> None:
    with suppress(InvalidValue):
        rule = read_rule_object({**value, "frequency": frequency}, "Europe/Berlin")
        assert rule.frequency == frequency
