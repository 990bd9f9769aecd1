"""Suggestions for values that are not allowed: "Did you mean …?"."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

MAX_DISTANCE: Final = 2
# Longer values are no typing errors, and comparing them would take time.
MAX_LENGTH: Final = 64
NO_SYNONYMS: Final[Mapping[str, str]] = MappingProxyType({})


def suggest(value: str, allowed: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> str | None:
    """Return the allowed value that was probably meant, or None.

    That is the one for which `value` is a known synonym, else the nearest one, by at most two edits: a character
    inserted, removed, replaced or swapped with its neighbour. Case does not matter. Of a short value at least half
    must be right, and of several equally near values the first one is returned. `synonyms` has lower-case keys; its
    entries for values that are not allowed have no effect.
    """
    if len(value) > MAX_LENGTH:
        return None
    wanted, choices = value.lower(), tuple(allowed)
    if synonyms.get(wanted) in choices:
        return synonyms[wanted]
    characters = frozenset(wanted)
    best, limit = None, min(MAX_DISTANCE, len(wanted) // 2)
    for candidate in choices:
        # This excludes nearly all candidates: each edit replaces or removes at most one character.
        if abs(len(candidate) - len(wanted)) > limit or len(characters.difference(candidate.lower())) > limit:
            continue
        distance = edit_distance(wanted, candidate.lower(), limit)
        if distance is not None:
            best, limit = candidate, distance - 1
        if limit < 0:
            break
    return best


def edit_distance(first: str, second: str, limit: int) -> int | None:
    """Return the number of edits between two texts, or None if it exceeds the limit.

    Only the cells within `limit` of the diagonal are computed, so the time grows with the shorter text alone.
    """
    if abs(len(first) - len(second)) > limit:
        return None
    beyond = limit + 1
    width = len(second) + 1
    before_previous: list[int] = []
    previous = [min(column, beyond) for column in range(width)]
    for row, character in enumerate(first, 1):
        current = [beyond] * width
        if row <= limit:
            current[0] = row
        for column in range(max(1, row - limit), min(width, row + limit + 1)):
            other = second[column - 1]
            edits = min(
                previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (0 if character == other else 1)
            )
            if row > 1 and column > 1 and character == second[column - 2] and first[row - 2] == other:
                edits = min(edits, before_previous[column - 2] + 1)
            current[column] = min(edits, beyond)
        if min(current) > limit:
            return None
        before_previous, previous = previous, current
    return previous[-1] if previous[-1] <= limit else None
