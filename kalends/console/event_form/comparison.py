"""The differences between unsaved changes and the stored event."""

from dataclasses import dataclass
from typing import Any

from kalends.console.event_form.loading import load_linked
from kalends.console.event_form.page import LABELS
from kalends.console.event_form.submission import load_submission
from kalends.console.event_form.values import (
    EventValues,
    find_changes,
    make_new_values,
    make_originals,
    make_values,
    to_params,
)
from kalends.console.request import ConsoleRequest
from kalends.http.requests import parse_nested
from kalends.operations.context import OperationContext
from kalends.store.drafts import Draft


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with its stored value and the unsaved one, as texts."""

    label: str  # a message ID
    stored: str
    unsaved: str


async def compare(console_request: ConsoleRequest, context: OperationContext, draft: Draft) -> list[Difference]:
    """Return the fields in which unsaved changes differ from the stored event."""
    record_id = int(draft.key) if draft.key.isdecimal() else None
    submission = await load_submission(console_request, context, parse_nested(draft.pairs), record_id)
    site, row = context.transaction.site, submission.row
    stored = make_values(row, await load_linked(context, row), site) if row else make_new_values(site)
    changes = find_changes(to_params(submission.values), make_originals(stored))
    return [
        Difference(LABELS.get(name, name), _describe(stored, name), _describe(submission.values, name))
        for name in changes
        if name in LABELS
    ]


def _describe(values: EventValues, name: str) -> str:
    """Return the value of a parameter as the form shows it."""
    if name in ("venue", "organizer"):
        new = getattr(values, f"new_{name}").get(name, "")
        names = [pick.name for pick in getattr(values, name)]
        return ", ".join(dict.fromkeys([*names, *([new] if new else [])]))
    if name == "tags":
        return values.tags
    value: Any = to_params(values).get(name, "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
