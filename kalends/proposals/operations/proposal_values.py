"""The parameters of proposals: what their origin may send, whether they are valid, and when the event would end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.events import EVENTS, build_time_columns
from kalends.calendar.kinds.kind import WriteContext
from kalends.calendar.operations.event_links import find_term, read_linked
from kalends.calendar.storage import record_tables
from kalends.core import errors
from kalends.core.date_forms import RelativeDate
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.proposals.rules import MAX_BYTES, OPEN, Origin, find_refused
from kalends.proposals.storage import decode_values, find_event_end
from kalends.store import Row
from kalends.store.database import Transaction

DATES: Final = ("start_date", "end_date", "timezone", "all_day")


@dataclass(frozen=True, slots=True)
class CheckedValues:
    """Parameters to store, and when the event would take place with them."""

    values: dict[str, Any]
    starts_at: datetime
    ends_at: datetime


async def check_values(
    context: OperationContext, origin: Origin, values: Mapping[str, Any], event: Row | None
) -> CheckedValues:
    """Check the parameters for a new event, or for a change of `event`. Terms become IDs: names may change."""
    refuse(find_refused(origin, values))
    if len(orjson.dumps(values)) > MAX_BYTES:
        raise errors.too_large(MAX_BYTES)
    if event is not None and not values:
        raise errors.invalid("values", "must contain at least one parameter.")
    parsed = read_params(EVENTS.fields, values, update=event is not None)
    for name in ("start_date", "end_date"):
        if isinstance(parsed.get(name), RelativeDate):
            raise errors.invalid(name, "must not be relative to today, because a proposal may wait for days.")
    found = await _find_linked(context, parsed)
    await _check_image(context.transaction, parsed)
    starts_at, ends_at = _compute_span(context.transaction, parsed, event)
    if ends_at <= context.transaction.now:
        name = "record" if event is not None and not set(DATES) & parsed.keys() else "end_date"
        raise errors.invalid(name, "is over: only events that have not ended can be proposed.")
    return CheckedValues({**values, **found}, starts_at, ends_at)


def refuse(names: Sequence[str]) -> None:
    """Raise 400 if there are any names of parameters that a proposal may not have."""
    if names:
        problem = Message("is not a parameter of proposals.")
        raise errors.invalid_params({name: errors.for_param(name, problem) for name in names})


async def _find_linked(context: OperationContext, parsed: Mapping[str, Any]) -> dict[str, list[int]]:
    """Check links to other records; return the IDs of terms, which must exist."""
    terms: dict[str, list[int]] = {}
    for link in EVENTS.links:
        for entry in parsed.get(link.param, ()):
            if BY_NAME[link.kind].is_post:
                await read_linked(link, BY_NAME[link.kind], context, entry)
                continue
            term_id, name = await find_term(link, BY_NAME[link.kind], context, entry)
            if term_id is None:
                raise errors.invalid(link.param, "{name} does not exist.", name=name)
            terms.setdefault(link.param, []).append(term_id)
    return {name: list(dict.fromkeys(ids)) for name, ids in terms.items()}


async def _check_image(tx: Transaction, parsed: Mapping[str, Any]) -> None:
    image = parsed.get("image")
    if isinstance(image, str):
        raise errors.invalid("image", "must be an image ID.")
    if image is not None and not await record_tables.find_existing_ids(tx, "media", [image]):
        raise errors.invalid("image", "there is no image {image} in the media library.", image=image)


def _compute_span(tx: Transaction, parsed: Mapping[str, Any], event: Row | None) -> tuple[datetime, datetime]:
    columns = build_time_columns(WriteContext(tx, parsed, event, 0, 0, may_publish=False))
    return columns["start_utc"], columns["end_utc"]  # type: ignore[return-value]


async def find_end(tx: Transaction, row: Row) -> datetime:
    """Return when the event of a proposal ends, or a time in the past if the event was deleted.

    If an open change moves the event, the later of both ends counts.
    """
    event, values = None, decode_values(row)
    if row["record_id"] is not None:
        ends_at: datetime = await find_event_end(tx, row["record_id"]) or row["created_at"]
        event = await EVENTS.fetch(tx, row["record_id"])
        is_moved = row["state"] in OPEN and bool(set(DATES) & values.keys())
        if event is None or event["status"] == "trash" or not is_moved:
            return ends_at
    try:
        proposed = _compute_span(tx, read_params(EVENTS.fields, values, update=event is not None), event)[1]
    except ApiError:  # The event has moved, so that the proposed end is before its start, for example.
        proposed = row["starts_at"]
    return proposed if event is None else max(proposed, event["end_utc"])
