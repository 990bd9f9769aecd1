"""Searches."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalends.core.errors import Invalid
from kalends.core.sanitize import fold
from kalends.core.search import Words, has_trigram, like_pattern, read_search
from tests.core.kit import quick


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Concert", Words(("concert",), ())),
        ("needle1 NEEDLE2", Words(("needle1", "needle2"), ())),
        ('"needle1  and" x', Words(("needle1 and", "x"), ())),
        ("needle1 -bravo", Words(("needle1",), ("bravo",))),
        ('-"two words" a', Words(("a",), ("two words",))),
        ("-only", Words((), ("only",))),
        ('open "phrase to the end', Words(("open", "phrase to the end"), ())),
        ("“curly quotes”", Words(("curly quotes",), ())),
        ("ÉTÉ straße", Words(("ete", "strasse"), ())),
        ("well-known", Words(("well-known",), ())),
        ("a a a", Words(("a",), ())),
        ("it's", Words(("it's",), ())),
        ("<b>needle1</b>", Words(("<b>needle1</b>",), ())),
        ("日本", Words(("日本",), ())),
        ("%", Words(("%",), ())),
        ("_", Words(("_",), ())),
        ("0", Words(("0",), ())),
        ("???", Words(("???",), ())),
        ("-", Words(("-",), ())),
        ('""', Words(('""',), ())),
    ],
)
def test_words_phrases_and_exclusions(text: str, words: Words) -> None:
    assert read_search(text) == words


@pytest.mark.parametrize("text", ["", " \n ", "a" * 201, " ".join("abcdefghijklmnopqrstu"), "\ud800"])
def test_searches_are_bounded(text: str) -> None:
    with pytest.raises(Invalid):
        read_search(text)


@quick
@given(st.text(max_size=200))
def test_words_are_folded_and_never_empty(text: str) -> None:
    try:
        words = read_search(text)
    except Invalid:
        return
    for word in words.wanted + words.unwanted:
        assert word
        assert fold(word) == word


@quick
@given(st.text(st.sampled_from("ab%_\\")), st.text(st.sampled_from("ab%_\\")))
def test_a_pattern_finds_exactly_what_contains_the_word(word: str, text: str) -> None:
    assert like(text, like_pattern(word)) == (word in text)


def like(text: str, pattern: str) -> bool:
    """LIKE of PostgreSQL, by its rules."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meaning = {"%": ".*", "_": "."}
    expression = "".join(meaning.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("word", "found"), [("abc", True), ("a", False), ("ab", False), ("a-b-c", False), ("été", True)]
)
def test_an_index_of_trigrams_needs_three_characters_in_a_row(word: str, found: bool) -> None:
    assert has_trigram(word) is found
