"""Every cell of role × status × operation × kind, own and others', answers as the rules say."""

import pytest

from tests.api.running_app import RunningApp
from tests.lifecycle.lifecycle_fixtures import report
from tests.lifecycle.permission_matrix import MatrixSite, iter_cells

POSTS = ("events", "venues", "organizers")


def test_matrix_has_thousands_of_cells() -> None:
    assert sum(1 for kind in POSTS for _ in iter_cells(kind)) >= 5000


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", POSTS)
def test_responses_match_expected_permissions(app: RunningApp, kind: str) -> None:
    table = MatrixSite(app, kind)
    count, wrong = 0, []
    for cell in iter_cells(kind):
        count += 1
        if (actual := table.evaluate(cell)) != cell.expected:
            wrong.append(f"{cell}: {actual}")
    report(f"{kind}: {count:,} cells checked by {table.requests:,} requests")
    assert wrong == [], f"{len(wrong)} of {count}"
