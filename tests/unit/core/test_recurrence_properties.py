"""What holds for the dates of every rule."""

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from random import Random

from hypothesis import given, settings, strategies as st

from kalends.core.recurrence import (
    Rule,
    Weekday,
    end_before,
    expand,
    format_rule,
    period_of,
    read_rule,
    read_rule_object,
    rest_from,
    serialize_rule,
)
from kalends.core.recurrence.rule_sentences import find_sentence, simplify_rule
from tests.soak import scaled
from tests.unit.core.random_rules import make_rule

YEARS = timedelta(days=4 * 366)

some_settings = settings(deadline=None, max_examples=scaled(60, 2000))
starts = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(microsecond=0))
distances = st.integers(0, YEARS.days * 86400).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def make_rules(draw: st.DrawFn) -> Rule:
    """A rule of any kind, also with mixed weekdays and with weekly positions."""
    text = make_rule(Random(draw(st.integers(0, 2**32))))
    rule = read_rule(text, "UTC")
    if rule.weekdays and draw(st.booleans()):
        mixed = {*rule.weekdays, Weekday(draw(st.integers(0, 6)))}
        rule = replace(rule, weekdays=tuple(sorted(mixed, key=lambda day: (day.ordinal or 0, day.day))))
    if rule.has_parts and draw(st.booleans()):
        positions = draw(st.sets(st.integers(-5, 5).filter(bool), max_size=3))
        rule = replace(rule, set_positions=tuple(sorted(positions)))
    return rule


rules = make_rules()


@some_settings
@given(rules, starts)
def test_dates_increase_from_the_start_at_its_time_of_day(rule: Rule, start: datetime) -> None:
    dates = [*expand(rule, start, start + YEARS)]
    assert all(earlier < later for earlier, later in pairwise(dates))
    assert all(start <= moment <= start + YEARS and moment.time() == start.time() for moment in dates)


@some_settings
@given(rules, starts, distances)
def test_longer_expansion_only_appends(rule: Rule, start: datetime, distance: timedelta) -> None:
    shorter, longer = [*expand(rule, start, start + distance)], [*expand(rule, start, start + YEARS)]
    assert shorter == longer[: len(shorter)]
    assert all(moment > start + distance for moment in longer[len(shorter) :])


@some_settings
@given(rules, starts, distances)
def test_expansion_may_begin_in_the_middle(rule: Rule, start: datetime, distance: timedelta) -> None:
    after = start + distance
    tail = [*expand(rule, start, start + YEARS, after=after)]
    assert tail == [moment for moment in expand(rule, start, start + YEARS) if moment >= after]


@some_settings
@given(rules, starts, st.integers(1, 50))
def test_count_is_exact(rule: Rule, start: datetime, count: int) -> None:
    endless = [*expand(replace(rule, count=None), start, start + YEARS)]
    assert [*expand(replace(rule, count=count), start, start + YEARS)] == endless[:count]


@some_settings
@given(rules, starts, distances)
def test_until_is_the_last_day(rule: Rule, start: datetime, distance: timedelta) -> None:
    endless, last = replace(rule, count=None), (start + distance).date()
    end = datetime.combine(last, time.max)
    assert [*expand(replace(endless, until=last), start, datetime(2110, 1, 1))] == [*expand(endless, start, end)]


@some_settings
@given(rules, starts, st.data())
def test_divided_rule_gives_the_same_dates(rule: Rule, start: datetime, data: st.DataObject) -> None:
    dates = [*expand(rule, start, start + YEARS)]
    if not dates:
        return
    slot = data.draw(st.sampled_from(dates))
    index = dates.index(slot)
    assert [*expand(end_before(rule, start, slot), start, start + YEARS)] == dates[:index]
    if rule.has_parts or not index or rule.frequency in ("daily", "weekly"):
        assert [*expand(rest_from(rule, start, slot), slot, start + YEARS)] == dates[index:]


@some_settings
@given(rules, starts)
def test_periods_follow_the_interval(rule: Rule, start: datetime) -> None:
    first = period_of(rule, start)
    assert isinstance(first, int)
    for moment in expand(rule, start, start + YEARS):
        period = period_of(rule, moment)
        assert isinstance(period, int)
        assert (period - first) % rule.interval == 0


@some_settings
@given(rules, st.dates() | st.none())
def test_text_and_object_are_read_as_the_same_rule(rule: Rule, until: date | None) -> None:
    ended = rule if until is None else replace(rule, count=None, until=until)
    assert read_rule_object(serialize_rule(ended), "UTC") == read_rule(format_rule(ended), "UTC")
    assert format_rule(read_rule(format_rule(ended), "UTC")) == format_rule(
        read_rule_object(serialize_rule(ended), "UTC")
    )


@some_settings
@given(rules, starts)
def test_simplified_rule_gives_the_same_dates(rule: Rule, start: datetime) -> None:
    simple = simplify_rule(rule, start.date())
    assert [*expand(simple, start, start + YEARS)] == [*expand(rule, start, start + YEARS)]
    sentence = find_sentence(rule, start.date())
    assert sentence is None or str(sentence)
