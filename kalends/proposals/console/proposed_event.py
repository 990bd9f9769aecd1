"""Proposed parameters as values of the event form, and the fields that they would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import load_linked, resolve_names
from kalends.calendar.kinds.events import EVENTS, build_time_columns
from kalends.calendar.kinds.kind import WriteContext
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.event_links import find_names
from kalends.calendar.operations.merging import GROUP_OF, GROUPS, group_values
from kalends.console.console_request import ConsoleRequest
from kalends.console.event_values import EventValues, make_new_values, make_values, overlay, split_times, to_params
from kalends.console.field_texts import LABELS, make_locale, value_text
from kalends.console.history_views import FieldChange, describe_change
from kalends.core.errors import ApiError
from kalends.core.params import read_params
from kalends.proposals.rules import ACCOUNT_PARAMS
from kalends.store import Row

SHOWN_FIELDS: Final = {GROUP_OF.get(name, name) for name in ACCOUNT_PARAMS}


@dataclass(frozen=True, slots=True)
class ProposedEvent:
    """An event as it is and as it would be. `row` is None for a new event, or one that the user may not read."""

    row: Row | None
    stored: EventValues
    values: EventValues
    parsed: Mapping[str, Any]  # the proposed parameters; empty: the event itself waits


async def load_proposed(context: OperationContext, event_id: int | None, sent: Mapping[str, Any]) -> ProposedEvent:
    row = await EVENTS.fetch(context.transaction, event_id) if event_id is not None else None
    row = row if row is not None and _may_read(context, row) else None
    site = context.transaction.site
    stored = make_values(row, await load_linked(context, row), site) if row else make_new_values(site)
    values = replace(stored, plain=dict(stored.plain))
    parsed = read_params(EVENTS.fields, dict(sent), update=event_id is not None)
    overlay(values, {name: _to_field(value) for name, value in parsed.items() if name not in GROUPS["dates"]})
    if set(GROUPS["dates"]) & parsed.keys() and (row is not None or {"start_date", "end_date"} <= parsed.keys()):
        try:
            columns = build_time_columns(WriteContext(context.transaction, parsed, row, 0, 0, may_publish=False))
            times = {**split_times(columns), "timezone": columns["timezone"]}
        except ApiError:  # The event was moved, so it would end before its start.
            overlay(values, {name: _to_field(sent[name]) for name in GROUPS["dates"] if name in sent})
            times = {}
        for name, value in times.items():
            setattr(values, name, value)
    if "tags" in parsed:
        values.tags = ", ".join(await event_queries.find_tag_names(context.transaction, parsed["tags"]))
    for name in ("venue", "organizer"):
        new = [entry for entry in parsed.get(name, ()) if isinstance(entry, dict)]
        setattr(values, f"new_{name}", {key: str(value) for key, value in new[0].items()} if new else {})
    await resolve_names(context, values)
    return ProposedEvent(row, stored, values, parsed)


def _may_read(context: OperationContext, row: Row) -> bool:
    is_open = not permissions.locked_ids(context, [row]) or permissions.may_edit(context.actor, row)
    return is_open and permissions.may_read(context.actor, row)


def _to_field(value: Any) -> Any:
    """Return a parsed parameter as a form sends it."""
    if isinstance(value, list):
        return [entry if isinstance(entry, dict) else str(entry) for entry in value]  # pyright: ignore
    return "true" if value is True else "" if value in (None, False) else str(value)


@dataclass(frozen=True, slots=True)
class ProposedField:
    name: str
    change: FieldChange
    is_guessed: bool


async def describe_fields(
    console_request: ConsoleRequest, context: OperationContext, proposed: ProposedEvent, guessed: Sequence[str]
) -> list[ProposedField]:
    """Return what a change changes, or what a new event has."""
    links = {name: proposed.parsed[name] for name in ("venue", "organizer") if name in proposed.parsed}
    params, stored = {**to_params(proposed.values), **links}, to_params(proposed.stored)
    names = await find_names(context.transaction, context.actor, EVENTS, [params, stored])
    is_change = proposed.row is not None and bool(proposed.parsed)
    before = group_values(stored if is_change else to_params(make_new_values(context.transaction.site)))
    after, locale = group_values(params), make_locale(console_request)
    sent = {GROUP_OF.get(name, name) for name in proposed.parsed} or SHOWN_FIELDS
    fields: list[ProposedField] = []
    for name in LABELS:
        if name not in after or name not in sent or (after[name] or None) == (before.get(name) or None):
            continue
        change = describe_change(EVENTS, name, {"before": before.get(name), "after": after[name]}, names, locale)
        if not is_change:
            change = FieldChange(change.label, [], after=value_text(EVENTS, name, after[name], names, locale))
        fields.append(ProposedField(name, change, any(GROUP_OF.get(entry, entry) == name for entry in guessed)))
    return fields
