"""Suggestions: the nearest allowed value by at most two edits, or a known synonym."""

import pytest
from hypothesis import given, strategies as st

from kalends.core.words import MAX_LENGTH, edit_distance, suggest

STATUSES = ("publish", "draft", "pending", "private", "future", "trash")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("published", "publish"),
        ("publsih", "publish"),
        ("PUBLISH", "publish"),
        ("Draf", "draft"),
        ("draftss", "draft"),
        ("drafting", None),
        ("live", "publish"),
        ("LIVE", "publish"),
        ("", None),
        ("d", None),
        ("publish" * 1000, None),
        ("x" * 100_000, None),
    ],
)
def test_nearest_value_or_synonym_is_suggested(value: str, expected: str | None) -> None:
    assert suggest(value, STATUSES, {"live": "publish"}) == expected


def test_synonym_of_a_value_that_is_not_allowed_has_no_effect() -> None:
    assert suggest("deleted", ("publish", "draft"), {"deleted": "trash"}) is None


def test_nearer_value_takes_precedence_over_an_earlier_one() -> None:
    assert suggest("titel", ("tile", "title")) == "title"
    assert suggest("bat", ("cat", "rat")) == "cat"


def test_half_of_a_short_value_must_be_right() -> None:
    assert suggest("asd", ("asc", "desc")) == "asc"
    assert suggest("xyc", ("asc", "desc")) is None
    assert suggest("no", ("of", "yes")) is None


def test_long_allowed_values_are_compared_within_the_limit() -> None:
    assert suggest("a" * MAX_LENGTH, ["a" * (MAX_LENGTH + 2), "b" * 100_000]) == "a" * (MAX_LENGTH + 2)


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_distance_equals_that_of_the_full_table(first: str, second: str, limit: int) -> None:
    full = full_distance(first, second)
    assert edit_distance(first, second, limit) == (full if full <= limit else None)


def full_distance(first: str, second: str) -> int:
    """Compute the optimal string alignment distance without limits."""
    table = {(row, 0): row for row in range(len(first) + 1)} | {
        (0, column): column for column in range(len(second) + 1)
    }
    for row in range(1, len(first) + 1):
        for column in range(1, len(second) + 1):
            table[row, column] = min(
                table[row - 1, column] + 1,
                table[row, column - 1] + 1,
                table[row - 1, column - 1] + (first[row - 1] != second[column - 1]),
            )
            if row > 1 and column > 1 and first[row - 2 : row] == second[column - 2 : column][::-1]:
                table[row, column] = min(table[row, column], table[row - 2, column - 2] + 1)
    return table[len(first), len(second)]
