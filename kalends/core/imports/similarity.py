"""How likely two events are the same: title, place, start and organizer, each from 0 to 1.

The score is 0.5 title + 0.2 place + 0.2 start + 0.1 organizer. Some differences exclude that two events are the same,
however similar the rest is: another day, other numbers in the title, another place with a common title.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text

SAME_SCORE: Final = 0.85  # An import links the events.
SIMILAR_SCORE: Final = 0.6  # A person decides.
WINDOW: Final = timedelta(hours=26)  # Starts that are further apart are never those of the same event.

_DIFFERENT: Final = 0.55  # the highest score of events that differ in an essential point
_ALMOST_EQUAL: Final = 0.9
_QUESTIONABLE: Final = 0.84  # the highest score of events about which a person has to decide
_UNKNOWN: Final = 0.45  # what an unknown place or organizer counts
_SAME_PLACE_METRES: Final = 150
_FAR_METRES: Final = 1000
_DISTINCTIVE_LENGTH: Final = 18  # Letters of a title that two events at different places hardly share.
_MIN_WORD_RATIO: Final = 0.8
# Words before and after a title that say nothing about the event, folded.
_NOISE: Final = frozenset(
    """
    abgesagt absage verschoben neu ausverkauft fallt aus wichtig achtung entfallt online termin veranstaltung
    cancelled canceled postponed new sold out update updated reminder event rescheduled
    annule annulee reporte reportee complet nouveau cancelado cancelada aplazado agotado nuevo
    annullato rinviato esaurito nuovo adiado esgotado novo afgelast geannuleerd uitgesteld uitverkocht nieuw
    der die das den dem des ein eine einer und oder im in am an mit mit von vom zum zur fur auf bei
    the a an and or of for with at on to by le la les l un une et ou du de d des au aux en pour avec
    el los las y o del al con por para il lo gli i e di da dal della delle dell nell sull all per con nel os as um uma
    do dos das no na het een van voor met te op
    """.split()  # noqa: SIM905
)
# Words for the type of an event, which some sources add and others leave out, folded.
_GENRES: Final = frozenset(
    """
    konzert lesung vortrag theater kino film kabarett comedy ausstellung ausstellungseroffnung vernissage workshop
    kurs fuhrung festival fest live open air spielt prasentiert reading talk lecture theatre cinema exhibition concert
    show course class tour presents exposition spectacle visite cours atelier fete concierto lectura conferencia
    teatro cine exposicion curso taller visita fiesta concerto lettura conferenza mostra corso spettacolo festa
    leitura palestra exposicao oficina lezing tentoonstelling cursus rondleiding feest
    voorstelling コンサート 講演会 展覧会 教室
    """.split()  # noqa: SIM905
)
_GENRE_WEIGHT: Final = 0.3
_COMPOUND_RATIO: Final = 0.85  # of a word and a compound that begins or ends with it
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


def compute_score(first: EventFacts, second: EventFacts) -> float:
    """Return from 0 to 1 how likely two events are the same."""
    title = compare_titles(first.title, second.title)
    place, start = compare_places(first, second), compare_starts(first, second)
    organizer = _compare_organizers(first, second)
    score = 0.5 * title + 0.2 * _or_unknown(place) + 0.2 * start + 0.1 * _or_unknown(organizer)
    if start < 0.3:
        return min(score, _DIFFERENT)
    # A page may be about several events, so that a person decides if the titles differ.
    if _is_same_page(first.website, second.website) and title >= 0.2:
        return max(score, 0.9 if title >= 0.5 else 0.65)
    if title < 0.5 or _excludes(place, first, second):
        return min(score, _DIFFERENT)
    # Only almost equal titles are linked without a question: a link of different events hides one of them.
    return score if title >= _ALMOST_EQUAL else min(score, _QUESTIONABLE)


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
    (words, numbers), (other_words, other_numbers) = _split_words(first), _split_words(second)
    if not words or not other_words:
        return 1.0 if fold(first) == fold(second) else 0.0
    if words == other_words and numbers == other_numbers:
        return 1.0
    similarity = max(_compare_words(words, other_words), _compare_letters(words, other_words))
    if (numbers and other_numbers and numbers != other_numbers) or _have_other_codes(words, other_words):
        return min(similarity, 0.3)
    return similarity * (1.0 if numbers == other_numbers else 0.92)


def _have_other_codes(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each title has a short word that the other one lacks, such as the names of two classes."""
    codes, other_codes = ({word for word in title if len(word) < 4 and word.isascii()} for title in (words, others))
    return bool(codes - other_codes) and bool(other_codes - codes)


@lru_cache(maxsize=2048)
def _split_words(title: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the words of a title without those that say nothing, and its numbers."""
    parts: list[str] = re.findall(r"\d+|[^\W\d_]+", fold(to_plain_text(title)))
    numbers = frozenset(part.lstrip("0") for part in parts if part.isdecimal() and not _is_year(part))
    # A letter or a Roman numeral behind a word numbers it.
    numbers |= {part for part in parts[1:] if part in _NUMERALS and (part not in _NOISE or part == parts[-1])}
    words = [part for part in parts if not part.isdecimal() and part not in _NUMERALS]
    return tuple(word for word in words if word not in _NOISE) or tuple(words), numbers


def _is_year(part: str) -> bool:
    return len(part) == 4 and part.startswith(("19", "20"))


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
    return max(_compare_words(words, others), _compare_letters(words, others))


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
