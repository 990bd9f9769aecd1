"""How likely two events are the same: title, place, start and organizer, each from 0 to 1.

The score is 0.5 title + 0.2 place + 0.2 start + 0.1 organizer. Some differences exclude that two events are the same,
however similar the rest is: another day, other numbers in the title, another place with a common title.

Events are certainly the same if the score says so and their titles are almost equal, or if one title only says more
than the other one about what happens at that place and time.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kalends.core.imports.title_similarity import compare_names, match_titles, names_place
from kalends.core.imports.title_words import split_words

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
    title = match_titles(first.title, second.title, _list_context(first) | _list_context(second))
    place, start = compare_places(first, second), compare_starts(first, second)
    organizer = _compare_organizers(first, second)
    score = 0.5 * title.similarity + 0.2 * _or_unknown(place) + 0.2 * start + 0.1 * _or_unknown(organizer)
    if start < 0.3:
        return min(score, _DIFFERENT)
    # A page may be about several events, so that a person decides if the titles differ.
    if _is_same_page(first.website, second.website) and title.similarity >= 0.2:
        return max(score, 0.9 if title.similarity >= 0.5 else 0.65)
    is_here = place is not None and place >= _SAME_PLACE and start >= _NEAR_START
    if title.is_part and title.is_same_audience and is_here:
        return max(score, _CERTAIN)
    if title.similarity < 0.5 or _excludes(place, first, second):
        return min(score, _DIFFERENT)
    # Only almost equal titles are linked without a question: a link of different events hides one of them.
    if title.similarity < _ALMOST_EQUAL or not title.is_same_audience:
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
    words = split_words(title)[0]
    return len(words) > 1 and len("".join(words)) >= _DISTINCTIVE_LENGTH


def _list_context(facts: EventFacts) -> frozenset[str]:
    names = (*facts.venue_names, *facts.organizer_names)
    return frozenset(word for name in names for word in split_words(name)[0])


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
