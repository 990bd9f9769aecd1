"""Two series of one and one of two, in plain Python: what `series_model` is for one series."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.series.series_model import SeriesModel
from tests.series.series_model_values import FAR, Occurrence, Refused, Segment


def split(series: SeriesModel, slot: datetime, new_id: int) -> tuple[SeriesModel, SeriesModel]:
    """Return the series before a slot and the one from it on."""
    series = series.copy()
    halves = [half for segment in series.segments for half in segment.cut(slot)]
    head = replace(
        series,
        segments=[half for half in halves if half.first < slot] or series.make_single(before=slot),
        changes=[change for change in series.changes if change[0] < slot],
        added={entry for entry in series.added if entry < slot},
        removed={entry for entry in series.removed if entry < slot},
        events={event.id: event for event in series.events.values() if event.slot < slot},
    )
    tail = replace(
        series,
        id=new_id,
        template=series.content_at(slot),
        segments=[half for half in halves if half.first >= slot] or series.make_single(since=slot),
        changes=[change for change in series.changes if change[0] > slot],
        added={entry for entry in series.added if entry >= slot},
        removed={entry for entry in series.removed if entry >= slot},
        events={event.id: event for event in series.events.values() if event.slot >= slot},
    )
    if series.created_until is not None and head.segments:
        head.create_until(series.created_until)
    return head, tail


def merge(series: SeriesModel, other: SeriesModel) -> SeriesModel:
    """Return a series that has taken over another one, or raise Refused."""
    series, other = series.copy(), other.copy()
    keeps_rule = _is_before(series, other) or _is_before(other, series)
    if keeps_rule:
        joint = _join(series, other) if _is_before(series, other) else _join(other, series)
    elif other.created_until is not None:
        raise Refused(400, "rest_invalid_param")
    else:
        joint = replace(series, added=series.added | {event.slot for event in other.active()})
    _check_slots(series, other, joint)
    for event in other.active():
        if not keeps_rule:
            joint.find_own_fields(event)
    joint.events = _join_events(series, other)
    joint.id, joint.created_until = series.id, _find_created_until(series, other)
    return joint


def _first(series: SeriesModel) -> datetime:
    return min([series.segments[0].first, *series.added])


def _is_before(first: SeriesModel, second: SeriesModel) -> bool:
    begin = _first(second)
    slots = [slot for segment in first.segments for slot in segment.slots()]
    return max([*slots, *first.added], default=datetime.min) < begin


def _join(first: SeriesModel, second: SeriesModel) -> SeriesModel:
    begin = _first(second)
    changes = [change for change in first.changes if change[0] < begin]
    return replace(
        first,
        segments=_join_segments(first.segments, second.segments, first.added | second.added),
        changes=[*changes, (begin, second.content_at(begin)), *[c for c in second.changes if c[0] > begin]],
        added=first.added | second.added,
        removed={slot for slot in first.removed if slot < begin} | {slot for slot in second.removed if slot >= begin},
    )


def _join_segments(first: list[Segment], second: list[Segment], added: set[datetime]) -> list[Segment]:
    """Put two halves of a segment together again, because a new rule replaces one segment."""
    head, tail = first[-1], second[0]
    if (head.length, head.zone) != (tail.length, tail.zone):
        return [*first, *second]
    if len(first) == 1 and head.is_single and head.first in added:
        return second
    if tail.is_single and tail.first in added:
        return [*first, *second[1:]]
    joint = replace(head, before=tail.before)
    is_same = replace(joint, since=tail.since) == tail
    if is_same and [*joint.slots()] == [*head.slots(), *tail.slots()]:
        return [*first[:-1], joint, *second[1:]]
    return [*first, *second]


def _check_slots(series: SeriesModel, other: SeriesModel, joint: SeriesModel) -> None:
    taken = {event.slot for event in series.active()}
    if any(event.slot in taken | joint.removed for event in other.active()):
        raise Refused(409, "series_slot_taken")
    joint.rule_slots(FAR.replace(tzinfo=UTC))


def _join_events(series: SeriesModel, other: SeriesModel) -> dict[int, Occurrence]:
    """Return the events of both. An event in the trash leaves its series if another one has its slot."""
    active = {event.slot for event in other.active()}
    own = {event.id: event for event in series.events.values() if not event.trashed or event.slot not in active}
    taken = {event.slot for event in own.values()}
    return own | {event.id: event for event in other.events.values() if event.slot not in taken}


def _find_created_until(series: SeriesModel, other: SeriesModel) -> datetime | None:
    return min(filter(None, [series.created_until, other.created_until]), default=None)
