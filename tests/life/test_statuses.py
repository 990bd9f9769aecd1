"""The tables of statuses agree with the rules of the matrix, with the code that uses them, and with their page."""

from datetime import UTC, datetime, timedelta
from itertools import product

from kalends.core.statuses import LISTED, NEW, REQUIRED_RIGHTS, STATUSES, TABLE, TRANSITIONS, resolve_status
from kalends.operations.permissions import PUBLISHED_STATUSES
from tests.life import rules
from tests.life.rules import Answer, Case
from tools import statuses

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_the_page_and_the_picture_are_the_ones_the_code_makes() -> None:
    assert statuses.PAGE.read_text() == statuses.render_page()
    assert statuses.DIAGRAM.read_text() == statuses.render_diagram()


def test_the_picture_draws_every_move_and_no_other() -> None:
    moves = {
        (origin, move.target, move.right) for move in TRANSITIONS for origin in move.sources if origin != move.target
    }
    assert statuses.list_drawn_moves() == moves


def test_every_wish_is_settled_as_the_rules_say() -> None:
    for role, asked, scheduled in product(("contributor", "author", "editor"), STATUSES, (False, True)):
        date = NOW + timedelta(days=1 if scheduled else -1)
        settled = resolve_status(asked, may_publish=role != "contributor", published_at=date, now=NOW)
        assert settled == rules.settled(role, asked, scheduled=scheduled), (role, asked, scheduled)


def test_every_move_takes_the_right_that_the_rules_ask_for() -> None:
    """An author has both rights over an own record, a contributor only that to edit."""
    assert set(REQUIRED_RIGHTS) == set(STATUSES) == set(rules.STATUSES)
    moves = {
        (origin, move.target): move.right
        for move in TRANSITIONS
        if move.right != "schedule"
        for origin in move.sources
    }
    for before, after in product((NEW, *STATUSES), STATUSES):
        if before == NEW:
            may_author, may_contributor = (rules.creating(role, after) for role in ("author", "contributor"))
        else:
            was = "draft" if before == "trash" else ""
            may_author, may_contributor = (
                rules.moving(Case("events", role, True, before, was), after) for role in ("author", "contributor")
            )
        right = moves.get((before, after))
        assert (right is None) == (may_author == Answer(400, "rest_invalid_param")), (before, after)
        if right and before not in PUBLISHED_STATUSES:
            assert (may_contributor.says == after) == (right == "edit"), (before, after)


def test_the_table_says_what_the_rules_say_of_each_status() -> None:
    for status in TABLE:
        name = status.name
        was = "draft" if name == "trash" else ""
        stranger = Case("venues", "anonymous", False, name, was)
        contributor = Case("venues", "contributor", True, name, was)
        assert status.is_public == (rules.reading(stranger).http == 200), name
        assert status.is_public == (rules.embedding(stranger) == "whole"), name
        assert status.is_public == (rules.listing(stranger, "") == "whole"), name
        assert status.is_listed == (name in LISTED) == (rules.listing(contributor, "") == "whole"), name
        assert status.contributor_may_edit == rules.may_edit(contributor) == (name not in PUBLISHED_STATUSES), name
