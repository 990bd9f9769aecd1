"""Every cell of role × status × operation × kind, own and others', answers as the rules say.

A normal run checks the cells of a third of the cases; a soak checks all of them.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from kalends.calendar.access import permissions
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.kinds.venues import VENUES
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql
from tests.api.running_app import RunningApp
from tests.api.sample_records import SAMPLES
from tests.lifecycle.expected_permissions import ROLES, STATUSES
from tests.lifecycle.lifecycle_fixtures import report
from tests.lifecycle.permission_matrix import MatrixSite, iter_cells
from tests.soak import SOAK

POSTS = ("events", "venues", "organizers")


def test_matrix_has_thousands_of_cells() -> None:
    assert sum(1 for kind in POSTS for _ in iter_cells(kind)) >= 5000


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", POSTS)
def test_responses_match_expected_permissions(app: RunningApp, kind: str) -> None:
    table = MatrixSite(app, kind)
    cells = list(iter_cells(kind))
    cases = list(dict.fromkeys(cell.case for cell in cells))
    chosen = set(cases if SOAK else Random(kind).sample(cases, len(cases) // 6))
    checked = [cell for cell in cells if cell.case in chosen]
    wrong: list[str] = []
    for cell in checked:
        if (actual := table.evaluate(cell)) != cell.expected:
            wrong.append(f"{cell}: {actual}")
    report(f"{kind}: {len(checked):,} of {len(cells):,} cells checked by {table.requests:,} requests")
    assert wrong == [], f"{len(wrong)} of {len(checked)}"


@pytest.mark.parametrize(
    ("rule", "condition"),
    [(permissions.may_edit, permissions.editable_condition), (permissions.may_read, permissions.readable_condition)],
    ids=["edit", "read"],
)
def test_rules_in_sql_equal_those_in_python(
    app: RunningApp, rule: Callable[[Actor, Row], bool], condition: Callable[[Actor], Sql]
) -> None:
    """For every role, and for records of every status, former status and author."""
    owner, other = app.users["contributor"].id, app.users["author"].id
    states = [*[(status, "") for status in STATUSES[:-1]], *[("trash", status) for status in STATUSES[:-1]]]
    for author, (status, trashed) in product((owner, other), states):
        record_id = app.caller("editor").create("venues", **SAMPLES["venues"].body())["id"]
        app.sql(
            """UPDATE venues SET author_id = $2, status = $3, trashed_status = $4,
                trashed_at = CASE WHEN $3 = 'trash' THEN now() END WHERE id = $1""",
            *(record_id, author, status, trashed),
        )

    async def compare(tx: Transaction) -> None:
        rows = await tx.fetch_all(VENUES.select(Sql("r.site_id = ?", tx.site.id)))
        assert len(rows) >= 20
        for role in ROLES:
            actor = Actor(app.users[role].id, role) if role in app.users else Actor()
            # Also the other roles own some of the records.
            for caller in (actor, *[replace(actor, user_id=user) for user in (owner, other) if actor.user_id]):
                found = await tx.fetch_all(VENUES.select(Sql("r.site_id = ? AND", tx.site.id) + condition(caller)))
                expected = {row["id"] for row in rows if rule(caller, row)}
                assert {row["id"] for row in found} == expected, caller

    app.run_operation(compare)
