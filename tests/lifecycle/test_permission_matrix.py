"""Every cell of role × status × operation × kind, own and others', answers as the rules say."""

import pytest

from tests.api.running_app import Interface
from tests.lifecycle.lifecycle_fixtures import tell
from tests.lifecycle.permission_matrix import Table, cells

POSTS = ("events", "venues", "organizers")


def test_matrix_has_thousands_of_cells() -> None:
    assert sum(1 for kind in POSTS for _ in cells(kind)) >= 5000


@pytest.mark.slow
@pytest.mark.parametrize("kind", POSTS)
def test_responses_match_expected_permissions(interface: Interface, kind: str) -> None:
    table = Table(interface, kind)
    asked, wrong = 0, []
    for cell in cells(kind):
        asked += 1
        if (got := table.ask(cell)) != cell.expected:
            wrong.append(f"{cell}: {got}")
    tell(f"{kind}: {asked:,} cells checked by {table.requests:,} requests")
    assert wrong == [], f"{len(wrong)} of {asked}"
