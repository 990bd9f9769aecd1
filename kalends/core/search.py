"""What a caller searches for, as words to be found and words to be absent. It never touches a database."""

import re
from dataclasses import dataclass
from typing import Final

from kalends.core.errors import Invalid
from kalends.core.sanitize import clean_text, fold

MAX_CHARACTERS: Final = 200
MAX_WORDS: Final = 20

# A phrase in quotation marks (to the end where the second is missing) or a word, perhaps after a minus.
_WORD = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class Words:
    """Folded like the stored text they are compared with."""

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]


def read_search(text: str) -> Words:
    """Every word must occur, a `"phrase"` as it stands, a `-word` not at all (behaviour 8.4)."""
    cleaned = clean_text(text, MAX_CHARACTERS)
    wanted: list[str] = []
    unwanted: list[str] = []
    for found in _WORD.finditer(cleaned.replace("“", '"').replace("”", '"')):
        word = fold(found["phrase"] or found["word"] or "")
        if word:
            (unwanted if found["minus"] else wanted).append(word)
    if not wanted and not unwanted and fold(cleaned):
        wanted.append(fold(cleaned))
    if not wanted and not unwanted:
        raise Invalid("Search for at least one word.")
    if len(wanted) + len(unwanted) > MAX_WORDS:
        raise Invalid("Search for at most {most} words.", most=MAX_WORDS)
    return Words(tuple(dict.fromkeys(wanted)), tuple(dict.fromkeys(unwanted)))


def like_pattern(word: str) -> str:
    """The pattern with which LIKE finds the word anywhere; the caller's own % and _ are literal."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def has_trigram(word: str) -> bool:
    """Whether three letters or digits stand side by side: what an index of trigrams can look up."""
    return re.search(r"[^\W_]{3}", word) is not None
