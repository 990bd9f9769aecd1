"""The rule behind a list of dates."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kalends.core.recurrence import expand, format_rule, read_rule
from kalends.core.recurrence.detection import DATE_PRICE, MOVED_PRICE, Pattern, find_pattern
from tests.soak import scaled

LENGTH = timedelta(hours=2)
LATE = datetime(2150, 1, 1)
FIRST = datetime(2027, 1, 5, 19, 30)  # a Tuesday
RULES = (
    "FREQ=WEEKLY;BYDAY=TU",
    "FREQ=WEEKLY;BYDAY=TU,TH",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
    "FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,SA",
    "FREQ=MONTHLY;BYDAY=1TU",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=MONTHLY;BYDAY=1TU,3TU",
    "FREQ=MONTHLY;BYDAY=2SA,-1SU",
    "FREQ=MONTHLY;INTERVAL=2;BYDAY=3WE",
    "FREQ=MONTHLY;BYMONTHDAY=15",
    "FREQ=MONTHLY;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYMONTHDAY=-1",
    "FREQ=MONTHLY;BYMONTHDAY=1,15",
    "FREQ=DAILY",
)
some_settings = settings(deadline=None, max_examples=scaled(60, 2000))
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(microsecond=0))


def find(starts: Sequence[datetime]) -> Pattern:
    return find_pattern((start, LENGTH) for start in starts)


def give(rule: str, count: int, start: datetime = FIRST) -> list[datetime]:
    """Return the first dates of a rule at or after a day."""
    return list(islice(expand(read_rule(rule, "UTC"), start, LATE), count))


def describe(pattern: Pattern) -> str:
    """Return the rule without its end."""
    return format_rule(pattern.rule).partition(";UNTIL")[0] if pattern.rule else ""


@pytest.mark.parametrize("rule", RULES)
def test_dates_of_a_rule_give_the_rule(rule: str) -> None:
    starts = give(rule, 12)
    pattern = find(starts)
    assert describe(pattern) == rule
    assert (pattern.start, pattern.rule and pattern.rule.until) == (starts[0], starts[-1].date())
    assert (pattern.missing, pattern.moved, pattern.extra) == ((), {}, ())


@pytest.mark.parametrize("rule", RULES)
def test_missing_moved_and_extra_dates_are_exceptions(rule: str) -> None:
    starts = give(rule, 24)
    late, later, extra = starts[11].replace(hour=8), starts[15].replace(hour=23), starts[18].replace(hour=9)
    given_dates = [*starts[:4], *starts[5:11], late, *starts[12:15], later, *starts[16:], extra]
    pattern = find(given_dates)
    assert describe(pattern) == rule
    assert pattern.missing == (starts[4],)
    assert pattern.moved == {late: starts[11], later: starts[15]}
    assert pattern.extra == (extra,)


@pytest.mark.parametrize(
    ("days", "rule"),
    [
        ((5, 12), "FREQ=WEEKLY;BYDAY=TU"),
        ((5, 6, 7), "FREQ=DAILY"),
        ((5, 19), ""),  # two dates are too few for a longer interval
        ((5, 14), ""),
        ((5, 12, 20), ""),
        ((5, 12, 20, 26), "FREQ=WEEKLY;BYDAY=TU"),
        ((1, 2, 4, 11, 13, 23, 24, 29), ""),
    ],
)
def test_few_dates_need_a_simple_rule(days: Sequence[int], rule: str) -> None:
    assert describe(find([FIRST.replace(day=day) for day in days])) == rule


def test_first_and_last_date_may_be_moved() -> None:
    starts = give("FREQ=WEEKLY;BYDAY=TU", 10)
    early, late = starts[0] - timedelta(days=1), starts[-1] + timedelta(days=2)
    pattern = find([early, *starts[1:-1], late])
    assert (describe(pattern), pattern.moved) == ("FREQ=WEEKLY;BYDAY=TU", {early: starts[0], late: starts[-1]})


def test_moved_date_may_leave_its_week_or_month() -> None:
    starts = [start - timedelta(days=2) for start in give("FREQ=WEEKLY;BYDAY=TU", 8)]
    late = starts[3] + timedelta(days=1)
    assert find([*starts[:3], late, *starts[4:]]).moved == {late: starts[3]}
    starts = give("FREQ=MONTHLY;BYMONTHDAY=-1", 8)
    assert find([*starts[:5], starts[5] + timedelta(days=7), *starts[6:]]).extra == ()
    assert len(find([*starts[:5], starts[5] + timedelta(days=8), *starts[6:]]).extra) == 1


def test_usual_time_and_length_become_those_of_the_rule() -> None:
    lengths = dict.fromkeys(give("FREQ=WEEKLY;BYDAY=TU", 8), LENGTH)
    lengths[min(lengths)] = timedelta(hours=5)
    pattern = find_pattern(lengths.items())
    assert (pattern.length, pattern.moved) == (LENGTH, {})


@some_settings
@given(st.sets(moments, min_size=2, max_size=40))
def test_every_date_has_its_own_slot(starts: set[datetime]) -> None:
    assert_complete(find([*starts]), starts)


@some_settings
@given(st.sampled_from(RULES), moments, st.integers(2, 200), st.randoms(use_true_random=False))
def test_rule_and_exceptions_give_the_dates(rule: str, start: datetime, count: int, random: Random) -> None:
    """However many dates are missing or moved, the pattern describes exactly the dates, and the list is the worst."""
    share = random.random() / 2
    slots = [slot for slot in give(rule, count + 2, start) if random.random() > share]
    starts = {slot if random.random() > share else _move(slot, random) for slot in slots}
    if starts:
        pattern = find([*starts])
        assert_complete(pattern, starts)
        assert pattern.price <= DATE_PRICE * len(starts)


@some_settings
@given(st.sampled_from(RULES), moments, st.integers(16, 60), st.randoms(use_true_random=False))
def test_few_exceptions_do_not_hide_a_rule(rule: str, start: datetime, count: int, random: Random) -> None:
    """The pattern is at least as simple as the rule that gave the dates, with its exceptions."""
    slots = give(rule, count, start)
    missing, moved = random.sample(slots[1:-1], 2)
    starts = {slot for slot in slots if slot not in (missing, moved)} | {moved.replace(hour=(moved.hour + 7) % 24)}
    pattern = find([*starts])
    assert pattern.rule is not None
    assert pattern.price <= find(slots).price + DATE_PRICE + MOVED_PRICE
    if rule == describe(pattern):
        assert (len(pattern.missing), len(pattern.moved), pattern.extra) == (1, 1, ())


def assert_complete(pattern: Pattern, starts: set[datetime]) -> None:
    assert list(pattern.slots) == sorted(starts)
    assert len({*pattern.slots.values()}) == len(starts)
    on_rule = {*pattern.slots.values()} - {*pattern.extra}
    given_slots = [*expand(pattern.rule, pattern.start, LATE)] if pattern.rule else []
    assert given_slots == sorted({*on_rule, *pattern.missing})
    assert not on_rule & {*pattern.missing}
    assert all(pattern.slots[start] == start for start in pattern.extra)
    if pattern.rule:
        assert 2 * (len(pattern.missing) + len(pattern.extra) + len(pattern.moved)) <= len(starts)
        assert pattern.start in on_rule
        assert given_slots[-1] in on_rule


def _move(slot: datetime, random: Random) -> datetime:
    day = slot.date() + timedelta(days=random.randint(-3, 3))
    return datetime.combine(day, random.choice((slot.time(), time(10), time(23, 30))))
