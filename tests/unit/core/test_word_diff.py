"""Word diffs: complete, readable and bounded."""

import random
from time import process_time

import pytest

from kalends.core.words import Segment, diff_words, shorten


def rebuild(segments: list[Segment], side: str) -> str:
    return "".join(segment.text for segment in segments if segment.change in ("same", side))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("same", "same", [("same", "same")]),
        ("", "new", [("added", "new")]),
        ("old", "", [("removed", "old")]),
        ("at eight.", "at nine.", [("same", "at "), ("removed", "eight"), ("added", "nine"), ("same", ".")]),
        ("a big red dog", "a small blue dog",
         [("same", "a "), ("removed", "big red"), ("added", "small blue"), ("same", " dog")]),
        ("one\ntwo", "one\n\ntwo", [("same", "one"), ("removed", "\n"), ("added", "\n\n"), ("same", "two")]),
    ],
)  # fmt: skip
def test_words(before: str, after: str, expected: list[tuple[str, str]]) -> None:
    assert [(segment.change, segment.text) for segment in diff_words(before, after)] == expected


def test_both_texts_are_complete() -> None:
    source = random.Random(17)
    for _ in range(300):
        before, after = ("".join(source.choices("ab, \n.é", k=source.randrange(40))) for _ in range(2))
        segments = diff_words(before, after)
        assert (rebuild(segments, "removed"), rebuild(segments, "added")) == (before, after)


@pytest.mark.parametrize("unit", ["a b ", "word ", "x\n", "\n", "é"])
def test_long_texts_take_bounded_time(unit: str) -> None:
    before, after = unit * 60_000, f"{unit[::-1] * 60_000}end"
    began = process_time()
    segments = diff_words(before, after)
    assert process_time() - began < 3
    assert (rebuild(segments, "removed"), rebuild(segments, "added")) == (before, after)


def test_worst_case_within_the_limit_takes_bounded_time() -> None:
    began = process_time()
    diff_words("a b " * 250, "b a " * 240 + "c d " * 10)
    assert process_time() - began < 3


def test_long_unchanged_passages_are_shortened() -> None:
    text = "word " * 200
    shown = shorten(diff_words(f"{text}old {text}", f"{text}new {text}"))
    assert [segment.change for segment in shown] == ["same", "removed", "added", "same"]
    assert all(len(segment.text) < 200 for segment in shown)
    assert "…" in shown[0].text
