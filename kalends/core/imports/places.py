"""Venues and organizers that events link to: their identity in a source, and stored records with a similar name."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text
from kalends.core.imports.records import ImportedRecord

# The similarity of letters at which two names are offered as the same.
_NEAR: Final = 0.88
# Shorter names, such as “Room”, and single words, such as “Gymnasium”, are numbered; longer ones name streets.
_MIN_LETTERS: Final = 8
_PREFIX: Final = 4  # Only names that share the first letters of a word are compared.
_MAX_COMPARED: Final = 200


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A stored venue or organizer; an organizer has neither address nor city."""

    record_id: int
    name: str
    status: str
    address: str = ""
    city: str = ""


def make_linked(kind: str, text: str, values: Mapping[str, Any], line: int | None) -> ImportedRecord:
    """Return a linked record whose identity is its text, regardless of case and spaces."""
    folded = " ".join(text.casefold().strip(" ,").split())
    identity = folded if len(folded) <= 300 else f"{folded[:200]} {hashlib.sha256(folded.encode()).hexdigest()}"
    return ImportedRecord(kind, identity, values, line=line, is_linked=True)


def fold_name(name: str) -> str:
    """Return the letters and digits of a name: case, accents, spaces and punctuation do not matter."""
    return "".join(_split(name))


class PlaceIndex:
    """Stored venues or organizers by name. Published ones come first."""

    def __init__(self, places: Iterable[StoredPlace]) -> None:
        self._by_name: dict[str, list[StoredPlace]] = {}
        self._by_prefix: dict[str, list[StoredPlace]] = {}
        for place in sorted(places, key=lambda place: (place.status != "publish", place.record_id)):
            self._by_name.setdefault(fold_name(place.name), []).append(place)
            for prefix in {word[:_PREFIX] for word in _split(place.name)}:
                self._by_prefix.setdefault(prefix, []).append(place)

    def find(self, values: Mapping[str, Any], different: Iterable[int] = ()) -> tuple[StoredPlace, bool] | None:
        """Return the stored record that has the name of an imported one, and whether it is certainly the same.

        `different` are the records that a person has declared different.
        """
        name = str(values.get("venue") or values.get("organizer") or "")
        excluded = set(different)
        same = [place for place in self._by_name.get(fold_name(name), ()) if place.record_id not in excluded]
        fitting = [place for place in same if _may_be_at(place, values)]
        published = [place for place in fitting if place.status == "publish"] or fitting
        if fold_name(name) and len(published) == 1 and published[0].status != "private":
            return published[0], True
        near = [*fitting, *same] or [
            place for place in self._list_near(name, values) if place.record_id not in excluded
        ]
        return (near[0], False) if near else None

    def _list_near(self, name: str, values: Mapping[str, Any]) -> list[StoredPlace]:
        prefixes = {word[:_PREFIX] for word in _split(name)}
        found = {place.record_id: place for prefix in prefixes for place in self._by_prefix.get(prefix, ())}
        rated = [
            (_compare(name, place.name), place)
            for place in list(found.values())[:_MAX_COMPARED]
            if _is_same(place.city, str(values.get("city") or ""))
        ]
        near = sorted((entry for entry in rated if entry[0] >= _NEAR), key=lambda entry: -entry[0])
        return [place for _, place in near]


def _split(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold(to_plain_text(text)))


def _compare(name: str, other: str) -> float:
    """Return the similarity of two names from 0 to 1. Those that differ in a house number are near."""
    words, others = ([word for word in _split(text) if not word[0].isdecimal()] for text in (name, other))
    numbers, other_numbers = (re.findall(r"\d+", text) for text in (name, other))
    letters, other_letters = "".join(words), "".join(others)
    if numbers != other_numbers:
        is_street = len(letters) >= _MIN_LETTERS and (len(words) > 1 or not numbers or not other_numbers)
        return 1.0 if letters == other_letters and is_street else 0.0
    return SequenceMatcher(None, letters, other_letters).ratio()


def _may_be_at(place: StoredPlace, values: Mapping[str, Any]) -> bool:
    """Return whether a stored place may have the address of an imported one; what is unknown fits."""
    address, city = str(values.get("address") or ""), str(values.get("city") or "")
    return _is_same(place.city, city) and _is_part_of_other(_split(place.address), _split(address))


def _is_same(text: str, other: str) -> bool:
    return not text or not other or fold_name(text) == fold_name(other)


def _is_part_of_other(words: list[str], others: list[str]) -> bool:
    """Return whether one address begins with or contains the other one, which may lack the town."""
    short, long = sorted((words, others), key=len)
    return any(long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1))
