"""Titles and descriptions from the word lists, each with the form in which it is searched.

Two million descriptions are put together from a few thousand pieces, so each piece is folded once and not
once per event. Only `random()` is asked of the generator: its sequence is the same in every Python.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kalends.core.sanitize import fold, to_plain_text
from kalends.core.slugs import make_slug
from kalends.demo.words import GENERAL, SLOTS, THEMES, Theme

Chance = Callable[[], float]

# How much is made beforehand: of each theme, so many pieces of a description and, in each town, titles.
PIECES_PER_THEME: Final = 300
TITLES_PER_TOWN: Final = 60
MIN_WORDS: Final = 40

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is written, and as a search looks at it."""

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
    """Each slot with one of its words; written with a capital, the word gets one too."""

    def word(slot: re.Match[str]) -> str:
        name = slot[1].lower()
        replacement = names.get(name) or pick(chance, SLOTS[name])
        return replacement[0].upper() + replacement[1:] if slot[1][0].isupper() else replacement

    return _SLOT.sub(word, template)


def fill_sentence(template: str, chance: Chance, names: Mapping[str, str]) -> str:
    """Filled, and with a capital at its beginning."""
    filled = fill(template, chance, names)
    return filled[0].upper() + filled[1:]


class Writer:
    """Writes titles and descriptions. The same chance gives the same texts."""

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
        """40 to some 120 words in one to three paragraphs."""
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
        """Pieces from every other template, so that two of them in turn say nothing twice."""
        return [self._piece(theme.sentences[half::2], GENERAL[half::2]) for _ in range(PIECES_PER_THEME // 2)]

    def _piece(self, own: Sequence[str], general: Sequence[str]) -> tuple[Text, Text]:
        """Two to four sentences, no two from one template; and the first of them alone."""
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
