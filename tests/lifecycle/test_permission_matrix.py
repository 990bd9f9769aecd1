"""Every cell of role × status × operation × kind, own and others', answers as the rules say.

A normal run checks the cells of a third of the cases; a soak checks all of them.
"""

from random import Random

import pytest

from tests.api.running_app import RunningApp
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
