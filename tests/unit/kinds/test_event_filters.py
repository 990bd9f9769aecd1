"""The conditions of filters that need no lookup in the database."""

from typing import Any

import pytest

from kalends.calendar.kinds.event_list import EVENT_FILTERS, PASSWORD_GUARDED_FILTERS
from kalends.calendar.kinds.event_window import Cursor
from kalends.calendar.kinds.kind import LinkCondition, TextCondition, row_conditions
from kalends.core.errors import ApiError
from kalends.store.sql import Sql
from tests.unit.kinds.conftest import MakeQuery

FILTERS = {filter_.param.name: filter_ for filter_ in EVENT_FILTERS}


def test_filters_have_unique_names() -> None:
    assert len(FILTERS) == len(EVENT_FILTERS)


def test_guarded_filters_exist() -> None:
    assert set(FILTERS) >= PASSWORD_GUARDED_FILTERS


@pytest.mark.parametrize(
    ("name", "value", "condition"),
    [
        ("featured", True, "r.featured"),
        ("featured", False, "NOT r.featured"),
        ("ticketed", True, "r.ticket_url <> ''"),
        ("ticketed", False, ""),
        ("free", True, "r.is_free"),
        ("free", False, "NOT r.is_free"),
    ],
)
async def test_boolean_filter_has_two_conditions(
    make_query: MakeQuery, name: str, value: bool, condition: str
) -> None:
    clause = await FILTERS[name].clause(value, make_query(**{name: value}))
    assert isinstance(clause, Sql)
    assert (clause.text, clause.values) == (condition, ())


@pytest.mark.parametrize(
    ("states", "condition"),
    [
        (["cancelled"], "r.event_status <> 'scheduled' AND r.event_status = ANY(?)"),
        (["cancelled", "scheduled"], "r.event_status = ANY(?)"),
    ],
)
async def test_filter_by_other_states_matches_their_index(
    make_query: MakeQuery, states: list[str], condition: str
) -> None:
    clause = await FILTERS["event_status"].clause(states, make_query(event_status=states))
    assert isinstance(clause, Sql)
    assert (clause.text, clause.values) == (condition, (states,))


async def test_include_matches_the_given_ids(make_query: MakeQuery) -> None:
    clause = await FILTERS["include"].clause([3, 5], make_query(include=[3, 5]))
    assert isinstance(clause, Sql)
    assert clause.values == ([3, 5],)


async def test_search_is_a_condition_on_text(make_query: MakeQuery) -> None:
    clause = await FILTERS["search"].clause("jazz", make_query(search="jazz"))
    assert isinstance(clause, TextCondition)
    assert row_conditions([clause]) == [clause.row_condition]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("orderby", {"orderby": "distance"}),
        ("geoloc_lat", {"geoloc_lat": 52.5}),
        ("geoloc_lng", {"geoloc_lng": 13.4}),
        ("cursor", {"cursor": Cursor("title", "asc", ("Concert", 1))}),
    ],
)
async def test_parameter_without_its_counterpart_is_rejected(
    make_query: MakeQuery, name: str, values: dict[str, Any]
) -> None:
    with pytest.raises(ApiError) as rejected:
        await FILTERS[name].clause(values[name], make_query(**values))
    assert rejected.value.status == 400


def test_link_condition_works_per_row_and_as_a_set() -> None:
    condition = LinkCondition(7, "event_venues", "venue_id", [1, 2])
    [per_row] = row_conditions([condition])
    assert per_row.values == condition.event_ids().values == (7, [1, 2])
    assert per_row.render().startswith("EXISTS (")
    assert condition.event_ids().render().startswith("SELECT l.event_id FROM event_venues")
