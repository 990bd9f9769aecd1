"""The weekend of the home page."""

from datetime import date

import pytest

from kalends.website.models.page_parts import find_weekend


@pytest.mark.parametrize(
    ("today", "first", "last"), [(10, 15, 16), (14, 15, 16), (15, 15, 16), (16, 16, 16), (17, 22, 23)]
)
def test_weekend_is_the_current_or_the_next_one(today: int, first: int, last: int) -> None:
    # March 15, 2031 is a Saturday.
    assert find_weekend(date(2031, 3, today)) == (date(2031, 3, first), date(2031, 3, last))
