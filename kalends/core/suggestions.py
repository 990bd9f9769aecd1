"""Suggestions for misspelled values: "Did you mean …?"."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

MAX_DISTANCE = 2
_NO_SYNONYMS: Mapping[str, str] = MappingProxyType({})


def suggest(value: str, allowed: Iterable[str], synonyms: Mapping[str, str] = _NO_SYNONYMS) -> str | None:
    """Return the allowed value that was probably meant: a known synonym, or the nearest by edit distance."""
    folded = value.casefold()
    if folded in synonyms:
        return synonyms[folded]
    # A short value is similar to too many others.
    limit = min(MAX_DISTANCE, len(value) // 2)
    distances = [(_measure_distance(folded, entry.casefold()), entry) for entry in allowed]
    distance, nearest = min(distances, default=(MAX_DISTANCE + 1, ""))
    return nearest if distance <= limit else None


def _measure_distance(one: str, other: str) -> int:
    """Return the number of insertions, deletions and substitutions that turn one text into the other."""
    if abs(len(one) - len(other)) > MAX_DISTANCE:
        return MAX_DISTANCE + 1
    previous = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        current = [row]
        for column, right in enumerate(other, 1):
            current.append(min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (left != right)))
        previous = current
    return previous[-1]
