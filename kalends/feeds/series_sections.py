"""The sections of a series: dates with the same rule and the same content."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from uuid import UUID, uuid5

from kalends.core.record_types import Event
from kalends.core.recurrence import end_before, rest_from
from kalends.core.series import LAST_SLOT, Definition, Part


@dataclass(frozen=True, slots=True)
class Content:
    """What the dates from a slot on have in common, as an event. None: these dates are not public."""

    since: datetime
    event: Event | None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a series, or a stretch of it, with its content."""

    part: Part
    content: Event | None


def list_sections(definition: Definition, contents: Sequence[Content]) -> list[Section]:
    """Divide the parts of a series where the content changes. The first content applies from the beginning on."""
    bounds = [
        later.since
        for earlier, later in pairwise(contents)
        if _describe_optional(earlier.event) != _describe_optional(later.event)
    ]
    return [
        Section(piece, _find_content(contents, piece.start))
        for part in definition.parts
        for piece in _divide(part, bounds)
    ]


def describe_content(event: Event) -> tuple[object, ...]:
    """Return what iCalendar shows of an event besides its times and addresses."""
    return (
        *(event.title, event.description, event.excerpt, event.event_status, event.reason, event.online_url),
        *(event.venues, event.organizers, event.categories, event.image),
    )


def start_part_at(part: Part, slot: datetime) -> Part:
    """Return the rest of a part from one of its slots on."""
    if part.rule is None or slot == part.start:
        return part
    return replace(part, rule=rest_from(part.rule, part.start, slot), start=slot, end=slot + part.length)


def _divide(part: Part, bounds: Sequence[datetime]) -> Iterator[Part]:
    for bound in bounds:
        first = next(part.slots(LAST_SLOT, bound), None) if part.start < bound else None
        if first is None or part.rule is None:
            continue
        yield replace(part, rule=end_before(part.rule, part.start, first))
        uid = str(uuid5(UUID(part.uid), f"content {first.isoformat()}"))
        part = replace(start_part_at(part, first), uid=uid)
    yield part


def _find_content(contents: Sequence[Content], slot: datetime) -> Event | None:
    return next((content.event for content in reversed(contents) if content.since <= slot), contents[0].event)


def _describe_optional(event: Event | None) -> tuple[object, ...]:
    return describe_content(event) if event else ()
