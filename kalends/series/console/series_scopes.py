"""The page that asks for an edit's scope (one date, the following dates, or all) and shows the effect of each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.merging import GROUP_OF
from kalends.calendar.operations.record_verbs import require_unedited
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, Operation
from kalends.console.field_texts import make_locale
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id
from kalends.rendering.page_locale import PageLocale
from kalends.series.api import DRY_RUN, EVENT_EDIT, EVENT_SCOPE, OVERRIDES
from kalends.series.consequences import fetch_series
from kalends.series.console.series_page import find_reason, format_wall, name_fields
from kalends.series.operations.series_edit import ALL, FOLLOWING, THIS, delete_event, edit_event
from kalends.store import Row

# The effect of a series edit, from a dry run's summary.

MAX_DATES: Final = 60  # dates listed on the page


@dataclass(frozen=True, slots=True)
class DateChange:
    """A date's time before and after the edit. A new date has no `before`; a trashed date has no `after`."""

    before: str
    after: str
    event: int


@dataclass(frozen=True, slots=True)
class OwnDate:
    event: int
    day: str
    fields: str


@dataclass(frozen=True, slots=True)
class Effect:
    """How many dates an edit changes, creates and moves to the trash, and which dates have overrides."""

    changed: int
    created: int
    trashed: int
    first: str
    last: str
    kept_own: Sequence[OwnDate]
    lost_own: Sequence[OwnDate]
    moved: Sequence[DateChange]
    more: int  # dates that are not listed

    @property
    def count(self) -> int:
        return self.changed + self.created + self.trashed


def describe_effect(summary: dict[str, Any], locale: PageLocale) -> Effect:
    dates: list[dict[str, Any]] = summary["dates"]
    days = sorted(entry["after"] or entry["before"] for entry in dates)
    moved = [entry for entry in dates if entry["before"] != entry["after"]]
    return Effect(
        changed=summary["changed"],
        created=summary["created"],
        trashed=summary["trashed"],
        first=format_wall(days[0], locale, all_day=True) if days else "",
        last=format_wall(days[-1], locale, all_day=True) if days else "",
        kept_own=[describe_own(entry, locale) for entry in summary["kept_own"]],
        lost_own=[describe_own(entry, locale) for entry in summary["lost_own"]],
        moved=[
            DateChange(format_wall(entry["before"], locale), format_wall(entry["after"], locale), entry["event"])
            for entry in moved[:MAX_DATES]
        ],
        more=max(len(moved) - MAX_DATES, 0),
    )


def describe_own(entry: dict[str, Any], locale: PageLocale) -> OwnDate:
    return OwnDate(entry["event"], format_wall(entry["slot"], locale), name_fields(entry["fields"], locale))


SAVE: Final = "save"
TRASH: Final = "trash"
OPERATIONS: Final[Mapping[str, Operation]] = {SAVE: edit_event, TRASH: delete_event}
LABELS: Final = {THIS: N_("This date"), FOLLOWING: N_("This and the following dates"), ALL: N_("All dates")}
# Parameters that can be set only for a single event.
SINGLE_PARAMS: Final = frozenset({"slug", "date", "date_utc"})
PARAMS: Final = {SAVE: EVENT_EDIT, TRASH: (EVENT_SCOPE, DRY_RUN, OVERRIDES)}


@dataclass(frozen=True, slots=True)
class ScopedEdit:
    row: Row
    action: str
    params: Mapping[str, Any]
    revision: int | None
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])  # hidden form fields
    is_kept: bool = False  # whether the unsaved form is stored

    def params_for(self, scope: str) -> dict[str, Any]:
        left_out = SINGLE_PARAMS if scope != THIS else frozenset[str]()
        params = {name: value for name, value in self.params.items() if name not in left_out}
        return {**params, "scope": scope}

    @property
    def needs_scope(self) -> bool:
        return self.action == TRASH or bool(set(self.params) - SINGLE_PARAMS)


@dataclass(frozen=True, slots=True)
class Choice:
    """A scope on the page, with either its effect or the reason why it cannot be chosen."""

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
    """Show the three scopes with their effects, without writing anything."""
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
    """Raise the error that saving the edit for only this date would raise."""

    async def run(kind: Kind, context: OperationContext) -> Outcome:
        async with context.transaction.rolled_back():
            return await OPERATIONS[edit.action](kind, context)

    await _perform(console_request, run, edit, THIS)


async def _try_scope(console_request: ConsoleRequest, edit: ScopedEdit, scope: str) -> Choice:
    try:
        outcome = await dry_run(partial(_perform, console_request, OPERATIONS[edit.action], edit, scope))
    except ApiError as error:
        if error.status >= 500 or error.status == 412:
            raise
        return Choice(scope, LABELS[scope], error=find_reason(error))
    return Choice(scope, LABELS[scope], describe_effect(outcome.body, make_locale(console_request)))


async def dry_run(perform: Callable[..., Awaitable[Outcome]]) -> Outcome:
    """Run an edit without writing anything. The summary lists the dates that would lose their overrides."""
    try:
        return await perform(dry_run=True)
    except ApiError as error:
        if error.code != "series_overrides_lost":
            raise
    return await perform(dry_run=True, overrides="replace")


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
    """Return the user's decision from the form, or None for any other form."""
    if "scope_values" not in form:
        return None
    scope, action, revision = (str(form.get(name, "")) for name in ("scope", "scope_action", "series_revision"))
    if scope not in LABELS or action not in OPERATIONS:
        raise errors.invalid("scope", "must be one of {values}.", values=", ".join(LABELS))
    replace = form.get("replace")
    return Decision(
        scope,
        action,
        read_object("scope_values", str(form["scope_values"])),
        parse_id(revision) or 0,
        isinstance(replace, dict) and scope in replace,
    )


def read_object(name: str, text: str) -> dict[str, Any]:
    """Parse the parameters that a page submits as JSON."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise errors.invalid(name, "must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


async def save_scoped(console_request: ConsoleRequest, edit: ScopedEdit, decision: Decision) -> Outcome:
    """Save an edit with the chosen scope, unless the date or the series has changed in the meantime."""

    async def run(kind: Kind, context: OperationContext) -> Outcome:
        series = await fetch_series(context.transaction, edit.row["series_id"])
        if decision.scope != THIS:
            await require_unedited(context.transaction, SERIES, series, [decision.series_revision])
        return await OPERATIONS[edit.action](kind, context)

    overrides = {"overrides": "replace"} if decision.replaces_own and decision.scope != THIS else {}
    return await _perform(console_request, run, edit, decision.scope, **overrides)
