"""Find word differences between two texts, in bounded time, and suggest corrections for misspelled values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from types import MappingProxyType
from typing import Final, Literal

# The matcher takes quadratic time. Longer texts are compared line by line; if there are too many lines, all text
# counts as changed.
MAX_TOKENS: Final = 1000
# Characters to keep at each end of a long unchanged passage.
CONTEXT: Final = 120
ELLIPSIS: Final = " … "

Change = Literal["same", "removed", "added"]
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_LINES: Final = re.compile(r"[^\n]*\n+|[^\n]+")


@dataclass(frozen=True, slots=True)
class Segment:
    """A passage that is in both versions, only in the old version, or only in the new version."""

    change: Change
    text: str


def diff_words(before: str, after: str) -> list[Segment]:
    """Return both texts as ordered segments of whole words."""
    for pattern in (_WORDS, _LINES):
        old, new = pattern.findall(before), pattern.findall(after)
        start, end = _count_common(old, new), 0
        end = _count_common(old[start:][::-1], new[start:][::-1])
        middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
        if max(len(middle_old), len(middle_new)) <= MAX_TOKENS:
            head, tail = "".join(old[:start]), "".join(old[len(old) - end :])
            return _join([Segment("same", head), *_match(middle_old, middle_new), Segment("same", tail)])
    return _join([Segment("removed", before), Segment("added", after)])


def shorten(segments: Sequence[Segment], context: int = CONTEXT) -> list[Segment]:
    last = len(segments) - 1
    return [
        Segment("same", _shorten(segment.text, context, is_first=number == 0, is_last=number == last))
        if segment.change == "same"
        else segment
        for number, segment in enumerate(segments)
    ]


def _count_common(first: Sequence[str], second: Sequence[str]) -> int:
    for number, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return number
    return min(len(first), len(second))


def _match(old: list[str], new: list[str]) -> list[Segment]:
    segments: list[Segment] = []
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            segments.append(Segment("same", "".join(old[old_start:old_end])))
            continue
        segments.append(Segment("removed", "".join(old[old_start:old_end])))
        segments.append(Segment("added", "".join(new[new_start:new_end])))
    return segments


def _join(segments: list[Segment]) -> list[Segment]:
    """Remove empty segments, and join changes that are separated only by white space."""
    bridged: list[Segment] = []
    for number, segment in enumerate(segments):
        is_gap = segment.change == "same" and segment.text.isspace() and 0 < number < len(segments) - 1
        if is_gap and "\n" not in segment.text:
            bridged += [Segment("removed", segment.text), Segment("added", segment.text)]
        elif segment.text:
            bridged.append(segment)
    return _sort_changes(bridged)


def _sort_changes(segments: list[Segment]) -> list[Segment]:
    """Join each run of changes into one removed and one added segment."""
    result: list[Segment] = []
    for is_same, run in groupby(segments, key=lambda segment: segment.change == "same"):
        parts = list(run)
        changes: tuple[Change, ...] = ("same",) if is_same else ("removed", "added")
        joined = [Segment(change, _join_texts(parts, change)) for change in changes]
        result += [segment for segment in joined if segment.text]
    return result


def _join_texts(parts: list[Segment], change: Change) -> str:
    return "".join(part.text for part in parts if part.change == change)


def _shorten(text: str, context: int, *, is_first: bool, is_last: bool) -> str:
    if len(text) <= 2 * context + len(ELLIPSIS):
        return text
    head = "" if is_first else text[:context].rpartition(" ")[0] or text[:context]
    tail = "" if is_last else text[-context:].partition(" ")[2] or text[-context:]
    return f"{head}{ELLIPSIS}{tail}"


MAX_DISTANCE: Final = 2
# Longer values are not typos and would be slow to compare.
MAX_LENGTH: Final = 64
NO_SYNONYMS: Final[Mapping[str, str]] = MappingProxyType({})


def suggest(value: str, allowed: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> str | None:
    """Return the allowed value that was probably meant, or None.

    The result is the value of a known synonym, or else the nearest allowed value within two edits. An edit inserts,
    removes or replaces a character, or swaps it with its neighbor. Case does not matter. At least half of a short
    value must be right. The first of several equally near values wins. The keys of `synonyms` are in lower case;
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
        # This rules out nearly all candidates: each edit replaces or removes at most one character.
        if abs(len(candidate) - len(wanted)) > limit or len(characters.difference(candidate.lower())) > limit:
            continue
        distance = edit_distance(wanted, candidate.lower(), limit)
        if distance is not None:
            best, limit = candidate, distance - 1
        if limit < 0:
            break
    return best


def edit_distance(first: str, second: str, limit: int) -> int | None:
    """Return the number of edits between two texts, or None if it exceeds the limit."""
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
        for column in range(max(1, row - limit), min(width, row + limit + 1)):  # other cells exceed the limit
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
