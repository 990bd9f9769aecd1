"""Calendars of many programs, and broken ones, become the records that are expected of them."""

from typing import Any

import pytest

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.core.date_forms import read_datetime
from kalends.core.params import find_missing, read_params
from kalends.core.recurrence import check_start, read_rule
from kalends.imports.rules.ical_calendar import read_calendar
from tests.imports.ical_corpus import DEFAULTS, FOLDER, NAMES, NOW, parse, read_expected


def test_corpus_is_large() -> None:
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_calendar_has_the_expected_result(name: str) -> None:
    expected = read_expected(name)
    assert parse(name, expected["options"]) == expected


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("refused")])
def test_values_are_those_that_clients_can_send(name: str) -> None:
    """The API accepts all parameters, and series begin with a date of their rule."""
    parsed = read_calendar((FOLDER / f"{name}.ics").read_bytes(), {"now": NOW, **read_expected(name)["options"]})
    for record in parsed.records:
        kind: Kind = SERIES if record.kind == "series" else BY_NAME[record.kind]
        if name != "hostile_texts" or record.kind != "events":
            assert find_missing(kind.fields, record.values) == []
        assert set(record.values) <= {field.name for field in kind.fields}
        values = read_params(kind.fields, _without_hostile_title(name, record.values))
        if record.kind == "series" and "rule" in values:
            start: Any = read_datetime(record.values["start_date"])
            check_start(read_rule(record.values["rule"], record.values.get("timezone", "UTC")), start.wall)
        elif record.kind == "series":
            assert record.values["add_dates"]


def _without_hostile_title(name: str, values: Any) -> Any:
    """The title of one calendar consists of markup; the API refuses it, which becomes the reason of a rejection."""
    return {**values, "title": "Title"} if name == "hostile_texts" and "title" in values else values


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("refused")])
def test_identities_are_unique_and_links_are_resolved(name: str) -> None:
    parsed = read_calendar((FOLDER / f"{name}.ics").read_bytes(), {"now": NOW, **read_expected(name)["options"]})
    keys = [record.key for record in parsed.records]
    assert len(keys) == len(set(keys))
    earlier: set[tuple[str, str]] = set()
    for record in parsed.records:
        for parameter, identities in record.links.items():
            assert {(f"{parameter}s", identity) for identity in identities} <= earlier
        earlier.add((record.kind, record.identity))
        assert 0 < len(record.identity) <= 1000


def test_second_parsing_gives_the_same_values() -> None:
    """The values depend on the file, not on the day on which it is fetched, unless dates are left out."""
    for name in NAMES:
        options = read_expected(name)["options"]
        if name.startswith(("refused", "long_running", "apple_birthdays", "rules_to_convert")):
            continue
        data = (FOLDER / f"{name}.ics").read_bytes()
        first = read_calendar(data, {"now": NOW, **options})
        second = read_calendar(data, {"now": "2027-01-20T12:00:00+00:00", **options})
        assert first.records == second.records, name


def test_results_leave_out_only_defaults_of_the_api() -> None:
    """A result without a value means the one that the API would store without it."""
    assert DEFAULTS["event_status"] == "scheduled"
    assert not any(value for name, value in DEFAULTS.items() if name != "event_status")
