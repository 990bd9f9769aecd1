"""Venues and organizers that events link to: their identities in a source, and stored records with similar names."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from kalends.core.html_text import to_plain_text
from kalends.core.sanitize import fold
from kalends.imports.rules.import_records import ImportedRecord

# Two names must be at least this similar to be proposed as the same place.
_NEAR: Final = 0.88
# Different numbers mean different places if a name has fewer letters than this (“Room 2”) or only one word
# (“Gymnasium 2”). In other names, numbers are house numbers.
_MIN_LETTERS: Final = 8
_PREFIX: Final = 4  # names are compared only if they share the first letters of a word
_MAX_COMPARED: Final = 200


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A stored venue or organizer. An organizer has neither an address nor a city."""

    record_id: int
    name: str
    status: str
    address: str = ""
    city: str = ""


def make_linked(kind: str, text: str, values: Mapping[str, Any], line: int | None) -> ImportedRecord:
    """Return a linked record identified by its text, ignoring case, extra spaces, and commas at the ends."""
    folded = " ".join(text.casefold().strip(" ,").split())
    identity = folded if len(folded) <= 300 else f"{folded[:200]} {hashlib.sha256(folded.encode()).hexdigest()}"
    return ImportedRecord(kind, identity, values, line=line, is_linked=True)


def fold_name(name: str) -> str:
    """Return the letters and digits of a name, ignoring case, accents, spaces and punctuation."""
    return "".join(_split(name))


class PlaceIndex:
    """Stored venues or organizers by name. Published records come first."""

    def __init__(self, places: Iterable[StoredPlace]) -> None:
        self._by_name: dict[str, list[StoredPlace]] = {}
        self._by_prefix: dict[str, list[StoredPlace]] = {}
        for place in sorted(places, key=lambda place: (place.status != "publish", place.record_id)):
            self._by_name.setdefault(fold_name(place.name), []).append(place)
            for prefix in {word[:_PREFIX] for word in _split(place.name)}:
                self._by_prefix.setdefault(prefix, []).append(place)

    def find(self, values: Mapping[str, Any], different: Iterable[int] = ()) -> tuple[StoredPlace, bool] | None:
        """Return the stored record that matches an imported one, and whether the match is certain.

        `different` contains the records that a person has declared different.
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
    """Return the similarity of two names, from 0 to 1. Names that differ only in a house number are similar."""
    words, others = ([word for word in _split(text) if not word[0].isdecimal()] for text in (name, other))
    numbers, other_numbers = (re.findall(r"\d+", text) for text in (name, other))
    letters, other_letters = "".join(words), "".join(others)
    if numbers != other_numbers:
        is_street = len(letters) >= _MIN_LETTERS and (len(words) > 1 or not numbers or not other_numbers)
        return 1.0 if letters == other_letters and is_street else 0.0
    return SequenceMatcher(None, letters, other_letters).ratio()


def _may_be_at(place: StoredPlace, values: Mapping[str, Any]) -> bool:
    """Return whether a stored place may have the address of an imported one. Unknown parts always match."""
    address, city = str(values.get("address") or ""), str(values.get("city") or "")
    return _is_same(place.city, city) and _is_part_of_other(_split(place.address), _split(address))


def _is_same(text: str, other: str) -> bool:
    return not text or not other or fold_name(text) == fold_name(other)


def _is_part_of_other(words: list[str], others: list[str]) -> bool:
    """Return whether the longer address contains the shorter one. The shorter one may lack the town."""
    short, long = sorted((words, others), key=len)
    return any(long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1))


# Places in table rows -----------------------------------------------------------------------------

VENUE_PREFIX: Final = "venue."
_KINDS: Final = {"venue": "venues", "organizer": "organizers"}
Links = Mapping[str, Sequence[str]]
Meant = dict[tuple[str, str], str]


class Places:
    """Collects the places in a table.

    If exactly one other place has the same name and more details, a place refers to it.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], ImportedRecord] = {}

    def add(self, fields: Mapping[str, Any], line: int) -> Links:
        """Add the places in a row. Return their identities by event parameter."""
        details = {
            name.removeprefix(VENUE_PREFIX): value
            for name, value in fields.items()
            if name.startswith(VENUE_PREFIX) and value
        }
        links: dict[str, list[str]] = {}
        names = fields.get("venue") or [details[name] for name in ("address", "city") if name in details][:1]
        if "venue" in fields or names:
            venues = [{"venue": name, **(details if number == 0 else {})} for number, name in enumerate(names)]
            links["venue"] = [self._add("venues", venue, line) for venue in venues]
        if "organizer" in fields:
            links["organizer"] = [self._add("organizers", {"organizer": n}, line) for n in fields["organizer"]]
        return links

    def _add(self, kind: str, values: Mapping[str, Any], line: int) -> str:
        record = make_linked(kind, describe(values), values, line)
        return self._found.setdefault((kind, record.identity), record).identity

    def list_records(self, meant: Meant) -> list[ImportedRecord]:
        return [record for key, record in self._found.items() if meant[key] == key[1]]

    def find_meant(self) -> Meant:
        """Map each place to the only place with the same name and more details.

        Map a place without such a match to itself.
        """
        groups: dict[tuple[str, str], list[ImportedRecord]] = {}
        for record in self._found.values():
            groups.setdefault((record.kind, fold_name(record.title)), []).append(record)
        meant: Meant = {}
        for records in groups.values():
            # Use the first of several identical places.
            distinct = {tuple(sorted(_fold_values(record).items())): record for record in reversed(records)}
            for record in records:
                own = _fold_values(record)
                more = [other for key, other in distinct.items() if own.items() < dict(key).items()]
                same = distinct[tuple(sorted(own.items()))]
                meant[record.kind, record.identity] = (more[0] if len(more) == 1 else same).identity
        return meant


def describe(values: Mapping[str, Any]) -> str:
    """Return the text that identifies a place: its name and all known details."""
    name = values.get("venue") or values.get("organizer")
    return ", ".join(map(str, [name, *(values[key] for key in sorted(values) if key not in _KINDS)]))


def _fold_values(record: ImportedRecord) -> dict[str, str]:
    return {name: fold_name(str(value)) for name, value in record.values.items()}


def resolve(links: Links, meant: Meant) -> Links:
    """Replace each identity in an event's links with the identity that it refers to."""
    return {
        name: list(dict.fromkeys(meant[_KINDS[name], identity] for identity in identities))
        for name, identities in links.items()
    }
