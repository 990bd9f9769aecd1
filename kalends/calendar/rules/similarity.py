"""Estimates how likely two events are the same from title, place, start and organizer, each rated from 0 to 1.

The score is 0.5 title + 0.2 place + 0.2 start + 0.1 organizer. Some differences rule out a match, however similar the
events are otherwise: starts more than 90 minutes apart, different days if one event is all-day, different numbers in
the titles, or different places unless the titles are distinctive.

Events count as the same in three cases: the score is high enough and the titles are almost equal; one title only adds
detail to the other, and both place and time match; or the events have the same web page and similar titles.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from kalends.core.date_forms import MONTHS
from kalends.core.html_text import to_plain_text
from kalends.core.sanitize import fold

# Words in titles and place names: noise, event types and audiences.

# Noise words before and after a title, folded.
_NOISE: Final = frozenset(
    """
    abgesagt absage verschoben neu ausverkauft fallt aus wichtig achtung entfallt online termin veranstaltung
    cancelled canceled postponed new sold out update updated reminder event rescheduled
    dr prof mr mrs ms herr frau live ao vivo stream livestream omu omeu
    annule annulee reporte reportee complet nouveau cancelado cancelada aplazado agotado nuevo
    annullato rinviato esaurito nuovo adiado esgotado novo afgelast geannuleerd uitgesteld uitverkocht nieuw
    der die das den dem des ein eine einer und oder im in am an mit mit von vom zum zur fur auf bei
    the a an and or of for with at on to by le la les l un une et ou du de d des au aux en pour avec
    el los las y o del al con por para il lo gli i e di da dal della delle dell nell sull all per con nel os as um uma
    do dos das no na het een van voor met te op
    eintritt frei free entry admission entree libre gratuite gratuit entrada gratis ingresso libero gratuito toegang
    """.split()  # noqa: SIM905
)
# Abbreviations that are as common as the full words, folded.
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


def _read_groups(text: str) -> Mapping[str, str]:
    """Return the group of each word. Each line contains the group's name and its words."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {word: group for group, *words in lines for word in words}


# Folded words for types of events. Some sources add these words, others omit them. Words on one line are synonyms.
GENRES: Final = _read_groups(
    """
    concert konzert concert concierto concerto spielt gig recital show コンサート
    film kino film filme cinema cine screening projection proyeccion proiezione cineclub cineforum 上映会
    reading lesung autorenlesung liest reading lectura lettura leitura
    talk vortrag referat talk lecture conference conferencia conferenza charla palestra lezing 講演会
    theatre theatre theater teatro toneel voorstelling spectacle spettacolo
    comedy kabarett comedy
    exhibition ausstellung exhibition exposition exposicion mostra exposicao tentoonstelling 展覧会
    opening vernissage ausstellungseroffnung
    course kurs course class cours curso clase corso cursus
    workshop workshop atelier taller oficina 教室
    tour fuhrung tour visite visita rondleiding
    festival festival fest fete fiesta festa feest
    meeting sitzung meeting reunion riunione reuniao vergadering seduta
    evening abend evening night soiree noche serata noite avond social
    group gruppe treff group groupe grupo gruppo groep
    other open air prasentiert presents
    """
)
# Words for audiences, as a whole word or as the first part of a compound. Words on one line are synonyms.
AUDIENCES: Final = _read_groups(
    """
    children kind kinder child children kids enfant enfants nino ninos infantil bambino bambini crianca criancas
    children kinderen 子ども 子供 こども
    babies baby babies bebe bebes bimbi
    young jugend jugendliche youth teens teen junior juniors jeunes jovenes juvenil ragazzi giovani jovens jongeren
    adults erwachsene adult adults adultes adultos adulti volwassenen
    elderly senior senioren seniors seniorinnen aines mayores anziani idosos ouderen
    women frauen women ladies femmes mujeres donne mulheres vrouwen
    men manner men hommes hombres uomini homens mannen
    beginners anfanger einsteiger beginner beginners debutant debutants principiantes principianti iniciantes
    beginners beginnende 初級
    advanced fortgeschrittene advanced improver improvers intermediate avance avances avanzado avanzados avanzato
    advanced avancado gevorderden 中級 上級
    """
)
# Month names of more than three letters, because shorter ones are also ordinary words.
_MONTHS: Final = frozenset(
    fold(name) for row in MONTHS.values() for names in row for name in names.split("|") if len(name) > 3
)
_NUMERALS: Final = frozenset("i ii iii iv v vi vii viii ix x xi xii a b c d".split())  # noqa: SIM905


@lru_cache(maxsize=2048)
def split_words(title: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return a title's words without noise, and the numbers in the title."""
    found: list[str] = re.findall(r"\d+|[^\W\d_]+", fold(to_plain_text(title)))
    parts = [_ABBREVIATIONS.get(part, part) for part in found]
    numbers = frozenset(part.lstrip("0") for part in _leave_out_dates(parts) if part.isdecimal())
    # A letter or Roman numeral after a word is the number of that word.
    numbers |= {part for part in parts[1:] if part in _NUMERALS and (part not in _NOISE or part == parts[-1])}
    words = [part for part in parts if not part.isdecimal() and part not in _NUMERALS]
    return tuple(word for word in words if word not in _NOISE) or tuple(words), numbers


def _leave_out_dates(parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts, except for years and days of the month, because starts are compared separately."""
    for part, before, after in zip(parts, ["", *parts], [*parts[1:], ""], strict=False):
        is_year = len(part) == 4 and part.startswith(("19", "20"))
        if not is_year and before not in _MONTHS and after not in _MONTHS:
            yield part


# How similar two titles or place names are.

_MIN_WORD_RATIO: Final = 0.8
_MIN_COMPOUND_LETTERS: Final = 5
_MIN_FIRST_LETTERS: Final = 4  # in the first part of a compound
_MIN_PLACE_LETTERS: Final = 6
_MIN_PART_LETTERS: Final = 3
_MIN_NAME_LETTERS: Final = 12
_MIN_LETTERS_WITHOUT_CONTEXT: Final = 8
_GENRE_WEIGHT: Final = 0.3
_COMPOUND_RATIO: Final = 0.85  # similarity of a word and a compound that begins or ends with it
_STEM_RATIO: Final = 0.95  # similarity of two forms of a word
_PART_RATIO: Final = 0.85  # similarity of a name and a longer name that contains all of its words


@dataclass(frozen=True, slots=True)
class TitleMatch:
    similarity: float
    is_part: bool = False  # whether one title contains all words of the other
    is_same_audience: bool = True  # whether both titles name the same audiences or none


def compare_titles(first: str, second: str) -> float:
    """Compare titles by their words, in any order, and by their letters."""
    return match_titles(first, second, frozenset()).similarity


def match_titles(first: str, second: str, context: frozenset[str]) -> TitleMatch:
    """Compare titles without words from the context, because these only name the place or the organizer."""
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
    """Compare the names of places or organizers. Often, only one includes the town or a word like “municipal”."""
    words, others = split_words(name)[0], split_words(other)[0]
    if not words or not others:
        return 0.0
    # A word such as “theater” is part of a place name here, not an event type.
    is_part = _is_part(words, others, {}) or _is_part(others, words, {})
    return max(_compare_words(words, others, {}), _compare_letters(words, others), _PART_RATIO if is_part else 0.0)


def names_place(title: str, other_title: str, places: Sequence[str]) -> bool:
    """Return whether a title names one of the places and the other title does not."""
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
    """Return the words that are not in the context. If too few letters would remain, return all words."""
    left = tuple(word for word in words if word not in context)
    return left if len("".join(left)) >= _MIN_LETTERS_WITHOUT_CONTEXT else words


def _list_audiences(words: Sequence[str]) -> set[str]:
    """Return the audiences that a title names, as a whole word or as the first part of a compound."""
    return {group for word in words if (group := _find_audience(word))}


@lru_cache(maxsize=2048)
def _find_audience(word: str) -> str:
    starts = (start for start in AUDIENCES if len(start) >= _MIN_COMPOUND_LETTERS or not start.isascii())
    return AUDIENCES.get(word) or next((AUDIENCES[start] for start in starts if word.startswith(start)), "")


def _is_part(words: Sequence[str], others: Sequence[str], genres: Mapping[str, str]) -> bool:
    """Return whether the second title contains all words of the first one. Event types alone do not count."""
    names = [word for word in words if word not in genres]
    letters = len("".join(names))
    if letters < (_MIN_PART_LETTERS if words[0].isascii() else 2):
        return False
    if _is_abbreviation(words, others):
        return True
    types, other_types = ({genres[word] for word in title if word in genres} for title in (words, others))
    # The second title may omit the event type. It may replace the type only if the rest is distinctive.
    is_left_out = not other_types and all(_is_in(other, words, genres) for other in others)
    wanted = names if is_left_out or types & other_types or letters >= _MIN_NAME_LETTERS else words
    weights = {word: _weigh(word, genres) for word in wanted}
    return sum(weights[word] for word in wanted if _is_in(word, others, genres)) / sum(weights.values()) > 0.95


def _is_in(word: str, others: Sequence[str], genres: Mapping[str, str]) -> bool:
    """Return whether a title contains a word: alone, inside a compound, or as the separate parts of a compound."""
    if any(_is_word_part(word, other) for other in others):
        return True
    starts = [other for other in others if len(other) >= _MIN_FIRST_LETTERS and word.startswith(other)]
    rests = {start: word[len(start) :].removeprefix("s") for start in starts}
    return any(
        rest in genres or any(_ends_with(other, rest) for other in others if other != start)
        for start, rest in rests.items()
    )


def _ends_with(word: str, rest: str) -> bool:
    """Return whether a word ends with the last part of a compound: “Floh- und Trödelmarkt” is a “Flohmarkt”."""
    return word == rest or (len(rest) >= _MIN_COMPOUND_LETTERS and word.endswith(rest))


def _is_word_part(word: str, other: str) -> bool:
    """Return whether two words are the same, or the first is part of a compound."""
    ratio = _compare_word(word, other)
    return ratio > (0 if len(word) <= len(other) else _COMPOUND_RATIO)


def _is_abbreviation(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a title consists of the initials of the other title."""
    return len(words) == 1 and len(words[0]) >= 3 and words[0] == "".join(word[0] for word in others)


def _have_other_codes(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each title has a short word that the other lacks, such as the names of two classes."""
    codes, other_codes = ({word for word in title if len(word) < 4 and word.isascii()} for title in (words, others))
    return bool(codes - other_codes) and bool(other_codes - codes)


def _compare_words(words: Sequence[str], others: Sequence[str], genres: Mapping[str, str]) -> float:
    """Return the share of letters in words that both titles contain, allowing for typing errors."""
    found, other_found = _match(words, others, genres), _match(others, words, genres)
    total, other_total = (sum(_weigh(word, genres) for word in title) for title in (words, others))
    share, other_share = found / total, other_found / other_total
    # The longer title contains all words of the shorter one.
    if max(share, other_share) > 0.95 and min(total, other_total) >= 8:
        return max(0.8, (found + other_found) / (total + other_total))
    # Each title has words that the other lacks: “beginners” is not “advanced”.
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
    # In languages without spaces, words are short.
    is_long = len(shorter) >= (5 if shorter.isascii() else 2)
    if is_long and (longer.startswith(shorter) or longer.endswith(shorter)):
        return _COMPOUND_RATIO
    if len(shorter) < 4 or len(longer) - len(shorter) > 3:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return ratio if ratio >= _MIN_WORD_RATIO else 0.0


def _find_stem(word: str) -> str:
    """Return an English word without the ending of a plural, gerund or agent."""
    return re.sub(r"(?:ing|ers?|s)$", "", re.sub(r"ies$", "y", word))


def _compare_letters(words: Sequence[str], others: Sequence[str]) -> float:
    """Compare titles without spaces, because one title may join words that the other separates."""
    if len(words) == len(others):
        return 0.0
    first, second = "".join(words), "".join(others)
    ratio = SequenceMatcher(None, first, second, autojunk=False).ratio()
    return ratio if ratio >= 0.92 else 0.0


SAME_SCORE: Final = 0.85  # an import links events with at least this score
SIMILAR_SCORE: Final = 0.6  # a person decides about events with at least this score
WINDOW: Final = timedelta(hours=26)  # events whose starts are farther apart are never the same

_DIFFERENT: Final = 0.55  # highest score for events that differ in an essential point
_ALMOST_EQUAL: Final = 0.9
_CERTAIN: Final = 0.88  # lowest score for events that are certainly the same
_QUESTIONABLE: Final = 0.84  # highest score for events that need a person's decision
_UNKNOWN: Final = 0.45  # score for an unknown place or organizer
_SAME_PLACE_METRES: Final = 150
_FAR_METRES: Final = 1000
_DISTINCTIVE_LENGTH: Final = 18  # number of letters in a title that events at different places are unlikely to share
_SAME_PLACE: Final = 0.8  # minimum similarity for two names of the same place
_NEAR_START: Final = 0.75  # score for starts about half an hour apart
_SAME_DAY: Final = 0.7  # score for a timed and an all-day event on the same day


@dataclass(frozen=True, slots=True)
class EventFacts:
    """The known facts about an event. Empty values are unknown."""

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
    """Return how likely two events are the same, from 0 to 1."""
    title = match_titles(first.title, second.title, _list_context(first) | _list_context(second))
    place, start = compare_places(first, second), compare_starts(first, second)
    organizer = _compare_organizers(first, second)
    score = 0.5 * title.similarity + 0.2 * _or_unknown(place) + 0.2 * start + 0.1 * _or_unknown(organizer)
    if start < 0.3:
        return min(score, _DIFFERENT)
    # A page can describe several events. If the titles differ, a person decides.
    if _is_same_page(first.website, second.website) and title.similarity >= 0.2:
        return max(score, 0.9 if title.similarity >= 0.5 else 0.65)
    is_here = place is not None and place >= _SAME_PLACE and start >= _NEAR_START
    if title.is_part and title.is_same_audience and is_here:
        return max(score, _CERTAIN)
    if title.similarity < 0.5 or _excludes(place, first, second):
        return min(score, _DIFFERENT)
    # Link only almost equal titles automatically, because linking different events hides one of them.
    if title.similarity < _ALMOST_EQUAL or not title.is_same_audience:
        return min(score, _QUESTIONABLE)
    is_known = organizer is not None and organizer >= _ALMOST_EQUAL
    is_distinctive = _is_distinctive(first.title) and _is_distinctive(second.title)
    is_certain = start >= _SAME_DAY and (is_known or is_distinctive)
    return max(score, _CERTAIN) if is_certain else score


def _or_unknown(value: float | None) -> float:
    return _UNKNOWN if value is None else value


def _excludes(place: float | None, first: EventFacts, second: EventFacts) -> bool:
    """Return whether the places rule out a match. If the titles are distinctive, different names alone do not."""
    if place is None or place >= 0.4:
        return False
    distance = _find_distance(first, second)
    is_far = distance is not None and distance > _FAR_METRES
    return is_far or not (_is_distinctive(first.title) and _is_distinctive(second.title))


def _is_distinctive(title: str) -> bool:
    words = split_words(title)[0]
    return len(words) > 1 and len("".join(words)) >= _DISTINCTIVE_LENGTH


def _list_context(facts: EventFacts) -> frozenset[str]:
    names = (*facts.venue_names, *facts.organizer_names)
    return frozenset(word for name in names for word in split_words(name)[0])


# Starts, places and organizers ------------------------------------------------------------------


def compare_starts(first: EventFacts, second: EventFacts) -> float:
    """Compare local starts; if either event is all-day, only days. Allow 90 minutes between doors and start."""
    if first.all_day or second.all_day:
        is_same_day = first.start_local.date() == second.start_local.date()
        return (1.0 if first.all_day == second.all_day else 0.7) if is_same_day else 0.0
    minutes = abs((first.start_local - second.start_local).total_seconds()) / 60
    return 1.0 - minutes / 90 * 0.7 if minutes <= 90 else 0.0


def compare_places(first: EventFacts, second: EventFacts) -> float | None:
    """Compare places by ID, distance and name. Return None if one of the places is unknown."""
    if set(first.venue_ids) & set(second.venue_ids):
        return 1.0
    distance = _find_distance(first, second)
    if distance is not None and distance <= _SAME_PLACE_METRES:
        return 1.0
    names, others = first.venue_names, second.venue_names
    if not names or not others:
        return None if distance is None else 0.0
    similarity = max(compare_names(name, other) for name in names for other in others)
    if distance is not None and distance > _FAR_METRES:
        return min(similarity, 0.2)
    is_named = names_place(first.title, second.title, others) or names_place(second.title, first.title, names)
    return max(similarity, _SAME_PLACE) if is_named else similarity


def _compare_organizers(first: EventFacts, second: EventFacts) -> float | None:
    if set(first.organizer_ids) & set(second.organizer_ids):
        return 1.0
    if not first.organizer_names or not second.organizer_names:
        return None
    return max(compare_names(name, other) for name in first.organizer_names for other in second.organizer_names)


def _find_distance(first: EventFacts, second: EventFacts) -> float | None:
    """Return the shortest distance between the places in meters, or None if the location of one is unknown."""
    pairs = [(place, other) for place in first.coordinates for other in second.coordinates]
    return min((_measure(place, other) for place, other in pairs), default=None)


def _measure(place: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance between two points in meters, accurate enough within a city."""
    north = (other[0] - place[0]) * 111_320
    east = (other[1] - place[1]) * 111_320 * math.cos(math.radians(place[0]))
    return math.hypot(north, east)


def _is_same_page(first: str, second: str) -> bool:
    """Return whether two events have the same web page. Home pages do not count."""
    pages = [re.sub(r"^https?://(www\.)?", "", url.strip().lower()).rstrip("/") for url in (first, second)]
    return pages[0] == pages[1] and "/" in pages[0]
