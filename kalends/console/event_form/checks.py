"""Warnings about an event: times that do not exist, duplicates, conflicts, and gaps for search engines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kalends.console.event_form.values import EventValues, to_params
from kalends.console.event_form.when import REPEATED, TimeProblem, find_problem
from kalends.core.errors import InvalidValue
from kalends.core.event_states import MOVED_ONLINE
from kalends.core.imports.similarity import EventFacts
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.times import DateTimeInput, event_span, make_absolute, read_datetime, read_zone
from kalends.core.zones import local_of
from kalends.operations import event_checks
from kalends.operations.context import OperationContext
from kalends.operations.event_checks import OtherEvent

# Facts that search engines show beside an event.
MISSING_LABELS: Final = {
    "image": N_("a picture"),
    "description": N_("a text"),
    "venue": N_("a venue or an online address"),
    "end_date": N_("an end"),
    "organizer": N_("an organizer"),
    "cost": N_("a price"),
}


@dataclass(frozen=True, slots=True)
class Checks:
    """The warnings about the values of a form."""

    times: dict[str, TimeProblem] = field(default_factory=dict[str, TimeProblem])
    duplicates: Sequence[OtherEvent] = ()
    conflicts: Sequence[OtherEvent] = ()
    missing: Sequence[str] = ()


async def check_event(context: OperationContext, values: EventValues, own_id: int | None) -> Checks:
    """Check the values of a form, as far as they are complete."""
    span = find_span(values, context.transaction.now, context.transaction.site.timezone)
    duplicates: list[OtherEvent] = []
    conflicts: list[OtherEvent] = []
    if span is not None:
        start_utc, end_utc = span
        zone = values.timezone or context.transaction.site.timezone
        facts = _make_facts(values, local_of(start_utc, zone))
        duplicates = await event_checks.find_duplicates(context, facts, start_utc, zone, own_id)
        if values.event_status != MOVED_ONLINE:
            ids = [pick.id for pick in values.venue if pick.id]
            conflicts = await event_checks.find_venue_conflicts(context, ids, start_utc, end_utc, own_id)
    return Checks(find_time_problems(values), duplicates, conflicts, find_missing(values))


def _make_facts(values: EventValues, start_local: datetime) -> EventFacts:
    return EventFacts(
        values.title,
        start_local,
        values.all_day,
        venue_ids=tuple(pick.id for pick in values.venue if pick.id),
        venue_names=tuple(pick.name for pick in values.venue if pick.name),
        organizer_ids=tuple(pick.id for pick in values.organizer if pick.id),
        organizer_names=tuple(pick.name for pick in values.organizer if pick.name),
        website=values.website,
    )


def find_time_problems(values: EventValues) -> dict[str, TimeProblem]:
    """Return the problems of start and end; one whose offset is chosen is none."""
    if values.all_day:
        return {}
    problems: dict[str, TimeProblem] = {}
    for side, day in (("start", values.start_day), ("end", values.end_day or values.start_day)):
        problem = find_problem(day, getattr(values, f"{side}_time"), values.timezone)
        if problem is not None:
            problems[f"{side}_date"] = problem
    return problems


def find_open_problems(values: EventValues) -> dict[str, Message]:
    """Return the explanations of times that the user has to correct or choose, and correct skipped ones."""
    messages: dict[str, Message] = {}
    for name, problem in find_time_problems(values).items():
        side = name.removesuffix("_date")
        if problem.kind == REPEATED:
            if getattr(values, f"{side}_offset") in problem.offsets:
                continue
            setattr(values, f"{side}_offset", problem.offsets[0])
        else:
            setattr(values, f"{side}_time", problem.becomes)
        messages[name] = problem.message
    return messages


def find_missing(values: EventValues) -> list[str]:
    """Return the names of the fields that search engines miss."""
    has_place = any(pick.name for pick in values.venue) or values.new_venue.get("venue") or values.online_url
    is_present = {
        "image": values.image not in ("", "0"),
        "description": values.description.strip(),
        "venue": has_place,
        "end_date": values.all_day or (values.end_time and values.end_time != values.start_time) or values.end_day,
        "organizer": any(pick.name for pick in values.organizer) or values.new_organizer.get("organizer"),
        "cost": values.cost.strip(),
    }
    return [name for name, present in is_present.items() if not present]


def find_span(values: EventValues, now: datetime, site_zone: str) -> tuple[datetime, datetime] | None:
    """Return start and end as instants, or None if they are incomplete or invalid."""
    params = to_params(values)
    try:
        zone = read_zone(values.timezone) if values.timezone else site_zone
        start, end = (_read_date(params.get(name), now, zone) for name in ("start_date", "end_date"))
        if start is None or end is None:
            return None
        span = event_span(start, end, zone, values.all_day)
    except InvalidValue:
        return None
    return span.start.utc, span.end.utc


def _read_date(text: str | None, now: datetime, zone: str) -> DateTimeInput | None:
    return make_absolute(read_datetime(text), now, zone) if text else None
