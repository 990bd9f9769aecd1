"""Read one line, such as `Pub quiz Tue 8pm Bell Inn £2 #quiz`, as an event.

`#` terms and known venues are found first, then day and time (`core/line_dates.py`), then the price. What remains is
the title. Patterns match the folded line, in which `MASK` replaces the parts found so far.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, Literal

from kalends.core.date_forms import HOURS
from kalends.core.line_dates import MASK, Span, When, count_edges, either, find_edges, find_when
from kalends.core.sanitize import fold
from kalends.core.search_words import MEANINGS, PHRASES

MAX_LENGTH: Final = 500  # the rest of a longer line is ignored
# Words before venues and prices, which belong to these parts.
_PLACE_WORDS: Final[Mapping[str, str]] = {
    "en": r"@|(?:at|in)(?: the)?",
    "de": r"@|im|am|beim|(?:in|an|bei|auf)(?: de[rm])?",
    "fr": r"@|aux?|chez|en|(?:a|dans)(?: la| les?| l')?",
    "es": r"@|al?|en(?: el| las?| los)?",
    "it": r"@|(?:al|nel|dal)(?:la|lo|l')?|presso(?: il| la| l')?|in|a",
    "pt-BR": r"@|n[ao]s?|em|ao?",
    "nl": r"@|(?:in|bij|op)(?: de| het)?",
    "ja": r"@",
}
_PRICE_WORDS: Final = "entry|admission|tickets?|eintritt|entree|entrada|ingresso|toegang|for|fur|入場料|参加費|料金"
_SIGN: Final = r"(?:[a-z]{0,2}[$€£¥₩₹₺₽₪]|chf|eur|gbp|usd|brl|jpy|kr)"
_UNIT: Final = rf"(?:{_SIGN}|p(?!\.)|euros?|pounds?|dollars?|reais|franken|円)"
_AMOUNT: Final = r"\d++(?:[.,]\d++)*+(?:,-)?"
_HOUR: Final = rf"\s?(?:[:.]\d|(?:{HOURS})(?!\w))"  # what makes a number a time
_COST: Final = re.compile(
    rf"(?<![\w.,])(?:(?:{_PRICE_WORDS}):?\s?)?"
    rf"(?P<cost>{_SIGN}\s?{_AMOUNT}(?:\s?[-/]\s?{_SIGN}?\s?{_AMOUNT})?(?!{_HOUR})"
    rf"|{_AMOUNT}(?:(?:\s?{_UNIT})?\s?[-/]\s?{_AMOUNT})?\s?{_UNIT}(?!\s?{_AMOUNT}(?!{_HOUR})))(?!\w)"
)
_TERM: Final = re.compile(r"(?<!\S)#(\w(?:[\w-]*\w)?)")
_SEAM: Final = re.compile(r"[\s,;:/|、・–—-]*\0[\s,;:./|、・–—\0-]*")

Kind = Literal["day", "time", "venue", "cost", "category", "tag"]
Missing = Literal["day", "title"]


@dataclass(frozen=True, slots=True)
class Known:
    """Names of the site's records that a line can contain."""

    venues: Sequence[str] = ()
    categories: Sequence[str] = ()
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the line. Its value is the name of a venue or term, a cost ("0" if free), or the text."""

    kind: Kind
    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class QuickEvent:
    """The event that a line describes.

    `last_day` and `end` are set only if stated. Without `start`, the event takes all day. Without `end`,
    it takes `length`.
    """

    line: str
    title: str
    parts: tuple[Part, ...]
    day: date | None
    last_day: date | None
    start: time | None
    end: time | None
    length: timedelta = timedelta(hours=1)

    @property
    def missing(self) -> tuple[Missing, ...]:
        has_title = any(character.isalnum() for character in self.title)
        return (*(("day",) if self.day is None else ()), *(() if has_title else ("title",)))

    def list_values(self, *kinds: Kind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.value for part in self.parts if part.kind in kinds))

    def without(self, part: Part) -> str:
        """Return the line without a part."""
        return f"{self.line[: part.start].rstrip()} {self.line[part.end :].lstrip()}".strip()

    def find_limits(self) -> tuple[datetime, datetime] | None:
        """Return start and end; for an all-day event, midnight of the first and last day. None without a day."""
        if self.day is None:
            return None
        start = datetime.combine(self.day, self.start or time())
        end = datetime.combine(self.last_day or self.day, self.end or self.start or time())
        if self.start is not None and self.end is None:
            end += self.length
        return start, end + timedelta(days=1) if end < start else end


def read_line(line: str, language: str, now: datetime, known: Known, *, month_first: bool = False) -> QuickEvent:
    """Read a line. `now` is local; `month_first` applies to dates such as 1/2, except in Japanese."""
    language = language if language in PHRASES else "en"
    reader = _Reader(" ".join(unicodedata.normalize("NFC", line).replace(MASK, " ").split())[:MAX_LENGTH])
    reader.take_terms(known)
    reader.take_venue(known.venues, language)
    when = find_when(_COST.sub(_mask, reader.text), language, now, month_first=month_first or language == "ja")
    if when.day_span:
        reader.take("day", when.day_span)
    if when.time_span:
        reader.take("time", when.time_span)
    reader.take_cost(when, language)
    title = reader.find_title()
    return QuickEvent(reader.line, title, reader.parts, when.day, when.last_day, when.start, when.end)


class _Reader:
    """A line of which parts are taken one after another."""

    def __init__(self, line: str) -> None:
        folded = [" " if character.isspace() else fold(character) for character in line]
        self.line = line
        self.text = "".join(folded)
        self.places = [place for place, characters in enumerate(folded) for _ in characters]
        self.found: list[Part] = []

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(sorted(self.found, key=lambda part: part.start))

    def take(self, kind: Kind, span: Span, value: str | None = None) -> None:
        first, last = self.places[span[0]], self.places[span[1] - 1] + 1
        self.found.append(Part(kind, first, last, self.line[first:last] if value is None else value))
        self.text = self.text[: span[0]] + MASK * (span[1] - span[0]) + self.text[span[1] :]

    def find_written(self, span: Span) -> str:
        return self.line[self.places[span[0]] : self.places[span[1] - 1] + 1]

    def take_terms(self, known: Known) -> None:
        terms: dict[str, tuple[Kind, str]] = {_squeeze(name): ("tag", name) for name in known.tags}
        terms |= {_squeeze(name): ("category", name) for name in known.categories}
        for match in _TERM.finditer(self.text):
            written = self.find_written(match.span(1))
            kind, name = terms.get(_squeeze(written), ("tag", written))
            self.take(kind, match.span(), name)

    def take_venue(self, names: Sequence[str], language: str) -> None:
        """Take the longest name, where it stands last."""
        left, right = find_edges(language)
        if language == "ja":
            left, right = rf"(?:{left}|(?<=から)|(?<=[日時分]))", r"(?:で|にて|(?!\w))"
        left += rf"(?:(?:{_PLACE_WORDS[language]})(?:\s|(?<=[@'])))?"
        for name in sorted(names, key=len, reverse=True):
            folded = fold(name)
            if folded and folded in self.text:
                matches = list(re.finditer(f"{left}{re.escape(folded)}{right}", self.text))
                if matches:
                    self.take("venue", matches[-1].span(), name)
                    return

    def take_cost(self, when: When, language: str) -> None:
        """Take the first price after the day, or else the last one. Without a price, a word such as "free" counts."""
        after = when.day_span[1] if when.day_span else 0
        if prices := list(_COST.finditer(self.text)):
            match = next((price for price in prices if price.start() >= after), prices[-1])
            return self.take("cost", match.span(), self.find_written(match.span("cost")))
        left, right = find_edges(language)
        free = either(PHRASES[language][MEANINGS.index("free")])
        for match in re.finditer(f"{left}(?:{free})!*{right}", self.text):
            # Elsewhere, the word is part of the title: "Free Jazz Collective", "Feel free".
            is_last = match.start() >= after and not re.search(r"\w", self.text[match.end() :])
            if is_last or count_edges(self.text, match.span()) == 2:
                return self.take("cost", match.span(), "0")
        return None

    def find_title(self) -> str:
        """Join what remains, without the punctuation around the parts."""
        rest = list(self.line)
        for part in self.found:
            rest[part.start : part.end] = MASK * (part.end - part.start)
        text = re.sub(r"\(\s*(\0[\s\0]*)\)", r"\1", "".join(rest))
        return _SEAM.sub(" ", text).strip()


def _mask(match: re.Match[str]) -> str:
    return MASK * len(match[0])


def _squeeze(name: str) -> str:
    """Return a name as it looks in a `#` term: `Live music` is the same as `live-music` and `LiveMusic`."""
    return "".join(character for character in fold(name) if character.isalnum())
