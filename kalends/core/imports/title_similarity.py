"""How similar two titles or names of places are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.imports.title_words import AUDIENCES, GENRES, split_words

_MIN_WORD_RATIO: Final = 0.8
_MIN_COMPOUND_LETTERS: Final = 5
_MIN_FIRST_LETTERS: Final = 4  # of the first part of a compound
_MIN_PLACE_LETTERS: Final = 6
_MIN_PART_LETTERS: Final = 3
_MIN_NAME_LETTERS: Final = 12
_MIN_LETTERS_WITHOUT_CONTEXT: Final = 8
_GENRE_WEIGHT: Final = 0.3
_COMPOUND_RATIO: Final = 0.85  # of a word and a compound that begins or ends with it
_STEM_RATIO: Final = 0.95  # of two forms of a word
_PART_RATIO: Final = 0.85  # of a name and a longer one that has all of its words


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """How similar two titles are."""

    similarity: float
    is_part: bool = False  # One title has all words of the other one, and says more.
    is_same_audience: bool = True  # Neither title names an audience that the other one lacks.


def compare_titles(first: str, second: str) -> float:
    """Compare titles by their words, whose order does not matter, and by their letters."""
    return match_titles(first, second, frozenset()).similarity


def match_titles(first: str, second: str, context: frozenset[str]) -> TitleMatch:
    """Compare titles without the words of the context, which name the place or the organizer."""
    (words, numbers), (other_words, other_numbers) = split_words(first), split_words(second)
    if not words or not other_words:
        return TitleMatch(1.0 if fold(first) == fold(second) else 0.0)
    if words == other_words and numbers == other_numbers:
        return TitleMatch(1.0, is_part=True)
    if not _have_other_words(words, other_words, context):
        words, other_words = _leave_out(words, context), _leave_out(other_words, context)
    similarity = max(_compare_words(words, other_words, GENRES), _compare_letters(words, other_words))
    audiences, other_audiences = _list_audiences(words), _list_audiences(other_words)
    has_other_audience = audiences and other_audiences and not audiences & other_audiences
    has_other_number = numbers and other_numbers and numbers != other_numbers
    if has_other_audience or has_other_number or _have_other_codes(words, other_words):
        return TitleMatch(min(similarity, 0.3), is_same_audience=not has_other_audience)
    is_part = _is_part(words, other_words, GENRES) or _is_part(other_words, words, GENRES)
    has_same_numbers = numbers == other_numbers
    return TitleMatch(
        similarity * (1.0 if has_same_numbers else 0.88), is_part and has_same_numbers, audiences == other_audiences
    )


def compare_names(name: str, other: str) -> float:
    """Compare names of places or organizers, which often have the name of a town or “municipal” added."""
    words, others = split_words(name)[0], split_words(other)[0]
    if not words or not others:
        return 0.0
    # A word such as “theatre” is the name of a place, not a type of event.
    is_part = _is_part(words, others, {}) or _is_part(others, words, {})
    return max(_compare_words(words, others, {}), _compare_letters(words, others), _PART_RATIO if is_part else 0.0)


def names_place(title: str, other_title: str, places: Sequence[str]) -> bool:
    """Return whether a title names one of the places, and the other title does not."""
    words = [word for word in split_words(title)[0] if len(word) >= _MIN_PLACE_LETTERS]
    named = {part for place in places for part in split_words(place)[0]}
    return any(
        word not in split_words(other_title)[0] and any(part.startswith(word) for part in named) for word in words
    )


def _have_other_words(words: Sequence[str], others: Sequence[str], context: frozenset[str]) -> bool:
    """Return whether the titles name different places or organizers."""
    named, other_named = context.intersection(words), context.intersection(others)
    return bool(named - other_named) and bool(other_named - named)


def _leave_out(words: tuple[str, ...], context: frozenset[str]) -> tuple[str, ...]:
    """Return the words that are not in the context, unless too little would be left."""
    left = tuple(word for word in words if word not in context)
    return left if len("".join(left)) >= _MIN_LETTERS_WITHOUT_CONTEXT else words


def _list_audiences(words: Sequence[str]) -> set[str]:
    """Return those whom an event is for, also from compounds that begin with their name."""
    return {group for word in words if (group := _find_audience(word))}


@lru_cache(maxsize=2048)
def _find_audience(word: str) -> str:
    starts = (start for start in AUDIENCES if len(start) >= _MIN_COMPOUND_LETTERS or not start.isascii())
    return AUDIENCES.get(word) or next((AUDIENCES[start] for start in starts if word.startswith(start)), "")


def _is_part(words: Sequence[str], others: Sequence[str], genres: Mapping[str, str]) -> bool:
    """Return whether the other title has all words of a title that says more than a type of event."""
    names = [word for word in words if word not in genres]
    letters = len("".join(names))
    if letters < (_MIN_PART_LETTERS if words[0].isascii() else 2):
        return False
    if _is_abbreviation(words, others):
        return True
    types, other_types = ({genres[word] for word in title if word in genres} for title in (words, others))
    # The type of event may be left out, but not replaced, unless the rest is distinctive.
    is_left_out = not other_types and all(_is_in(other, words, genres) for other in others)
    wanted = names if is_left_out or types & other_types or letters >= _MIN_NAME_LETTERS else words
    weights = {word: _weigh(word, genres) for word in wanted}
    return sum(weights[word] for word in wanted if _is_in(word, others, genres)) / sum(weights.values()) > 0.95


def _is_in(word: str, others: Sequence[str], genres: Mapping[str, str]) -> bool:
    """Return whether a title has a word, as a part of a compound, or in parts if it is a compound itself."""
    if any(_is_word_part(word, other) for other in others):
        return True
    starts = [other for other in others if len(other) >= _MIN_FIRST_LETTERS and word.startswith(other)]
    rests = {start: word[len(start) :].removeprefix("s") for start in starts}
    return any(
        rest in genres or any(_ends_with(other, rest) for other in others if other != start)
        for start, rest in rests.items()
    )


def _ends_with(word: str, rest: str) -> bool:
    """Return whether a word has the last part of a compound: “Floh- und Trödelmarkt” is a “Flohmarkt”."""
    return word == rest or (len(rest) >= _MIN_COMPOUND_LETTERS and word.endswith(rest))


def _is_word_part(word: str, other: str) -> bool:
    """Return whether two words are the same, or the first is a part of a compound."""
    ratio = _compare_word(word, other)
    return ratio > (0 if len(word) <= len(other) else _COMPOUND_RATIO)


def _is_abbreviation(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a title consists of the first letters of the words of another one."""
    return len(words) == 1 and len(words[0]) >= 3 and words[0] == "".join(word[0] for word in others)


def _have_other_codes(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each title has a short word that the other one lacks, such as the names of two classes."""
    codes, other_codes = ({word for word in title if len(word) < 4 and word.isascii()} for title in (words, others))
    return bool(codes - other_codes) and bool(other_codes - codes)


def _compare_words(words: Sequence[str], others: Sequence[str], genres: Mapping[str, str]) -> float:
    """Return the share of letters in words that both titles have; a word may have a typing error."""
    found, other_found = _match(words, others, genres), _match(others, words, genres)
    total, other_total = (sum(_weigh(word, genres) for word in title) for title in (words, others))
    share, other_share = found / total, other_found / other_total
    # Words of a shorter title that are all in the longer one.
    if max(share, other_share) > 0.95 and min(total, other_total) >= 8:
        return max(0.8, (found + other_found) / (total + other_total))
    # Each title has words that the other one lacks: “beginners” is not “advanced”.
    is_substitution = share < 0.8 and other_share < 0.8
    return (found + other_found) / (total + other_total) * (0.6 if is_substitution else 1.0)


def _match(words: Sequence[str], others: Sequence[str], genres: Mapping[str, str]) -> float:
    return sum(_weigh(word, genres) * max(_compare_word(word, other) for other in others) for word in words)


def _weigh(word: str, genres: Mapping[str, str]) -> float:
    return len(word) * (_GENRE_WEIGHT if word in genres else 1.0)


@lru_cache(maxsize=8192)
def _compare_word(word: str, other: str) -> float:
    if word == other:
        return 1.0
    if len(stem := _find_stem(word)) >= 4 and stem == _find_stem(other):
        return _STEM_RATIO
    shorter, longer = sorted((word, other), key=len)
    # Languages without spaces have short words.
    is_long = len(shorter) >= (5 if shorter.isascii() else 2)
    if is_long and (longer.startswith(shorter) or longer.endswith(shorter)):
        return _COMPOUND_RATIO
    if len(shorter) < 4 or len(longer) - len(shorter) > 3:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return ratio if ratio >= _MIN_WORD_RATIO else 0.0


def _find_stem(word: str) -> str:
    """Return an English word without the ending of a plural, a gerund or a person."""
    return re.sub(r"(?:ing|ers?|s)$", "", re.sub(r"ies$", "y", word))


def _compare_letters(words: Sequence[str], others: Sequence[str]) -> float:
    """Compare titles without spaces, for words that are written together in one and apart in the other."""
    if len(words) == len(others):
        return 0.0
    first, second = "".join(words), "".join(others)
    ratio = SequenceMatcher(None, first, second, autojunk=False).ratio()
    return ratio if ratio >= 0.92 else 0.0
