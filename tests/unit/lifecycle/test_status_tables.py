"""The tables of statuses agree with the rules of the matrix, with the code that uses them, and with their page."""

from datetime import UTC, datetime, timedelta
from itertools import product

from kalends.calendar.access.permissions import PUBLISHED_STATUSES
from kalends.core.statuses import LISTED, NEW, REQUIRED_RIGHTS, STATUSES, TABLE, TRANSITIONS, resolve_status
from tests.lifecycle import expected_permissions
from tests.lifecycle.expected_permissions import Case, ExpectedResponse
from tools import statuses

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_generated_page_and_diagram_are_current() -> None:
    assert statuses.PAGE.read_text() == statuses.render_page()
    assert statuses.DIAGRAM.read_text() == statuses.render_diagram()


def test_diagram_contains_exactly_all_transitions() -> None:
    moves = {
        (origin, move.target, move.right) for move in TRANSITIONS for origin in move.sources if origin != move.target
    }
    assert statuses.list_drawn_moves() == moves


def test_requested_status_is_resolved_by_rules() -> None:
    for role, status, scheduled in product(("contributor", "author", "editor"), STATUSES, (False, True)):
        date = NOW + timedelta(days=1 if scheduled else -1)
        resolved = resolve_status(status, may_publish=role != "contributor", published_at=date, now=NOW)
        assert resolved == expected_permissions.resolve_status(role, status, scheduled=scheduled), (
            role,
            status,
            scheduled,
        )


def test_transitions_need_permissions_of_rules() -> None:
    """An author has both rights over an own record, a contributor only that to edit."""
    assert set(REQUIRED_RIGHTS) == set(STATUSES) == set(expected_permissions.STATUSES)
    moves = {
        (origin, move.target): move.right
        for move in TRANSITIONS
        if move.right != "schedule"
        for origin in move.sources
    }
    for before, after in product((NEW, *STATUSES), STATUSES):
        if before == NEW:
            may_author, may_contributor = (
                expected_permissions.expect_create(role, after) for role in ("author", "contributor")
            )
        else:
            was = "draft" if before == "trash" else ""
            may_author, may_contributor = (
                expected_permissions.expect_status_change(Case("events", role, True, before, was), after)
                for role in ("author", "contributor")
            )
        right = moves.get((before, after))
        assert (right is None) == (may_author == ExpectedResponse(400, "rest_invalid_param")), (before, after)
        if right and before not in PUBLISHED_STATUSES:
            assert (may_contributor.detail == after) == (right == "edit"), (before, after)


def test_status_table_matches_rules() -> None:
    for status in TABLE:
        name = status.name
        was = "draft" if name == "trash" else ""
        stranger = Case("venues", "anonymous", False, name, was)
        contributor = Case("venues", "contributor", True, name, was)
        assert status.is_public == (expected_permissions.expect_read(stranger).status_code == 200), name
        assert status.is_public == (expected_permissions.expect_embedding(stranger) == "whole"), name
        assert status.is_public == (expected_permissions.expect_listing(stranger, "") == "whole"), name
        assert (
            status.is_listed == (name in LISTED) == (expected_permissions.expect_listing(contributor, "") == "whole")
        ), name
        assert (
            status.contributor_may_edit
            == expected_permissions.may_edit(contributor)
            == (name not in PUBLISHED_STATUSES)
        ), name
