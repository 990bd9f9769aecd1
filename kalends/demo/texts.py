"""Titles and descriptions from the word lists, each with its folded form for search.

Two million descriptions are composed of a few thousand pieces, so that each piece is folded only once. Only the
method `random()` of the generator is used, because its sequence is the same in all versions of Python.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kalends.core.html.sanitize import fold, to_plain_text
from kalends.core.slugs import make_slug
from kalends.demo.words import GENERAL, SLOTS, THEMES, Theme

Chance = Callable[[], float]

# Numbers of pre-generated pieces of descriptions per theme, and of titles per theme and town.
PIECES_PER_THEME: Final = 300
TITLES_PER_TOWN: Final = 60
MIN_WORDS: Final = 40

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Text:
    """A text and its folded form for search."""

    written: str
    folded: str
    word_count: int


@dataclass(frozen=True, slots=True)
class Title:
    written: str
    folded: str
    slug: str


def pick[T](chance: Chance, choices: Sequence[T]) -> T:
    return choices[int(chance() * len(choices))]


def read_text(written: str) -> Text:
    plain = to_plain_text(written)
    return Text(written, fold(plain), plain.count(" ") + 1)


def fill(template: str, chance: Chance, names: Mapping[str, str]) -> str:
    """Fill each slot with one of its words; capitalize the word if the slot is capitalized."""

    def word(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        replacement = names.get(name) or pick(chance, SLOTS[name])
        return replacement[0].upper() + replacement[1:] if slot[1][0].isupper() else replacement

    return _SLOT.sub(word, template)


def fill_sentence(template: str, chance: Chance, names: Mapping[str, str]) -> str:
    """Fill a template and capitalize its first letter."""
    filled = fill(template, chance, names)
    return filled[0].upper() + filled[1:]


class Writer:
    """Generates titles and descriptions, which are the same for the same random sequence."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._pieces = {theme.category: [self._halves(theme, half) for half in (0, 1)] for theme in THEMES}
        self._leads: dict[tuple[str, str, str], tuple[Text, ...]] = {}
        self._titles: dict[tuple[str, str], list[Title]] = {}

    def sentence(self, theme: Theme) -> Text:
        return pick(self._chance, self._pieces[theme.category][0])[0]

    def title(self, theme: Theme, venue: str, town: str) -> Title:
        key = (theme.category, town)
        if key not in self._titles:
            names = {"venue": venue, "town": town}
            filled = (
                fill_sentence(pick(self._chance, theme.titles), self._chance, names) for _ in range(TITLES_PER_TOWN)
            )
            self._titles[key] = [Title(text, fold(to_plain_text(text)), make_slug(text)) for text in filled]
        return pick(self._chance, self._titles[key])

    def description(self, theme: Theme, venue: str, town: str) -> Text:
        """Compose a description of about 40 to 120 words in one to three paragraphs."""
        chance, pieces = self._chance, self._pieces[theme.category]
        min_words = MIN_WORDS + int(60 * chance() ** 3)
        text = pick(chance, self._get_leads(theme, venue, town))
        half = 0
        while text.word_count < min_words:
            _, more = pick(chance, pieces[half])
            half = 1 - half
            gap = "\n\n" if text.word_count > 30 else " "
            text = Text(
                f"{text.written}{gap}{more.written}",
                f"{text.folded} {more.folded}",
                text.word_count + more.word_count,
            )
        return text

    def _halves(self, theme: Theme, half: int) -> list[tuple[Text, Text]]:
        """Return pieces from every other template, so that two consecutive pieces do not repeat each other."""
        return [self._piece(theme.sentences[half::2], GENERAL[half::2]) for _ in range(PIECES_PER_THEME // 2)]

    def _piece(self, own: Sequence[str], general: Sequence[str]) -> tuple[Text, Text]:
        """Compose two to four sentences from different templates; return the first and all of them."""
        chance = self._chance
        templates = [*self._sample(own), *self._sample(general)]
        sentences = [fill_sentence(template, chance, {}) for template in templates]
        return read_text(sentences[0]), read_text(" ".join(sentences))

    def _sample(self, templates: Sequence[str]) -> list[str]:
        remaining = list(templates)
        number = min(1 + int(self._chance() * 2), len(remaining))
        return [remaining.pop(int(self._chance() * len(remaining))) for _ in range(number)]

    def _get_leads(self, theme: Theme, venue: str, town: str) -> tuple[Text, ...]:
        key = (theme.category, venue, town)
        if key not in self._leads:
            names = {"venue": venue, "town": town}
            self._leads[key] = tuple(read_text(fill_sentence(lead, self._chance, names)) for lead in theme.leads)
        return self._leads[key]
