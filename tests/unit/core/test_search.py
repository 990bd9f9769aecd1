"""Searches."""

import re

import pytest
from hypothesis import given, strategies as st

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import SearchWords, fold, has_trigram, like_pattern, read_search
from tests.unit.core.vector_rows import quick_settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Concert", SearchWords(("concert",), ())),
        ("needle1 NEEDLE2", SearchWords(("needle1", "needle2"), ())),
        ('"needle1  and" x', SearchWords(("needle1 and", "x"), ())),
        ("needle1 -bravo", SearchWords(("needle1",), ("bravo",))),
        ('-"two words" a', SearchWords(("a",), ("two words",))),
        ("-only", SearchWords((), ("only",))),
        ('open "phrase to the end', SearchWords(("open", "phrase to the end"), ())),
        ("“curly quotes”", SearchWords(("curly quotes",), ())),
        ("ÉTÉ straße", SearchWords(("ete", "strasse"), ())),
        ("well-known", SearchWords(("well-known",), ())),
        ("a a a", SearchWords(("a",), ())),
        ("it's", SearchWords(("it's",), ())),
        ("<b>needle1</b>", SearchWords(("<b>needle1</b>",), ())),
        ("日本", SearchWords(("日本",), ())),
        ("%", SearchWords(("%",), ())),
        ("_", SearchWords(("_",), ())),
        ("0", SearchWords(("0",), ())),
        ("???", SearchWords(("???",), ())),
        ("-", SearchWords(("-",), ())),
        ('""', SearchWords(('""',), ())),
    ],
)
def test_words_phrases_and_exclusions(text: str, words: SearchWords) -> None:
    assert read_search(text) == words


@pytest.mark.parametrize("text", ["", " \n ", "a" * 201, " ".join("abcdefghijklmnopqrstu"), "\ud800"])
def test_searches_are_limited(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_search(text)


@quick_settings
@given(st.text(max_size=200))
def test_words_are_folded_and_never_empty(text: str) -> None:
    try:
        words = read_search(text)
    except InvalidValue:
        return
    for word in words.required + words.excluded:
        assert word
        assert fold(word) == word


@quick_settings
@given(st.text(st.sampled_from("ab%_\\")), st.text(st.sampled_from("ab%_\\")))
def test_like_pattern_matches_exactly_texts_containing_word(word: str, text: str) -> None:
    assert like(text, like_pattern(word)) == (word in text)


def like(text: str, pattern: str) -> bool:
    """LIKE of PostgreSQL, by its rules."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meaning = {"%": ".*", "_": "."}
    expression = "".join(meaning.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("word", "expected"), [("abc", True), ("a", False), ("ab", False), ("a-b-c", False), ("été", True)]
)
def test_trigram_index_needs_three_consecutive_characters(word: str, expected: bool) -> None:
    assert has_trigram(word) is expected
