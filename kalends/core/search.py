"""What a caller searches for, as words to be found and words to be absent. It never touches a database."""

import re
from dataclasses import dataclass
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.sanitize import clean_text, fold

MAX_LENGTH: Final = 200
MAX_WORDS: Final = 20

# A phrase in quotation marks (to the end where the second is missing) or a word, perhaps after a minus.
_WORD = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class SearchWords:
    """Folded like the stored text they are compared with."""

    required: tuple[str, ...]
    excluded: tuple[str, ...]


def read_search(text: str) -> SearchWords:
    """Every word must occur, a `"phrase"` as it stands, a `-word` not at all (behaviour 8.4)."""
    cleaned = clean_text(text, MAX_LENGTH)
    required: list[str] = []
    excluded: list[str] = []
    for match in _WORD.finditer(cleaned.replace("“", '"').replace("”", '"')):
        word = fold(match["phrase"] or match["word"] or "")
        if word:
            (excluded if match["minus"] else required).append(word)
    if not required and not excluded and fold(cleaned):
        required.append(fold(cleaned))
    if not required and not excluded:
        raise InvalidValue("Search for at least one word.")
    if len(required) + len(excluded) > MAX_WORDS:
        raise InvalidValue("Search for at most {most} words.", most=MAX_WORDS)
    return SearchWords(tuple(dict.fromkeys(required)), tuple(dict.fromkeys(excluded)))


def like_pattern(word: str) -> str:
    """The pattern with which LIKE finds the word anywhere; the caller's own % and _ are literal."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def has_trigram(word: str) -> bool:
    """Whether three letters or digits stand side by side: what an index of trigrams can look up."""
    return re.search(r"[^\W_]{3}", word) is not None
