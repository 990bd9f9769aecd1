"""Parsing of search queries into required and excluded words, independent of the database."""

import re
from dataclasses import dataclass
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_text, fold

MAX_LENGTH: Final = 200
MAX_WORDS: Final = 20

# A phrase in quotation marks (up to the end if the second one is missing) or a word, optionally after a minus.
_WORD = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class SearchWords:
    """Required and excluded words, folded like the stored text."""

    required: tuple[str, ...]
    excluded: tuple[str, ...]


def read_search(text: str, limit: int = MAX_LENGTH) -> SearchWords:
    """Parse a query: every word and `"phrase"` must occur, a `-word` must not (behaviour 8.4)."""
    cleaned = clean_text(text, limit)
    required: list[str] = []
    excluded: list[str] = []
    for match in _WORD.finditer(cleaned.replace("“", '"').replace("”", '"')):
        word = fold(match["phrase"] or match["word"] or "")
        if word:
            (excluded if match["minus"] else required).append(word)
    if not required and not excluded and fold(cleaned):
        required.append(fold(cleaned))
    if not required and not excluded:
        raise InvalidValue("must contain at least one word.")
    if len(required) + len(excluded) > MAX_WORDS:
        raise InvalidValue("must contain at most {maximum} words.", maximum=MAX_WORDS)
    return SearchWords(tuple(dict.fromkeys(required)), tuple(dict.fromkeys(excluded)))


def like_pattern(word: str) -> str:
    """Return the LIKE pattern that finds a word anywhere; % and _ in the word are escaped."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def has_trigram(word: str) -> bool:
    """Return whether the word has three consecutive letters or digits, which a trigram index needs."""
    return re.search(r"[^\W_]{3}", word) is not None
