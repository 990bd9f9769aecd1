"""The scope of an edit: one date, the following ones, or all; with the effect of each before it is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.api.series_routes import DRY_RUN, EVENT_EDIT, EVENT_SCOPE, OVERRIDES
from kalends.console.field_texts import GROUP_OF, make_locale
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, Operation
from kalends.console.series.effects import Effect, describe_effect
from kalends.console.series.texts import find_reason, format_wall, name_fields
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.series import SERIES
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import require_unedited
from kalends.operations.series.edit import ALL, FOLLOWING, THIS, delete_event, edit_event
from kalends.operations.series.rows import fetch_series
from kalends.store import Row

SAVE: Final = "save"
TRASH: Final = "trash"
OPERATIONS: Final[Mapping[str, Operation]] = {SAVE: edit_event, TRASH: delete_event}
LABELS: Final = {
    THIS: N_("This date"),
    FOLLOWING: N_("This and the following dates"),
    ALL: N_("All dates"),
}
# Parameters that belong to a single date.
SINGLE_PARAMS: Final = frozenset({"slug", "date", "date_utc"})
PARAMS: Final = {SAVE: EVENT_EDIT, TRASH: (EVENT_SCOPE, DRY_RUN, OVERRIDES)}


@dataclass(frozen=True, slots=True)
class ScopedEdit:
    """An edit of an event that belongs to a series."""

    row: Row
    action: str
    params: Mapping[str, Any]
    revision: int | None
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])  # fields that the page sends along
    is_kept: bool = False  # whether the form is stored as unsaved changes

    def params_for(self, scope: str) -> dict[str, Any]:
        left_out = SINGLE_PARAMS if scope != THIS else frozenset[str]()
        params = {name: value for name, value in self.params.items() if name not in left_out}
        return {**params, "scope": scope}

    @property
    def needs_scope(self) -> bool:
        return self.action == TRASH or bool(set(self.params) - SINGLE_PARAMS)


@dataclass(frozen=True, slots=True)
class Choice:
    """A scope on the page: its effect, or the reason why it is not possible."""

    scope: str
    label: str
    effect: Effect | None = None
    error: Message | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The scope that the user chose on the page."""

    scope: str
    action: str
    params: dict[str, Any]
    series_revision: int
    replaces_own: bool


async def ask_scope(console_request: ConsoleRequest, edit: ScopedEdit, error: Message | None = None) -> Response:
    """Show the three scopes with their effects. Nothing is written."""
    locale, row = make_locale(console_request), edit.row
    await _try_single(console_request, edit)
    async with console_request.transaction() as tx:
        series = await fetch_series(tx, row["series_id"])
    wider = [await _try_scope(console_request, edit, scope) for scope in (FOLLOWING, ALL)]
    return show(
        console_request,
        "series_scope.html",
        error=error,
        choices=[Choice(THIS, LABELS[THIS]), *wider],
        edit=edit,
        is_trash=edit.action == TRASH,
        record_path=f"{PREFIX}/events/{row['id']}",
        series=series,
        day=format_wall(times.format_datetime(row["start_local"]), locale, all_day=row["all_day"]),
        fields=name_fields(dict.fromkeys(GROUP_OF.get(name, name) for name in edit.params), locale),
        left_out=name_fields(sorted(SINGLE_PARAMS & set(edit.params)), locale),
        values=orjson.dumps(dict(edit.params)).decode(),
    )


async def _try_single(console_request: ConsoleRequest, edit: ScopedEdit) -> None:
    """Raise the error that saving this date alone would have."""

    async def run(kind: Kind, context: OperationContext) -> Outcome:
        async with context.transaction.rolled_back():
            return await OPERATIONS[edit.action](kind, context)

    await _perform(console_request, run, edit, THIS)


async def _try_scope(console_request: ConsoleRequest, edit: ScopedEdit, scope: str) -> Choice:
    """Return the effect of an edit on the series, from a dry run."""
    try:
        outcome = await _dry_run(console_request, edit, scope)
    except ApiError as error:
        if error.status >= 500 or error.status == 412:
            raise
        return Choice(scope, LABELS[scope], error=find_reason(error))
    return Choice(scope, LABELS[scope], describe_effect(outcome.body, make_locale(console_request)))


async def _dry_run(console_request: ConsoleRequest, edit: ScopedEdit, scope: str) -> Outcome:
    operation = OPERATIONS[edit.action]
    try:
        return await _perform(console_request, operation, edit, scope, dry_run=True)
    except ApiError as error:
        if error.code != "series_overrides_lost":
            raise
    return await _perform(console_request, operation, edit, scope, dry_run=True, overrides="replace")


async def _perform(
    console_request: ConsoleRequest, operation: Operation, edit: ScopedEdit, scope: str, **options: Any
) -> Outcome:
    return await console_request.perform(
        operation,
        EVENTS,
        {**edit.params_for(scope), **options},
        record_id=edit.row["id"],
        revision=edit.revision,
        params=PARAMS[edit.action],
    )


# The choice ----------------------------------------------------------------------------------


def read_decision(form: Mapping[str, Any]) -> Decision | None:
    """Return the choice from the form of the page; None if it is another form."""
    if "scope_values" not in form:
        return None
    scope, action, revision = (str(form.get(name, "")) for name in ("scope", "scope_action", "series_revision"))
    if scope not in LABELS or action not in OPERATIONS:
        raise errors.invalid("scope", "must be one of {values}.", values=", ".join(LABELS))
    replace = form.get("replace")
    return Decision(
        scope,
        action,
        _read_object(str(form["scope_values"])),
        int(revision) if revision.isdecimal() and len(revision) < 17 else 0,
        isinstance(replace, dict) and scope in replace,
    )


def _read_object(text: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise errors.invalid("scope_values", "must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


async def save_scoped(console_request: ConsoleRequest, edit: ScopedEdit, decision: Decision) -> Outcome:
    """Save an edit with the scope that the user chose, if neither the date nor the series has changed meanwhile."""

    async def run(kind: Kind, context: OperationContext) -> Outcome:
        series = await fetch_series(context.transaction, edit.row["series_id"])
        if decision.scope != THIS:
            await require_unedited(context.transaction, SERIES, series, [decision.series_revision])
        return await OPERATIONS[edit.action](kind, context)

    overrides = {"overrides": "replace"} if decision.replaces_own and decision.scope != THIS else {}
    return await _perform(console_request, run, edit, decision.scope, **overrides)
