"""Find words for days and prices in a search: today, tonight, tomorrow, this weekend, free.

The words can be in any of eight languages. Only whole words match, and the longest phrase wins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Final, Literal

from kalends.core.sanitize import fold

Meaning = Literal["today", "tonight", "tomorrow", "weekend", "free"]
DAY_MEANINGS: Final[tuple[Meaning, ...]] = ("today", "tonight", "tomorrow", "weekend")
MEANINGS: Final[tuple[Meaning, ...]] = (*DAY_MEANINGS, "free")
EVENING: Final = time(17)  # events tonight begin at or after this time
# Phrases by language, in the order of MEANINGS. Words that often mean something else in titles, such as "libre" or
# "frei", count only as part of a phrase.
PHRASES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "en": (
        ("today",),
        ("tonight", "this evening"),
        ("tomorrow",),
        ("weekend", "this weekend", "on the weekend", "at the weekend"),
        ("free", "for free", "free entry", "free admission"),
    ),
    "de": (
        ("heute",),
        ("heute abend", "heute nacht"),
        ("morgen",),
        ("wochenende", "dieses wochenende", "am wochenende"),
        ("kostenlos", "kostenfrei", "gratis", "umsonst", "eintritt frei", "freier eintritt"),
    ),
    "fr": (
        ("aujourd'hui",),
        ("ce soir", "cette nuit"),
        ("demain",),
        ("week-end", "ce week-end", "ce weekend"),
        ("gratuit", "gratuite", "gratuits", "gratuites", "entrée libre", "entrée gratuite"),
    ),
    "es": (
        ("hoy",),
        ("esta noche", "hoy por la noche"),
        ("mañana",),
        ("fin de semana", "este fin de semana", "finde", "este finde"),
        ("gratis", "gratuito", "gratuita", "entrada libre", "entrada gratuita"),
    ),
    "it": (
        ("oggi",),
        ("stasera", "questa sera", "stanotte"),
        ("domani",),
        ("fine settimana", "questo fine settimana", "questo weekend", "nel weekend"),
        ("gratis", "gratuito", "gratuita", "ingresso libero", "ingresso gratuito"),
    ),
    "nl": (
        ("vandaag",),
        ("vanavond", "vannacht"),
        ("morgen",),
        ("weekend", "dit weekend", "weekeinde", "dit weekeinde"),
        ("gratis", "gratis toegang", "gratis entree", "toegang gratis", "toegang vrij", "vrije toegang"),
    ),
    "pt-BR": (
        ("hoje",),
        ("hoje à noite", "esta noite"),
        ("amanhã",),
        ("fim de semana", "este fim de semana", "neste fim de semana"),
        ("grátis", "gratuito", "gratuita", "de graça", "entrada franca", "entrada gratuita"),
    ),
    "ja": (
        ("今日", "本日", "きょう"),
        ("今夜", "今晩"),
        ("明日", "あした"),
        ("週末", "今週末", "この週末"),
        ("無料", "入場無料", "参加無料", "観覧無料"),
    ),
}
_MEANING_OF: Final[dict[str, Meaning]] = {
    fold(phrase): meaning
    for rows in PHRASES.values()
    for meaning, phrases in zip(MEANINGS, rows, strict=True)
    for phrase in phrases
}
_MAX_WORDS: Final = max(phrase.count(" ") + 1 for phrase in _MEANING_OF)
# Quoted phrases and excluded words are searched as written.
_TOKEN: Final = re.compile(r'-?["“”][^"“”]*(?:["“”]|\Z)|[^\s"“”]+')
_PUNCTUATION: Final = ",.;:!?¿¡、。！？"
# Japanese writes no spaces: 「今日のコンサート」 is "today's concert".
_JAPANESE: Final = re.compile(
    f"({'|'.join(sorted((word for row in PHRASES['ja'] for word in row), key=len, reverse=True))})の?(?=[^\\s])"
)


@dataclass(frozen=True, slots=True)
class FoundWord:
    meaning: Meaning
    text: str  # as written


@dataclass(frozen=True, slots=True)
class SplitText:
    """The words found in a text, and the remaining text."""

    found: tuple[FoundWord, ...]
    rest: str

    def restore(self, word: FoundWord) -> str:
        """Put a found word before the remaining text, in quotation marks to make it an ordinary search word."""
        return f'"{word.text}" {self.rest}'.strip()


def split_text(text: str) -> SplitText:
    """Find at most one word for a day and one for a price; others remain in the text."""
    tokens = [match[0] for match in _TOKEN.finditer(_separate(text))]
    found: list[FoundWord] = []
    rest: list[str] = []
    while tokens:
        count, meaning = _match(tokens)
        if meaning is None or any(_is_day(word.meaning) == _is_day(meaning) for word in found):
            rest.append(tokens.pop(0))
            continue
        found.append(FoundWord(meaning, " ".join(tokens[:count]).strip(_PUNCTUATION)))
        del tokens[:count]
    return SplitText(tuple(found), " ".join(rest))


def complete(text: str, language: str) -> tuple[tuple[Meaning, ...], str]:
    """Return the meanings of phrases that start with the last words of the text, and the text before those words."""
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    rows = PHRASES.get(language, PHRASES["en"])
    for start in range(max(0, len(tokens) - _MAX_WORDS), len(tokens)):
        begun = fold(" ".join(tokens[start:]))
        meanings: tuple[Meaning, ...] = tuple(
            meaning
            for meaning, phrases in zip(MEANINGS, rows, strict=True)
            if begun and any(fold(phrase).startswith(begun) for phrase in phrases)
        )
        if meanings:
            return meanings, " ".join(tokens[:start])
    return (), text


def find_days(meaning: Meaning, today: date) -> tuple[date, date] | None:
    """Return the first and last day for a meaning; None if it is not a day."""
    match meaning:
        case "today" | "tonight":
            return today, today
        case "tomorrow":
            return today + timedelta(days=1), today + timedelta(days=1)
        case "weekend":
            return find_weekend(today)
        case "free":
            return None


def find_weekend(today: date) -> tuple[date, date]:
    """Return the rest of the current weekend, or the next weekend. A weekend is a Saturday and a Sunday."""
    sunday = today + timedelta(days=7 - today.isoweekday())
    return max(today, sunday - timedelta(days=1)), sunday


def _is_day(meaning: Meaning) -> bool:
    return meaning in DAY_MEANINGS


def _match(tokens: list[str]) -> tuple[int, Meaning | None]:
    """Return the longest phrase at the beginning of the tokens, as its number of words and its meaning."""
    for count in range(min(_MAX_WORDS, len(tokens)), 0, -1):
        # A word that follows punctuation belongs to the next phrase.
        if any(token[-1] in _PUNCTUATION for token in tokens[: count - 1]):
            continue
        meaning = _MEANING_OF.get(fold(" ".join(tokens[:count]).strip(_PUNCTUATION)))
        if meaning:
            return count, meaning
    return 0, None


def _separate(text: str) -> str:
    """Add a space after a Japanese word at the beginning of a token."""
    return re.sub(r"(?<!\S)" + _JAPANESE.pattern, r"\1 ", text)
