"""Decisions on fields and on missing records, without a database."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kalends.imports.operations.import_rows import (
    ASK,
    KEEP,
    LOCAL,
    OTHER_SOURCE,
    REMOVE,
    SOURCE,
    WAIT,
    Fetch,
    MissingRecord,
    RecordState,
    compare,
    decide,
)

A, B, C = "first", "second", "by a person"

# Former and current value of the source, imported value, stored value; the decision by mode.
CASES: list[tuple[str, Any, Any, Any, Any, dict[str, str | None]]] = [
    ("nothing", A, A, A, A, {"source": None, "local": None, "new_only": None}),
    ("the person", A, A, A, C, {"source": None, "local": None, "new_only": None}),
    ("the source", A, B, A, A, {"source": SOURCE, "local": SOURCE, "new_only": LOCAL}),
    ("both", A, B, A, C, {"source": SOURCE, "local": LOCAL, "new_only": LOCAL}),
    ("both, to the same value", A, B, A, B, {"source": None, "local": None, "new_only": None}),
    ("the source, to nothing", A, None, A, A, {"source": SOURCE, "local": SOURCE, "new_only": LOCAL}),
    ("the source, from nothing", None, A, None, "", {"source": SOURCE, "local": SOURCE, "new_only": LOCAL}),
    (
        "the source, from nothing, and a person",
        None,
        A,
        None,
        C,
        {"source": SOURCE, "local": LOCAL, "new_only": LOCAL},
    ),
]


@pytest.mark.parametrize(("before", "now", "written", "stored", "decisions"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_three_ways(before: Any, now: Any, written: Any, stored: Any, decisions: dict[str, str | None]):
    def make(value: Any) -> dict[str, Any]:
        return {} if value is None else {"title": value}

    for mode, decision in decisions.items():
        state = RecordState(make(before), make(now), {"title": stored}, [make(written)])
        changes = compare(mode, state)
        assert (changes["title"].decision if changes else None) == decision, mode


def test_a_source_that_is_trusted_more_keeps_its_fields():
    state = RecordState({}, {"title": B, "website": B}, {"title": A, "website": ""}, [{"title": A}], {"title"})
    decisions = {name: change.decision for name, change in compare("source", state).items()}
    assert decisions == {"title": OTHER_SOURCE, "website": SOURCE}


def test_a_value_of_another_source_is_no_edit():
    state = RecordState({}, {"title": B}, {"title": A}, [{"title": A}])
    assert compare("local", state)["title"].decision == SOURCE


def test_times_are_decided_together():
    before = {"start_date": "19", "end_date": "21", "timezone": "UTC"}
    stored = {**before, "end_date": "22"}
    changes = compare("local", RecordState(before, {**before, "start_date": "18"}, stored, [before]))
    assert {name: change.decision for name, change in changes.items()} == dict.fromkeys(before, LOCAL)


NOW = datetime(2027, 1, 1, tzinfo=UTC)
SPAN = (NOW - timedelta(days=100), NOW + timedelta(days=100))


def missing(days: int = 10, absences: int = 2) -> MissingRecord:
    start = NOW + timedelta(days=days)
    return MissingRecord(start, start + timedelta(hours=2), absences)


@pytest.mark.parametrize(
    ("record", "options", "expected"),
    [
        (missing(), {}, REMOVE),
        (missing(absences=1), {}, WAIT),
        (missing(days=-5), {}, KEEP),
        (missing(days=200), {}, KEEP),
        (missing(), {"is_complete": False}, KEEP),
        (missing(), {"span": None}, KEEP),
        (missing(), {"total": 4}, ASK),
        (missing(), {"total": 4, "allows_mass_deletion": True}, REMOVE),
    ],
)
def test_conditions_of_a_deletion(record: MissingRecord, options: dict[str, Any], expected: str):
    assert decide(Fetch(**{"now": NOW, "is_complete": True, "span": SPAN, "total": 100, **options}), [record]) == [
        expected
    ]


@pytest.mark.parametrize(
    ("count", "total", "expected"), [(10, 1000, REMOVE), (11, 1000, ASK), (5, 25, REMOVE), (6, 25, ASK)]
)
def test_the_brake(count: int, total: int, expected: str):
    fetch = Fetch(NOW, True, SPAN, total)
    assert decide(fetch, [missing()] * count) == [expected] * count


def test_records_that_are_over_do_not_count_for_the_brake():
    fetch = Fetch(NOW, True, SPAN, 100)
    assert decide(fetch, [missing(), *[missing(days=-5)] * 50])[0] == REMOVE
