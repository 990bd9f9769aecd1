"""Differences between two texts by words, bounded in time for long texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal

# The matcher takes quadratic time. Longer texts are compared by lines, and if these are too many, as a whole.
MAX_TOKENS: Final = 1000
# An unchanged passage between two changes is shortened to this number of characters on each side.
CONTEXT: Final = 120
ELLIPSIS: Final = " … "

Change = Literal["same", "removed", "added"]
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_LINES: Final = re.compile(r"[^\n]*\n+|[^\n]+")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the text: in both versions, only in the old one, or only in the new one."""

    change: Change
    text: str


def diff_words(before: str, after: str) -> list[Segment]:
    """Return the parts of both texts in order; the words of each text are complete."""
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
    """Return the segments with long unchanged passages shortened."""
    last = len(segments) - 1
    return [
        Segment("same", _shorten(segment.text, context, is_first=number == 0, is_last=number == last))
        if segment.change == "same"
        else segment
        for number, segment in enumerate(segments)
    ]


def _count_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of equal tokens at the beginning."""
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
    """Return the segments without empty ones, and with changes that only a space separates as one."""
    bridged: list[Segment] = []
    for number, segment in enumerate(segments):
        is_gap = segment.change == "same" and segment.text.isspace() and 0 < number < len(segments) - 1
        if is_gap and "\n" not in segment.text:
            bridged += [Segment("removed", segment.text), Segment("added", segment.text)]
        elif segment.text:
            bridged.append(segment)
    return _sort_changes(bridged)


def _sort_changes(segments: list[Segment]) -> list[Segment]:
    """Return one removed and one added segment for each run of changes."""
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
