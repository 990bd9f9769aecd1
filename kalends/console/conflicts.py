"""Save a form whose record has changed meanwhile (`calendar/operations/merging.py`), and ask about conflicts.

A form submits the revision that it was rendered with. If the record has a newer revision, the view merges the
changes. For fields that both users changed, `show_conflict` asks the user to choose a value. The conflict page posts
to the form's URL, where `read_choices` returns the parameters to save.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access.operation_context import Outcome
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations import merging
from kalends.calendar.operations.event_links import Names
from kalends.calendar.operations.merging import FieldConflict, Merge
from kalends.calendar.operations.record_verbs import update_record
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest
from kalends.console.field_texts import field_label, is_prose, make_locale, value_text
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_lines
from kalends.core.words import Segment, diff_words, shorten

# Maximum number of attempts to save a record while other users keep changing it.
MAX_ATTEMPTS: Final = 5


async def save_merged(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Outcome | Response:
    """Save parameters, merged with changes since a revision.

    If both change the same field, return the conflict page.
    """
    values, revision = dict(mine), base_revision
    for _ in range(MAX_ATTEMPTS):
        try:
            return await console_request.perform(update_record, kind, values, record_id=record_id, revision=revision)
        except ApiError as error:
            if error.status != 412:
                raise
        result = await merge(console_request, kind, record_id, revision, values)
        if result.conflicts:
            return show_conflict(console_request, kind, record_id, result, mine)
        values, revision = result.values, result.revision
    raise errors.precondition_failed()


async def merge(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Merge:
    """Merge a form's changed parameters, in API format, into the current version of a record."""
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=record_id)
        return await merging.merge(kind, context, base_revision, mine)


@dataclass(frozen=True, slots=True)
class Choice:
    """A conflict on the page. Each version is the full text, or shows which words differ from the base."""

    name: str
    label: str
    theirs: list[Segment]
    mine: list[Segment]
    base: str


def show_conflict(
    console_request: ConsoleRequest, kind: Kind, record_id: int, merge: Merge, mine: Mapping[str, Any]
) -> Response:
    return show(
        console_request,
        "conflict.html",
        status=409,
        action=f"{PREFIX}/{kind.name}/{record_id}",
        choices=[_make_choice(console_request, kind, row, merge.names) for row in merge.conflicts],
        merged_labels=[field_label(kind, name) for name in merge.merged_names],
        users=", ".join(merge.users),
        has_base=merge.has_base,
        revision=merge.revision,
        values=orjson.dumps(merge.values).decode(),
        own_params=orjson.dumps(merge.own_params).decode(),
    )


def read_choices(form: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters to save from a conflict page, without rejected ones. Return None for any other form."""
    if "conflict_values" not in form:
        return None
    values, own_params = _read_object(form, "conflict_values"), _read_object(form, "conflict_own")
    choices = form.get("choice")
    for name, params in own_params.items():
        is_theirs = isinstance(choices, dict) and choices.get(name) == "theirs"  # pyright: ignore
        if not is_theirs and isinstance(params, dict):
            values.update(params)  # pyright: ignore[reportUnknownArgumentType]
    return values


def _read_object(form: Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(str(form.get(name, "")))
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise errors.invalid(name, "must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


def _make_choice(console_request: ConsoleRequest, kind: Kind, row: FieldConflict, names: Names) -> Choice:
    label, locale = field_label(kind, row.name), make_locale(console_request)
    base, theirs, mine = (
        value_text(kind, row.name, value, names, locale) for value in (row.base, row.theirs, row.mine)
    )
    if not is_prose(kind, row.name):
        return Choice(row.name, label, [Segment("same", theirs)], [Segment("same", mine)], base)
    if row.base is None:
        return Choice(row.name, label, [Segment("same", theirs)], shorten(diff_words(theirs, mine)), "")
    base = to_plain_lines(str(row.base))
    return Choice(row.name, label, shorten(diff_words(base, theirs)), shorten(diff_words(base, mine)), "")
