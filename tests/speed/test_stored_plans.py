"""The statements of common lists have a plan that PostgreSQL stores, instead of one for each request."""

from typing import Any

import pytest

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import PAGING, Actor, Kind
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.record_verbs import list_records
from kalends.core.params import read_params
from kalends.core.times import utc_now
from kalends.demo.seed import DemoOptions, seed
from kalends.store.database import Database, Options
from kalends.store.sql import Sql

# PostgreSQL decides after five executions whether it stores a plan.
REPETITIONS = 8
WEEK = {"start_date": "2027-03-01", "end_date": "2027-03-07"}
PREPARED = """
    SELECT statement, generic_plans FROM pg_prepared_statements
    WHERE statement ~ ' FROM .*(events|venues|organizers|tags) r ' AND statement !~ 'pg_prepared_statements'
"""


@pytest.mark.process
async def test_statements_of_lists_are_planned_once(database_url: str) -> None:
    await seed(database_url, "", DemoOptions(events=3000, upcoming=2000, seed=1), lambda *_: None)
    lists: list[tuple[Kind, dict[str, Any]]] = [
        (EVENTS, {}),
        (EVENTS, {"per_page": "50"}),
        (EVENTS, WEEK),
        (VENUES, {}),
        (ORGANIZERS, {}),
        (TAGS, {}),
    ]
    unstored: list[str] = []
    for kind, raw in lists:
        database = await Database.open(Options(database_url, size=1))
        try:
            for _ in range(REPETITIONS):
                async with database.transaction("", utc_now(), writing=False) as tx:
                    values = read_params([*PAGING, *(entry.param for entry in kind.filters)], raw)
                    await list_records(kind, OperationContext(tx, Actor(), "", "", values=values))
                    rows = await tx.fetch_all(Sql(PREPARED))
        finally:
            await database.close()
        assert rows
        unstored += [f"{kind.name} {raw}" for row in rows if not row["generic_plans"]]
    assert not unstored
