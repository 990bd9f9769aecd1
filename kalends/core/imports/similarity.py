"""How likely two events are the same: title, place, start and organizer, each from 0 to 1.

The score is 0.5 title + 0.2 place + 0.2 start + 0.1 organizer. Some differences exclude that two events are the same,
however similar the rest is: another day, other numbers in the title, another place with a common title.

Events are certainly the same if the score says so and their titles are almost equal, or if one title only says more
than the other one about what happens at that place and time.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text
from kalends.core.imports.cell_words import MONTHS

SAME_SCORE: Final = 0.85  # An import links the events.
SIMILAR_SCORE: Final = 0.6  # A person decides.
WINDOW: Final = timedelta(hours=26)  # Starts that are further apart are never those of the same event.

_DIFFERENT: Final = 0.55  # the highest score of events that differ in an essential point
_ALMOST_EQUAL: Final = 0.9
_CERTAIN: Final = 0.88  # the lowest score of events that are certainly the same
_QUESTIONABLE: Final = 0.84  # the highest score of events about which a person has to decide
_UNKNOWN: Final = 0.45  # what an unknown place or organizer counts
_SAME_PLACE_METRES: Final = 150
_FAR_METRES: Final = 1000
_DISTINCTIVE_LENGTH: Final = 18  # Letters of a title that two events at different places hardly share.
_SAME_PLACE: Final = 0.8  # from this similarity on, two names are those of one place
_NEAR_START: Final = 0.75  # half an hour apart
_SAME_DAY: Final = 0.7  # a time and a whole day
_MIN_WORD_RATIO: Final = 0.8
_MIN_COMPOUND_LETTERS: Final = 5
_MIN_PART_LETTERS: Final = 3
_MIN_NAME_LETTERS: Final = 12
_MIN_LETTERS_WITHOUT_CONTEXT: Final = 8
# Words before and after a title that say nothing about the event, folded.
_NOISE: Final = frozenset(
    """
    abgesagt absage verschoben neu ausverkauft fallt aus wichtig achtung entfallt online termin veranstaltung
    cancelled canceled postponed new sold out update updated reminder event rescheduled
    dr prof mr mrs ms herr frau
    annule annulee reporte reportee complet nouveau cancelado cancelada aplazado agotado nuevo
    annullato rinviato esaurito nuovo adiado esgotado novo afgelast geannuleerd uitgesteld uitverkocht nieuw
    der die das den dem des ein eine einer und oder im in am an mit mit von vom zum zur fur auf bei
    the a an and or of for with at on to by le la les l un une et ou du de d des au aux en pour avec
    el los las y o del al con por para il lo gli i e di da dal della delle dell nell sull all per con nel os as um uma
    do dos das no na het een van voor met te op
    eintritt frei free entry admission entree libre gratuite gratuit entrada gratis ingresso libero gratuito toegang
    """.split()  # noqa: SIM905
)
# Abbreviations that are as common as their words, folded.
_ABBREVIATIONS: Final = {
    "xmas": "christmas",
    "sq": "square",
    "rd": "road",
    "ave": "avenue",
    "center": "centre",
    "theater": "theatre",
    "sankt": "st",
    "saint": "st",
    "sainte": "st",
    "santa": "st",
    "san": "st",
    "sao": "st",
    "sint": "st",
    "vhs": "volkshochschule",
    "jhv": "jahreshauptversammlung",
    "hbf": "hauptbahnhof",
    "str": "strasse",
    "evang": "evangelisch",
    "kath": "katholisch",
    "stadtbucherei": "stadtbibliothek",
    "bucherei": "bibliothek",
    "pza": "plaza",
    "pl": "place",
    "bib": "bibliotheque",
    "mjc": "maison",
    "av": "avenida",
    "uni": "universitat",
}
# Words for the type of an event, which some sources add and others leave out, folded.
_GENRES: Final = frozenset(
    """
    konzert lesung vortrag kino film kabarett comedy ausstellung ausstellungseroffnung vernissage workshop
    kurs fuhrung festival fest live open air spielt prasentiert reading talk lecture theatre cinema exhibition concert
    show course class tour presents exposition spectacle visite cours atelier fete concierto lectura conferencia
    teatro cine exposicion curso taller visita fiesta concerto lettura conferenza mostra corso spettacolo festa
    leitura palestra exposicao oficina lezing tentoonstelling cursus rondleiding feest
    voorstelling コンサート 講演会 展覧会 教室
    """.split()  # noqa: SIM905
)
_GENRE_WEIGHT: Final = 0.3
_COMPOUND_RATIO: Final = 0.85  # of a word and a compound that begins or ends with it
_PART_RATIO: Final = 0.85  # of a name and a longer one that has all of its words
# The names of months; shorter ones are words, too.
_MONTHS: Final = frozenset(
    fold(name) for row in MONTHS for names in row for name in names.split("|") if len(name) > 3
)
_NUMERALS: Final = frozenset("i ii iii iv v vi vii viii ix x xi xii a b c d".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What is known of an event; empty values are unknown."""

    title: str
    start_local: datetime
    all_day: bool = False
    venue_ids: tuple[int, ...] = ()
    venue_names: tuple[str, ...] = ()
    coordinates: tuple[tuple[float, float], ...] = ()
    organizer_ids: tuple[int, ...] = ()
    organizer_names: tuple[str, ...] = ()
    website: str = ""


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """How similar two titles are."""

    similarity: float
    is_part: bool = False  # One title has all words of the other one, and says more.


def compute_score(first: EventFacts, second: EventFacts) -> float:
    """Return from 0 to 1 how likely two events are the same."""
    title = _match_titles(first.title, second.title, _list_context(first) | _list_context(second))
    place, start = compare_places(first, second), compare_starts(first, second)
    organizer = _compare_organizers(first, second)
    score = 0.5 * title.similarity + 0.2 * _or_unknown(place) + 0.2 * start + 0.1 * _or_unknown(organizer)
    if start < 0.3:
        return min(score, _DIFFERENT)
    # A page may be about several events, so that a person decides if the titles differ.
    if _is_same_page(first.website, second.website) and title.similarity >= 0.2:
        return max(score, 0.9 if title.similarity >= 0.5 else 0.65)
    if title.is_part and place is not None and place >= _SAME_PLACE and start >= _NEAR_START:
        return max(score, _CERTAIN)
    if title.similarity < 0.5 or _excludes(place, first, second):
        return min(score, _DIFFERENT)
    # Only almost equal titles are linked without a question: a link of different events hides one of them.
    if title.similarity < _ALMOST_EQUAL:
        return min(score, _QUESTIONABLE)
    is_known = organizer is not None and organizer >= _ALMOST_EQUAL
    is_distinctive = _is_distinctive(first.title) and _is_distinctive(second.title)
    is_certain = start >= _SAME_DAY and (is_known or is_distinctive)
    return max(score, _CERTAIN) if is_certain else score


def _or_unknown(value: float | None) -> float:
    return _UNKNOWN if value is None else value


def _excludes(place: float | None, first: EventFacts, second: EventFacts) -> bool:
    """Return whether the places exclude that the events are the same.

    One place has many names, so different names alone do not exclude it if the title is distinctive.
    """
    if place is None or place >= 0.4:
        return False
    distance = _find_distance(first, second)
    is_far = distance is not None and distance > _FAR_METRES
    return is_far or not (_is_distinctive(first.title) and _is_distinctive(second.title))


def _is_distinctive(title: str) -> bool:
    words = _split_words(title)[0]
    return len(words) > 1 and len("".join(words)) >= _DISTINCTIVE_LENGTH


# Titles -----------------------------------------------------------------------------------------


def compare_titles(first: str, second: str) -> float:
    """Compare titles by their words, whose order does not matter, and by their letters."""
    return _match_titles(first, second, frozenset()).similarity


def _match_titles(first: str, second: str, context: frozenset[str]) -> TitleMatch:
    """Compare titles without the words of the context, which name the place or the organizer."""
    (words, numbers), (other_words, other_numbers) = _split_words(first), _split_words(second)
    if not words or not other_words:
        return TitleMatch(1.0 if fold(first) == fold(second) else 0.0)
    if words == other_words and numbers == other_numbers:
        return TitleMatch(1.0, is_part=True)
    words, other_words = _leave_out(words, context), _leave_out(other_words, context)
    similarity = max(_compare_words(words, other_words), _compare_letters(words, other_words))
    if (numbers and other_numbers and numbers != other_numbers) or _have_other_codes(words, other_words):
        return TitleMatch(min(similarity, 0.3))
    is_part = _is_part(words, other_words) or _is_part(other_words, words)
    has_same_numbers = numbers == other_numbers
    return TitleMatch(similarity * (1.0 if has_same_numbers else 0.92), is_part and has_same_numbers)


def _list_context(facts: EventFacts) -> frozenset[str]:
    names = (*facts.venue_names, *facts.organizer_names)
    return frozenset(word for name in names for word in _split_words(name)[0])


def _leave_out(words: tuple[str, ...], context: frozenset[str]) -> tuple[str, ...]:
    """Return the words that are not in the context, unless too little would be left."""
    left = tuple(word for word in words if word not in context)
    return left if len("".join(left)) >= _MIN_LETTERS_WITHOUT_CONTEXT else words


def _is_part(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether the other title has all words of a title that says more than a type of event."""
    names = [word for word in words if word not in _GENRES]
    letters = len("".join(names))
    if letters < (_MIN_PART_LETTERS if words[0].isascii() else 2):
        return False
    if _is_abbreviation(words, others):
        return True
    # Another type of event does not matter if the rest is distinctive.
    wanted = names if letters >= _MIN_NAME_LETTERS else words
    found = sum(_weigh(word) for word in wanted if _is_in(word, others))
    return found / sum(map(_weigh, wanted)) > 0.95


def _is_in(word: str, others: Sequence[str]) -> bool:
    """Return whether a title has a word, as a part of a compound, or in parts if it is a compound itself."""
    if any(_is_word_part(word, other) for other in others):
        return True
    starts = [other for other in others if len(other) >= _MIN_COMPOUND_LETTERS and word.startswith(other)]
    rests = [word[len(start) :].removeprefix("s") for start in starts]
    return any(rest in others or rest in _GENRES for rest in rests)


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


@lru_cache(maxsize=2048)
def _split_words(title: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the words of a title without those that say nothing, and its numbers."""
    found: list[str] = re.findall(r"\d+|[^\W\d_]+", fold(to_plain_text(title)))
    parts = [_ABBREVIATIONS.get(part, part) for part in found]
    numbers = frozenset(part.lstrip("0") for part in _leave_out_dates(parts) if part.isdecimal())
    # A letter or a Roman numeral behind a word numbers it.
    numbers |= {part for part in parts[1:] if part in _NUMERALS and (part not in _NOISE or part == parts[-1])}
    words = [part for part in parts if not part.isdecimal() and part not in _NUMERALS]
    return tuple(word for word in words if word not in _NOISE) or tuple(words), numbers


def _leave_out_dates(parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts that are neither a year nor a day of a month; the start tells them."""
    for part, before, after in zip(parts, ["", *parts], [*parts[1:], ""], strict=False):
        is_year = len(part) == 4 and part.startswith(("19", "20"))
        if not is_year and before not in _MONTHS and after not in _MONTHS:
            yield part


def _compare_words(words: Sequence[str], others: Sequence[str]) -> float:
    """Return the share of letters in words that both titles have; a word may have a typing error."""
    found, other_found = _match(words, others), _match(others, words)
    total, other_total = sum(map(_weigh, words)), sum(map(_weigh, others))
    share, other_share = found / total, other_found / other_total
    # Words of a shorter title that are all in the longer one.
    if max(share, other_share) > 0.95 and min(total, other_total) >= 8:
        return max(0.8, (found + other_found) / (total + other_total))
    # Each title has words that the other one lacks: “beginners” is not “advanced”.
    is_substitution = share < 0.8 and other_share < 0.8
    return (found + other_found) / (total + other_total) * (0.6 if is_substitution else 1.0)


def _match(words: Sequence[str], others: Sequence[str]) -> float:
    return sum(_weigh(word) * max(_compare_word(word, other) for other in others) for word in words)


def _weigh(word: str) -> float:
    return len(word) * (_GENRE_WEIGHT if word in _GENRES else 1.0)


@lru_cache(maxsize=8192)
def _compare_word(word: str, other: str) -> float:
    if word == other:
        return 1.0
    shorter, longer = sorted((word, other), key=len)
    # Languages without spaces have short words.
    is_long = len(shorter) >= (5 if shorter.isascii() else 2)
    if is_long and (longer.startswith(shorter) or longer.endswith(shorter)):
        return _COMPOUND_RATIO
    if len(shorter) < 4 or len(longer) - len(shorter) > 3:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return ratio if ratio >= _MIN_WORD_RATIO else 0.0


def _compare_letters(words: Sequence[str], others: Sequence[str]) -> float:
    """Compare titles without spaces, for words that are written together in one and apart in the other."""
    if len(words) == len(others):
        return 0.0
    first, second = "".join(words), "".join(others)
    ratio = SequenceMatcher(None, first, second, autojunk=False).ratio()
    return ratio if ratio >= 0.92 else 0.0


# Starts, places and organizers ------------------------------------------------------------------


def compare_starts(first: EventFacts, second: EventFacts) -> float:
    """Compare local starts: doors open up to an hour before, and another day is another event."""
    if first.all_day or second.all_day:
        is_same_day = first.start_local.date() == second.start_local.date()
        return (1.0 if first.all_day == second.all_day else 0.7) if is_same_day else 0.0
    minutes = abs((first.start_local - second.start_local).total_seconds()) / 60
    return 1.0 - minutes / 90 * 0.7 if minutes <= 90 else 0.0


def compare_places(first: EventFacts, second: EventFacts) -> float | None:
    """Compare places by ID, distance and name; None if one of them is unknown."""
    if set(first.venue_ids) & set(second.venue_ids):
        return 1.0
    distance = _find_distance(first, second)
    if distance is not None and distance <= _SAME_PLACE_METRES:
        return 1.0
    names, others = first.venue_names, second.venue_names
    if not names or not others:
        return None if distance is None else 0.0
    similarity = max(_compare_names(name, other) for name in names for other in others)
    return min(similarity, 0.2) if distance is not None and distance > _FAR_METRES else similarity


def _compare_names(name: str, other: str) -> float:
    words, others = _split_words(name)[0], _split_words(other)[0]
    if not words or not others:
        return 0.0
    # The name of a town or “municipal” is often added to that of a place.
    is_part = _is_part(words, others) or _is_part(others, words)
    return max(_compare_words(words, others), _compare_letters(words, others), _PART_RATIO if is_part else 0.0)


def _compare_organizers(first: EventFacts, second: EventFacts) -> float | None:
    if set(first.organizer_ids) & set(second.organizer_ids):
        return 1.0
    if not first.organizer_names or not second.organizer_names:
        return None
    return max(_compare_names(name, other) for name in first.organizer_names for other in second.organizer_names)


def _find_distance(first: EventFacts, second: EventFacts) -> float | None:
    """Return the shortest distance of the places in metres; None if one is not located."""
    pairs = [(place, other) for place in first.coordinates for other in second.coordinates]
    return min((_measure(place, other) for place, other in pairs), default=None)


def _measure(place: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two points in metres; exact enough for a city."""
    north = (other[0] - place[0]) * 111_320
    east = (other[1] - place[1]) * 111_320 * math.cos(math.radians(place[0]))
    return math.hypot(north, east)


def _is_same_page(first: str, second: str) -> bool:
    """Return whether two events have the same page, which is more than a home page."""
    pages = [re.sub(r"^https?://(www\.)?", "", url.strip().lower()).rstrip("/") for url in (first, second)]
    return pages[0] == pages[1] and "/" in pages[0]
