"""Descriptions on pages: the levels of their headings."""

import re

import pytest

from kalends.website.models.page_parts import adapt


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("333", "222"),
        ("234", "234"),
        ("2323", "2323"),
        ("1424", "2334"),
        ("4343", "2232"),
        ("123456", "234566"),
    ],
)
def test_headings_begin_at_two_and_keep_their_order(sent: str, shown: str) -> None:
    adapted = adapt("".join(f"<h{level}>x</h{level}>" for level in sent), frozenset())
    assert re.sub(r"x|</?h|>", "", adapted) == "".join(level * 2 for level in shown)
