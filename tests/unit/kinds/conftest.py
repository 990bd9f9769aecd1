"""List queries without a database, for functions that only read their parameters."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, ListQuery
from kalends.store.sql import Sql

NOW = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)

MakeQuery = Callable[..., ListQuery]


@pytest.fixture
def make_query() -> MakeQuery:
    """Return a function that builds the query of an anonymous caller: `make_query(order="desc")`."""

    def make(*, timezone: str = "Europe/Berlin", page: int = 1, per_page: int = 10, **values: Any) -> ListQuery:
        # The functions under test read only these two attributes of a transaction.
        transaction: Any = SimpleNamespace(site=SimpleNamespace(id=7, timezone=timezone), now=NOW)
        return ListQuery(
            transaction=transaction,
            values=values,
            actor=ANONYMOUS_ACTOR,
            page=page,
            per_page=per_page,
            visible=Sql("r.status = 'publish'"),
            statuses=["publish"],
            editable=Sql("false"),
            readable=Sql("true"),
        )

    return make
