"""The definition of a series: its dates and content, edits of both, and the pairing of events with new dates."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import expand, read_rule
from kalends.series.rules.series_slots import (
    ContentChange,
    Date,
    Definition,
    Part,
    Shift,
    SlotTaken,
    change_content,
    change_dates,
    change_rule,
    content_at,
    date_at,
    end_series,
    find_given,
    find_part,
    has_dates_after,
    list_dates,
    pair_slots,
    shift,
)
from tests.soak import scaled
from tests.unit.core.random_rules import make_rule

ZONE = "Europe/Berlin"
UID = "7a2f0d62-2f2b-4a0b-9a0e-2b8a4a0f6d11"
# The dates of the figures: 25 months of Tuesdays.
START = datetime(2027, 1, 5, 19, 30)
END_OF_FIGURES = datetime(2029, 2, 1, tzinfo=UTC)
LATE = datetime(2029, 1, 1, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
LENGTH = timedelta(minutes=90)
WEEKLY = "FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503"


def make_definition(rule: str = WEEKLY, start: datetime = START, **fields: object) -> Definition:
    part = Part(UID, read_rule(rule, ZONE) if rule else None, start, start + LENGTH, ZONE, all_day=False)
    return replace(Definition((part,), {"title": "Yoga", "cost": "5"}), **fields)  # type: ignore[arg-type]


def slots(definition: Definition, until: datetime = LATE) -> list[datetime]:
    return [entry.slot for entry in list_dates(definition, until)]


def at(month: int, day: int, hour: int = 19, minute: int = 30) -> datetime:
    return datetime(2027, month, day, hour, minute)


def make_shift(minutes: int = 0, length: timedelta = LENGTH) -> Shift:
    return Shift(timedelta(minutes=minutes), length, ZONE, all_day=False)


# Dates ---------------------------------------------------------------------------------------


def test_dates_are_those_of_the_rule_without_the_removed_and_with_the_added_ones() -> None:
    definition = make_definition(added=(at(1, 6, 10),), removed=(at(1, 12),))
    assert slots(definition)[:4] == [at(1, 5), at(1, 6, 10), at(1, 19), at(1, 26)]
    assert len(slots(definition)) == 17


def test_an_added_date_that_a_rule_gives_as_well_appears_once() -> None:
    definition = make_definition(added=(at(1, 12),))
    assert Counter(slots(definition))[at(1, 12)] == 1


def test_dates_begin_at_a_slot_and_end_before_an_instant() -> None:
    dates = list_dates(make_definition(), datetime(2027, 1, 26, 18, 29, tzinfo=UTC), at(1, 12))
    assert [entry.slot for entry in dates] == [at(1, 12), at(1, 19)]


def test_two_parts_with_the_same_slot_are_reported() -> None:
    definition = make_definition()
    second = replace(definition.parts[0], start=at(2, 2), end=at(2, 2) + LENGTH)
    with pytest.raises(SlotTaken) as error:
        list_dates(replace(definition, parts=(*definition.parts, second)), LATE)
    assert error.value.slot == at(2, 2)


def test_a_part_without_a_rule_has_one_date() -> None:
    definition = make_definition("", added=(at(3, 1),))
    assert slots(definition) == [at(1, 5), at(3, 1)]
    assert not find_given(definition, [at(3, 1)])


def test_content_of_a_date_is_that_of_the_last_change_before_it() -> None:
    changes = (ContentChange(at(2, 2), {"title": "Yin"}), ContentChange(at(3, 2), {"cost": "6"}))
    definition = make_definition(content_changes=changes)
    contents = [content_at(definition, slot) for slot in (at(1, 26), at(2, 2), at(3, 2))]
    assert [tuple(content.values()) for content in contents] == [("Yoga", "5"), ("Yin", "5"), ("Yin", "6")]


def test_end_before_the_start_in_the_night_of_a_clock_change_becomes_the_start() -> None:
    part = Part(UID, None, datetime(2027, 3, 28, 2, 45), datetime(2027, 3, 28, 3, 15), ZONE, all_day=False)
    span = Date(part.start, part).span()
    assert (span.start.wall, span.end.wall) == (datetime(2027, 3, 28, 3, 45),) * 2


def test_a_series_has_later_dates_or_not() -> None:
    endless = make_definition("FREQ=WEEKLY;BYDAY=TU")
    assert has_dates_after(endless, LATE)
    assert not has_dates_after(make_definition(), LATE)
    assert has_dates_after(make_definition(added=(datetime(2031, 1, 1),)), LATE)


# Content -------------------------------------------------------------------------------------


def test_content_of_all_dates_replaces_later_changes_of_the_same_field() -> None:
    definition = change_content(make_definition(), {"title": "Yin", "cost": "7"}, at(2, 2))
    definition = change_content(definition, {"title": "Flow"})
    assert definition.template == {"title": "Flow", "cost": "5"}
    assert definition.content_changes == (ContentChange(at(2, 2), {"cost": "7"}),)


def test_content_from_a_slot_on_replaces_only_later_changes() -> None:
    definition = change_content(make_definition(), {"title": "A"}, at(2, 2))
    definition = change_content(definition, {"title": "C"}, at(3, 2))
    definition = change_content(definition, {"title": "B"}, at(2, 9))
    assert definition.content_changes == (
        ContentChange(at(2, 2), {"title": "A"}),
        ContentChange(at(2, 9), {"title": "B"}),
    )
    definition = change_content(definition, {"cost": "9"}, at(2, 2))
    assert definition.content_changes[0].values == {"title": "A", "cost": "9"}


# Times ---------------------------------------------------------------------------------------


def test_a_shift_of_all_dates_moves_every_slot() -> None:
    definition = change_content(
        make_definition(added=(at(1, 6, 10),), removed=(at(1, 12),)), {"title": "Yin"}, at(2, 2)
    )
    shifted = shift(definition, make_shift(30))
    assert slots(shifted) == [slot + HALF_HOUR for slot in slots(definition)]
    assert (shifted.added, shifted.removed) == ((at(1, 6, 11, 0),), (at(1, 12, 20, 0),))
    assert shifted.content_changes[0].since == at(2, 2, 20, 0)


def test_a_shift_from_a_slot_on_makes_a_part() -> None:
    definition = make_definition(removed=(at(1, 12), at(3, 9)))
    shifted = shift(definition, make_shift(30, timedelta(hours=1)), at(2, 16))
    expected = [slot + HALF_HOUR if slot >= at(2, 16) else slot for slot in slots(definition)]
    assert slots(shifted) == expected
    assert [part.length for part in shifted.parts] == [LENGTH, timedelta(hours=1)]
    assert shifted.removed == (at(1, 12), at(3, 9, 20, 0))
    assert len({part.uid for part in shifted.parts}) == 2


def test_a_shift_to_another_day_moves_weekdays_and_the_end() -> None:
    shifted = shift(make_definition(), make_shift(24 * 60))
    assert slots(shifted) == [slot + timedelta(days=1) for slot in slots(make_definition())]


def test_a_shift_to_another_day_needs_a_new_rule_if_the_rule_names_days_of_months() -> None:
    definition = make_definition("FREQ=MONTHLY;BYDAY=1TU")
    with pytest.raises(InvalidValue):
        shift(definition, make_shift(24 * 60))
    assert shift(definition, make_shift(24 * 60), keep_rule=True).parts[0].start == at(1, 6)


def test_a_shift_behind_the_last_date_moves_nothing_but_added_dates() -> None:
    definition = make_definition(added=(at(6, 1),))
    shifted = shift(definition, make_shift(30), at(5, 20))
    assert slots(shifted) == [*slots(definition)[:-1], at(6, 1, 20, 0)]


def test_counts_are_divided_between_the_parts() -> None:
    definition = make_definition("FREQ=WEEKLY;BYDAY=TU;COUNT=10", removed=(at(1, 12),))
    shifted = shift(definition, make_shift(30), at(1, 26))
    assert [part.rule.count for part in shifted.parts if part.rule] == [3, 7]
    assert len(slots(shifted)) == 9


# Rules ---------------------------------------------------------------------------------------


def test_a_rule_from_a_slot_on_begins_with_its_first_date_there() -> None:
    changed = change_rule(make_definition(), read_rule("FREQ=WEEKLY;BYDAY=TH;COUNT=2", ZONE), at(1, 19))
    assert slots(changed) == [at(1, 5), at(1, 12), at(1, 21), at(1, 28)]


def test_a_rule_of_all_dates_replaces_the_first_one_and_may_keep_later_parts() -> None:
    definition = shift(make_definition(), make_shift(30), at(2, 16))
    thursdays = read_rule("FREQ=WEEKLY;BYDAY=TH", ZONE)
    kept = slots(change_rule(definition, thursdays, keep_later_parts=True))
    assert kept[:2] == [at(1, 7), at(1, 14)]
    assert kept[5:7] == [at(2, 11), at(2, 16, 20, 0)]
    assert len(change_rule(definition, thursdays).parts) == 1


def test_a_rule_without_dates_is_rejected() -> None:
    with pytest.raises(InvalidValue):
        change_rule(make_definition(), read_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", ZONE), at(1, 19))


def test_a_series_ends_before_a_slot() -> None:
    definition = make_definition(added=(at(1, 6), at(4, 7)), removed=(at(1, 12), at(4, 6)))
    ended = end_series(definition, at(2, 2))
    assert ended is not None
    assert slots(ended) == [at(1, 5), at(1, 6), at(1, 19), at(1, 26)]
    assert (ended.added, ended.removed) == ((at(1, 6),), (at(1, 12),))


def test_a_series_that_ends_before_its_first_date_has_no_dates() -> None:
    assert end_series(make_definition(), START) is None
    ended = end_series(make_definition(added=(at(1, 4),)), START)
    assert ended is not None
    assert slots(ended) == [at(1, 4)]
    assert (ended.parts[0].start, ended.removed) == (at(1, 4), ())


@settings(max_examples=scaled(40, 5000), deadline=None)
@given(seed=st.integers(0, 10**9), share=st.floats(0, 1))
def test_a_split_keeps_all_dates(seed: int, share: float) -> None:
    definition = _random_definition(Random(seed))
    before = slots(definition)
    since = before[min(int(share * len(before)), len(before) - 1)]
    split = shift(definition, make_shift(0), since)
    assert slots(split) == before
    assert [date_at(split, slot).slot for slot in before] == before


@settings(max_examples=scaled(40, 5000), deadline=None)
@given(seed=st.integers(0, 10**9), share=st.floats(0, 1))
def test_a_series_ends_with_the_date_before(seed: int, share: float) -> None:
    definition = _random_definition(Random(seed))
    before = slots(definition)
    since = before[min(int(share * len(before)), len(before) - 1)]
    ended = end_series(definition, since)
    assert (slots(ended) if ended is not None else []) == [slot for slot in before if slot < since]


def _random_definition(rng: Random) -> Definition:
    """Return a definition with dates, the first of which is the start."""
    while True:
        text = make_rule(rng)
        rule = read_rule(text, ZONE)
        first = next(expand(rule, START, datetime(2028, 12, 31)), None)
        if first is None:
            continue
        definition = make_definition(text, first)
        days = {first + timedelta(days=rng.randint(1, 600), hours=rng.choice((0, 1))) for _ in range(3)}
        dates = slots(definition)
        removed = rng.sample(dates, min(len(dates) - 1, 2)) if len(dates) > 2 else []
        return change_dates(definition, add=days, remove=removed)


# Single dates --------------------------------------------------------------------------------


def test_dates_are_added_and_left_out() -> None:
    definition = change_dates(make_definition(), add=[at(1, 6), at(1, 12)], remove=[at(1, 19)])
    assert (definition.added, definition.removed) == ((at(1, 6),), (at(1, 19),))
    definition = change_dates(definition, add=[at(1, 19)], remove=[at(1, 6)])
    assert (definition.added, definition.removed) == ((), ())


def test_a_slot_that_is_no_date_is_not_left_out() -> None:
    assert change_dates(make_definition(), remove=[at(1, 7)]).removed == ()


def test_the_part_of_a_slot_is_the_last_one_that_has_begun() -> None:
    definition = shift(make_definition(), make_shift(30), at(2, 16))
    assert find_part(definition, at(2, 15)) is definition.parts[0]
    assert find_part(definition, at(2, 17)) is definition.parts[1]
    assert find_part(definition, at(1, 1)) is definition.parts[0]


# Pairing -------------------------------------------------------------------------------------

FIGURES = {
    "Tuesday to Wednesday": ("FREQ=WEEKLY;BYDAY=TU", "FREQ=WEEKLY;BYDAY=WE", (109, 0, 0)),
    "Tuesday to Tuesday and Thursday": ("FREQ=WEEKLY;BYDAY=TU", "FREQ=WEEKLY;BYDAY=TU,TH", (109, 108, 0)),
    "weekly to every second week": ("FREQ=WEEKLY;BYDAY=TU", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", (55, 0, 54)),
    "first Tuesday to last Friday": ("FREQ=MONTHLY;BYDAY=1TU", "FREQ=MONTHLY;BYDAY=-1FR", (25, 0, 0)),
    "daily to workdays": ("FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", (542, 0, 216)),
    "weekly to monthly": ("FREQ=WEEKLY;BYDAY=TU", "FREQ=MONTHLY;BYDAY=1TU", (25, 0, 84)),
}


@pytest.mark.parametrize(("old", "new", "expected"), FIGURES.values(), ids=FIGURES)
def test_events_are_kept_when_the_rule_changes(old: str, new: str, expected: tuple[int, int, int]) -> None:
    before = slots(make_definition(old), END_OF_FIGURES)
    after = list_dates(change_rule(make_definition(old), read_rule(new, ZONE)), END_OF_FIGURES)
    pairs = pair_slots(before, after)
    kept = sum(slot is not None and entry is not None for slot, entry in pairs)
    assert (kept, sum(slot is None for slot, _ in pairs), sum(entry is None for _, entry in pairs)) == expected


@settings(max_examples=scaled(60, 2000), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_pairing_loses_nothing_and_keeps_equal_slots(seed: int) -> None:
    rng = Random(seed)
    old, new = slots(_random_definition(rng)), list_dates(_random_definition(rng), LATE)
    pairs = pair_slots(old, new)
    assert sorted(slot for slot, _ in pairs if slot is not None) == old
    assert sorted(entry.slot for _, entry in pairs if entry is not None) == [entry.slot for entry in new]
    by_old = dict(pairs)
    for entry in new:
        if entry.slot in by_old:
            assert by_old[entry.slot] == entry


def test_pairs_by_day_come_before_pairs_by_period() -> None:
    moved = [Date(datetime.combine(date(2027, 1, day), time(20)), make_definition().parts[0]) for day in (5, 7)]
    pairs = pair_slots([at(1, 6), at(1, 7)], moved)
    assert pairs == [(at(1, 7), moved[1]), (at(1, 6), moved[0])]
