"""A submitted form: the values, the revision it was opened at, and the parameters that the user changed."""

from dataclasses import dataclass
from typing import Any

import orjson

from kalends.console.event_form.loading import load_linked, resolve_names
from kalends.console.event_form.page import FormPage
from kalends.console.event_form.values import (
    IMAGE_PARAMS,
    EventValues,
    find_changes,
    make_new_values,
    make_originals,
    make_values,
    overlay,
    to_params,
)
from kalends.console.request import ConsoleRequest
from kalends.core.messages import Message
from kalends.kinds.events import EVENTS
from kalends.operations import permissions, records
from kalends.operations.context import OperationContext
from kalends.store import Row


@dataclass(slots=True)
class Submission:
    """The values of a form, and those that it was rendered from."""

    row: Row | None
    values: EventValues
    originals: dict[str, Any]
    base_revision: int | None
    draft_key: str
    problems: dict[str, Message]  # names that are unknown, by parameter

    @property
    def record_id(self) -> int | None:
        return self.row["id"] if self.row else None

    def find_params(self) -> dict[str, Any]:
        """Return the parameters to send: the changed ones on update, those with a value for a new event."""
        params = to_params(self.values)
        if self.row is not None:
            return find_changes(params, self.originals)
        return {name: value for name, value in params.items() if value not in ("", [], None, False, 0)}

    def find_image_params(self) -> dict[str, Any]:
        """Return the changed parameters of the picture."""
        current = {name: getattr(self.values, name) for name in IMAGE_PARAMS}
        changed = find_changes(current, self.originals)
        return {IMAGE_PARAMS[name]: value for name, value in changed.items()}

    def make_page(self) -> FormPage:
        return FormPage(
            values=self.values,
            row=self.row,
            originals=self.originals,
            base_revision=self.base_revision,
            draft_key=self.draft_key,
        )


async def load_submission(
    console_request: ConsoleRequest, context: OperationContext, form: dict[str, Any], record_id: int | None
) -> Submission:
    """Read a form. Fields that it lacks have the stored values."""
    row: Row | None = None
    if record_id is None:
        permissions.require_writer(console_request.actor, EVENTS)
        values = make_new_values(context.transaction.site)
        values.start_time = values.end_time = ""
    else:
        record_context = console_request.make_context(context.transaction, record_id=record_id)
        row = await records.fetch_editable_row(EVENTS, record_context)
        values = make_values(row, await load_linked(context, row), context.transaction.site)
    stored_originals = make_originals(values)
    overlay(values, form)
    problems = await resolve_names(context, values)
    revision = str(form.get("base_revision", ""))
    return Submission(
        row=row,
        values=values,
        originals=_read_originals(form.get("originals")) or stored_originals,
        base_revision=int(revision) if revision.isdecimal() and len(revision) < 17 else None,
        draft_key=str(form.get("draft_key", ""))[:64],
        problems=problems,
    )


def _read_originals(text: object) -> dict[str, Any] | None:
    """Return the parameters that the form was rendered from; the page about conflicts sends none."""
    try:
        decoded: Any = orjson.loads(text) if isinstance(text, str) and text else None
    except orjson.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None  # pyright: ignore[reportUnknownVariableType]
