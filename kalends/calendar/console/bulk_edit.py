"""Bulk changes to events: the actions, their API writes, confirmation, result and undo."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import batched
from typing import Any, Final

from starlette.responses import Response

from kalends.api import batch
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.make_series import make_series
from kalends.calendar.console.table_filters import PATH, make_back_url
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.form_work import MAX_EVENTS, SelectedEvent, Target, find_changed, read_selected
from kalends.calendar.rules.record_types import CANCELLED
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, read_revision, redirect
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import Param, parse_id, read_params

# A bulk change runs as API batches. Each event in a batch has a precondition.

MAX_PORTION: Final = 200
# Makes the request body for an event. Events that the user may not read get an empty body, and their write fails.
MakeBody = Callable[[SelectedEvent], Mapping[str, Any]]
MakeWrite = Callable[[OperationContext], Awaitable["Write"]]


@dataclass(frozen=True, slots=True)
class Write:
    """The API request for each event: its method, the path after the ID, and its body."""

    make_body: MakeBody
    method: str = "PATCH"
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The response for one event. The title is empty if the user may not read the event."""

    id: int
    title: str
    status: int
    message: str | Message

    @property
    def is_done(self) -> bool:
        return self.status < 400


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The results, and the revisions of the site before and after the change."""

    results: tuple[ChangeResult, ...]
    first: int
    last: int

    @property
    def failures(self) -> list[ChangeResult]:
        return [result for result in self.results if not result.is_done]


async def run_portions(
    console_request: ConsoleRequest, targets: Sequence[Target], make_write: MakeWrite
) -> BulkOutcome:
    """Change the events in portions. Errors in the first portion are raised; later errors are part of the outcome."""
    outcomes: list[BulkOutcome] = []
    for portion in batched(targets, MAX_PORTION):
        try:
            async with console_request.write() as tx:
                context = console_request.make_context(tx)
                write = await make_write(context)
                outcomes.append(await run_changes(context, portion, write, console_request.state.batch_params))
        except ApiError as error:
            if not outcomes:
                raise
            outcomes.append(_fail(portion, error, outcomes[-1].last))
    return _join(outcomes)


def _fail(targets: Sequence[Target], error: ApiError, revision: int) -> BulkOutcome:
    results = [ChangeResult(target.id, "", error.status, error.message) for target in targets]
    return BulkOutcome(tuple(results), revision, revision)


def _join(outcomes: Sequence[BulkOutcome]) -> BulkOutcome:
    """Combine the outcomes of all portions. Other users may have made some of the revisions in between."""
    results = tuple(result for outcome in outcomes for result in outcome.results)
    return BulkOutcome(results, outcomes[0].first, outcomes[-1].last) if outcomes else BulkOutcome((), 0, 0)


async def run_changes(
    context: OperationContext, targets: Sequence[Target], write: Write, params: tuple[Param, ...]
) -> BulkOutcome:
    """Change each event whose revision is unchanged. An error undoes only the change to that event."""
    tx = context.transaction
    await tx.lock_site(context.actor.user_id)
    first = tx.changes.revision
    events = await read_selected(context, targets)
    operations = [_make_operation(target, events.get(target.id), write) for target in targets]
    values = read_params(params, {"operations": operations, "atomic": False})
    outcome = await batch.run_batch(None, replace(context, values=values, returns_record=False))
    responses = outcome.body["results"]
    results = [
        _read_response(target, events.get(target.id), response)
        for target, response in zip(targets, responses, strict=True)
    ]
    return BulkOutcome(tuple(results), first, tx.changes.revision)


def _make_operation(target: Target, event: SelectedEvent | None, write: Write) -> dict[str, Any]:
    return {
        "method": write.method,
        "path": f"/events/{target.id}{write.suffix}",
        "body": dict(write.make_body(event)) if event else {},
        "if_match": target.revision,
    }


def _read_response(target: Target, event: SelectedEvent | None, response: Mapping[str, Any]) -> ChangeResult:
    message = response["body"]["message"] if response["status"] >= 400 else ""
    return ChangeResult(target.id, event.title if event else "", response["status"], message)


async def undo_changes(console_request: ConsoleRequest, first: int, last: int) -> BulkOutcome:
    """Restore the events to the revision before a bulk change, except for events that have changed since."""
    async with console_request.transaction() as tx:
        targets = await find_changed(console_request.make_context(tx), first, last)

    async def make_write(_: OperationContext) -> Write:
        return Write(lambda _: {"revision": first}, "POST", "/restore")

    return await run_portions(console_request, targets, make_write)


MAX_DAYS: Final = 366
CHOOSE: Final = {
    "category": Message("Choose a category."),
    "tag": Message("Enter a tag."),
    "venue": Message("Enter a venue."),
    "organizer": Message("Enter an organizer."),
    "days": Message("Enter the number of days to move the events by, at most {maximum}.", maximum=MAX_DAYS),
}
NAMED: Final = {"venue": VENUES, "organizer": ORGANIZERS}
AMBIGUOUS: Final = {
    "venue": Message("Several venues match. Enter the full name or the number of the venue."),
    "organizer": Message("Several organizers match. Enter the full name or the number of the organizer."),
}


@dataclass(frozen=True, slots=True)
class Action:
    """A button's name, and the API request that the button sends for each event."""

    name: str
    label: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    method: str = "PATCH"
    suffix: str = ""
    min_role: str = "contributor"
    group: str = "status"  # the menu that contains the action
    in_trash: bool = False  # whether the action applies to events in the trash
    confirms: bool = False  # whether the action needs confirmation even for a single event


MAKE_SERIES: Final = "make_series"
ACTIONS: Final = {
    action.name: action
    for action in (
        Action("publish", N_("Publish"), {"status": "publish"}, min_role="author"),
        Action("pending", N_("Submit for review"), {"status": "pending"}),
        Action("draft", N_("Make a draft"), {"status": "draft"}),
        Action("private", N_("Make private"), {"status": "private"}, min_role="author"),
        Action("add_category", N_("Add category"), group="category"),
        Action("remove_category", N_("Remove category"), group="category"),
        Action("add_tag", N_("Add tag"), group="tag"),
        Action("remove_tag", N_("Remove tag"), group="tag"),
        Action("set_venue", N_("Set venue"), group="venue"),
        Action("set_organizer", N_("Set organizer"), group="organizer"),
        Action("move_dates", N_("Move dates"), group="days"),
        Action("feature", N_("Feature"), {"featured": True}, group="more"),
        Action("unfeature", N_("Stop featuring"), {"featured": False}, group="more"),
        Action("cancel", N_("Mark as cancelled"), {"event_status": CANCELLED}, group="more"),
        Action(MAKE_SERIES, N_("Make a series"), group="more"),
        Action("trash", N_("Move to trash"), method="DELETE", group="more", confirms=True),
        Action("restore", N_("Restore"), method="POST", suffix="/restore", in_trash=True),
    )
}


def list_actions(console_request: ConsoleRequest, *, in_trash: bool) -> dict[str, list[Action]]:
    groups: dict[str, list[Action]] = {name: [] for name in ("status", *CHOOSE, "more")}
    for action in ACTIONS.values():
        if action.in_trash == in_trash and console_request.has_role(action.min_role):
            groups[action.group].append(action)
    return groups


def find_action(name: str) -> Action:
    """Return an action, or raise 400 if there is no such action. The write itself checks permissions."""
    if name not in ACTIONS:
        raise errors.invalid("action", "must be one of: {choices}.", choices=", ".join(ACTIONS))
    return ACTIONS[name]


def read_targets(form: Mapping[str, Any]) -> list[Target]:
    """Return the events to change, with their revisions: a single row, the checked events or the whole page."""
    row = form.get("row", "")
    checked = form.get("all_events", "") if form.get("all") else form.get("event", "")
    texts: list[str] = str(row or checked).split() if isinstance(row or checked, str) else [str(e) for e in checked]
    targets = list({target.id: target for target in map(_read_target, texts)}.values())
    if len(targets) > MAX_EVENTS:
        raise errors.invalid("event", "must name at most {maximum} events.", maximum=MAX_EVENTS)
    return targets


def _read_target(text: str) -> Target:
    event_id, revision = (parse_id(part) for part in text.partition(":")[::2])
    if event_id is None or revision is None:
        raise errors.invalid("event", "must be the ID and the revision of an event.")
    return Target(event_id, revision)


async def make_write(action: Action, context: OperationContext, form: Mapping[str, Any]) -> Write:
    """Return an action's write. Raise ApiError if the form lacks the value that the action requires."""
    group = action.group
    if group not in CHOOSE:
        return Write(lambda _: action.body, action.method, action.suffix)
    choice = _require_choice(form, group)
    if group in NAMED:
        record_id = await _find_named(context, group, choice)
        return Write(lambda _: {group: [record_id]})
    if group == "tag":
        return Write(await _change_tags(action, context, choice))
    return Write(_change_categories(action, choice) if group == "category" else _move_dates(choice))


def _change_categories(action: Action, choice: str) -> MakeBody:
    category = parse_id(choice) or 0

    def add(event: SelectedEvent) -> Mapping[str, Any]:
        return {"categories": list(dict.fromkeys([*event.category_ids, category]))}

    def remove(event: SelectedEvent) -> Mapping[str, Any]:
        return {"categories": [entry for entry in event.category_ids if entry != category]}

    return add if action.name == "add_category" else remove


async def _change_tags(action: Action, context: OperationContext, name: str) -> MakeBody:
    """Add or remove a tag. When editors add a tag that does not exist, the write creates it."""
    tag = await event_queries.find_tag(context.transaction, name)
    if action.name == "add_tag":
        if tag is None and not permissions.may_write(context.actor, TAGS):
            raise errors.invalid_params({"tag": _not_found(name)})
        return lambda event: {"tags": list(dict.fromkeys([*event.tag_ids, tag or name]))}
    if tag is None:
        raise errors.invalid_params({"tag": _not_found(name)})
    return lambda event: {"tags": [entry for entry in event.tag_ids if entry != tag]}


def _move_dates(choice: str) -> MakeBody:
    """Move events by a number of days, and keep their times of day."""
    sign, digits = (-1, choice[1:]) if choice[0] in "-−" else (1, choice.removeprefix("+"))
    number = parse_id(digits)
    if not number or number > MAX_DAYS:
        raise errors.invalid_params({"days": CHOOSE["days"]})
    days = timedelta(days=sign * number)

    def move(event: SelectedEvent) -> Mapping[str, Any]:
        try:
            start, end = event.start + days, event.end + days
        except OverflowError:
            raise errors.invalid_params({"days": CHOOSE["days"]}) from None
        return {
            "start_date": times.format_datetime(start),
            "end_date": times.format_datetime(end),
            "all_day": event.all_day,
        }

    return move


async def _find_named(context: OperationContext, group: str, name: str) -> int:
    ids = await event_queries.find_named(context, NAMED[group], name)
    if len(ids) != 1:
        raise errors.invalid_params({group: AMBIGUOUS[group] if ids else _not_found(name)})
    return ids[0]


def _not_found(name: str) -> Message:
    return Message("“{name}” was not found.", name=name)


def _require_choice(form: Mapping[str, Any], name: str) -> str:
    value = str(form.get(name, "")).strip()
    if not value:
        raise errors.invalid_params({name: CHOOSE[name]})
    return value


# Bulk changes: confirmation, result and undo.

# Bulk changes to this many events or more require confirmation.
CONFIRMED_FROM: Final = 21
SHOWN_TITLES: Final = 20
# Pressing Enter in a form field triggers this button.
NO_ACTION: Final = "none"
# The error code for a change that took too long.
ROLLED_BACK: Final = errors.too_slow(0).code
CONFLICT: Final = N_("Someone else has changed this event. Open it to check.")
FORBIDDEN: Final = N_("You can’t change this event.")


@dataclass(frozen=True, slots=True)
class Failure:
    """An event that was not changed, and the reason."""

    id: int
    title: str
    kind: str  # conflict, forbidden or invalid
    reason: str | Message
    url: str


async def change_selected(console_request: ConsoleRequest) -> Response:
    """Change the selected events. Ask first if there are many, or if they would move to the trash."""
    form = console_request.form
    targets = read_targets(form)
    if not targets or (form.get("action") == NO_ACTION and not form.get("row")):
        notice = "nothing-selected" if not targets else ""
        return redirect(make_back_url(console_request.form_text("query")), notice)
    action = find_action("trash" if form.get("row") else console_request.form_text("action"))
    try:
        if action.name == MAKE_SERIES:
            return await make_series(console_request, targets)
        if not form.get("confirmed") and (action.confirms or len(targets) >= CONFIRMED_FROM):
            return await _confirm(console_request, action, targets)
        outcome = await run_portions(console_request, targets, lambda context: make_write(action, context, form))
        return _show_outcome(console_request, outcome)
    except ApiError as error:
        return _show_error(console_request, error)


async def _confirm(console_request: ConsoleRequest, action: Action, targets: list[Target]) -> Response:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        await make_write(action, context, console_request.form)
        titles = [event.title for event in (await read_selected(context, targets[:SHOWN_TITLES])).values()]
    return show(
        console_request,
        "events_confirm.html",
        action=action,
        count=len(targets),
        titles=titles,
        more=len(targets) - len(titles),
        events=" ".join(f"{target.id}:{target.revision}" for target in targets),
        fields={name: console_request.form_text(name) for name in ("query", *CHOOSE)},
        back_url=make_back_url(console_request.form_text("query")),
    )


def _show_outcome(console_request: ConsoleRequest, outcome: BulkOutcome, notice: str = "") -> Response:
    """Return to the table if all events were changed; otherwise list the failures."""
    query = console_request.form_text("query")
    if not outcome.failures:
        changed = {} if notice else {"changed": f"{outcome.first}-{outcome.last}"}
        return redirect(make_back_url(query, **changed), notice)
    return show(
        console_request,
        "events_result.html",
        done=[result for result in outcome.results if result.is_done],
        failures=[_explain(result) for result in outcome.failures],
        outcome=outcome,
        may_undo=not notice and outcome.last > outcome.first,
        query=query,
        back_url=make_back_url(query),
    )


def _explain(result: ChangeResult) -> Failure:
    url = f"{PATH}/{result.id}" if result.title else ""
    if result.status == 412:
        return Failure(result.id, result.title, "conflict", CONFLICT, url)
    if result.status in (401, 403):
        return Failure(result.id, result.title, "forbidden", FORBIDDEN, "")
    return Failure(result.id, result.title, "invalid", result.message, url)


def _show_error(console_request: ConsoleRequest, error: ApiError) -> Response:
    if error.status >= 500 and error.code != ROLLED_BACK:
        raise error
    params = error.data.get("params")
    reasons = list(params.values()) if isinstance(params, dict) else [error.message]  # pyright: ignore
    back_url = make_back_url(console_request.form_text("query"))
    return show(console_request, "events_refused.html", status=error.status, reasons=reasons, back_url=back_url)


async def undo(console_request: ConsoleRequest) -> Response:
    """Undo a bulk change that this user made, except for events that have changed since."""
    first, last = (read_revision(console_request, name) for name in ("after_revision", "until_revision"))
    try:
        return _show_outcome(console_request, await undo_changes(console_request, first, last), "undone")
    except ApiError as error:
        return _show_error(console_request, error)


ROUTES: Final = (ConsoleRoute("/events/bulk", post=change_selected), ConsoleRoute("/events/bulk/undo", post=undo))
