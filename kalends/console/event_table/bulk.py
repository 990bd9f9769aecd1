"""The actions for several events: their names, and the writes of the API that they stand for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.core.event_states import CANCELLED
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.kinds.events import EVENTS
from kalends.kinds.venues import VENUES
from kalends.operations import event_table
from kalends.operations.bulk_changes import MAX_EVENTS, MakeValues, Operation, Target
from kalends.operations.context import OperationContext
from kalends.operations.history import restore_record
from kalends.operations.records import delete_record, update_record
from kalends.store import Row


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its name on the button, the question before it, and the parameters of the write."""

    name: str
    label: str
    question: str
    operation: Operation = update_record
    body: Mapping[str, Any] | None = None
    min_role: str = "contributor"
    group: str = "status"  # the menu that offers it
    in_trash: bool = False  # whether it is offered for events in the trash
    confirms: bool = False  # whether it needs a confirmation even for a single event


ACTIONS: Final = {
    action.name: action
    for action in (
        Action("publish", N_("Publish"), N_("Publish {n} events?"), body={"status": "publish"}, min_role="author"),
        Action("pending", N_("Submit for review"), N_("Submit {n} events for review?"), body={"status": "pending"}),
        Action("draft", N_("Make a draft"), N_("Turn {n} events into drafts?"), body={"status": "draft"}),
        Action(
            "private",
            N_("Make private"),
            N_("Make {n} events private?"),
            body={"status": "private"},
            min_role="author",
        ),
        Action("add_category", N_("Add category"), N_("Add the category to {n} events?"), group="category"),
        Action(
            "remove_category", N_("Remove category"), N_("Remove the category from {n} events?"), group="category"
        ),
        Action("set_venue", N_("Set venue"), N_("Set the venue of {n} events?"), group="venue"),
        Action("feature", N_("Feature"), N_("Feature {n} events?"), body={"featured": True}, group="more"),
        Action(
            "unfeature", N_("No longer feature"), N_("No longer feature {n} events?"), body={"featured": False},
            group="more",
        ),
        Action(
            "cancel", N_("Mark as cancelled"), N_("Mark {n} events as cancelled?"), body={"event_status": CANCELLED},
            group="more",
        ),
        Action(
            "trash", N_("Move to the trash"), N_("Move {n} events to the trash?"), delete_record, {}, group="more",
            confirms=True,
        ),
        Action("restore", N_("Restore"), N_("Restore {n} events?"), restore_record, {}, in_trash=True),
    )
}  # fmt: skip


def list_actions(console_request: ConsoleRequest, *, in_trash: bool) -> dict[str, list[Action]]:
    """Return the actions that the role allows, by menu."""
    groups: dict[str, list[Action]] = {"status": [], "category": [], "venue": [], "more": []}
    for action in ACTIONS.values():
        if action.in_trash == in_trash and console_request.has_role(action.min_role):
            groups[action.group].append(action)
    return groups


def find_action(name: str) -> Action:
    """Return an action; raise 400 if there is none. The permissions are those of the write itself."""
    if name not in ACTIONS:
        raise errors.invalid("action", "must be one of: {choices}.", choices=", ".join(ACTIONS))
    return ACTIONS[name]


def read_targets(form: Mapping[str, Any]) -> list[Target]:
    """Return the events of a form with their revisions: those that are checked, or all of the page."""
    row = form.get("row", "")
    checked = form.get("all_events", "") if form.get("all") else form.get("event", "")
    texts: list[str] = str(row or checked).split() if isinstance(row or checked, str) else [str(e) for e in checked]
    targets = list({target.id: target for target in map(_read_target, texts)}.values())
    if len(targets) > MAX_EVENTS:
        raise errors.invalid("event", "must name at most {maximum} events.", maximum=MAX_EVENTS)
    return targets


def _read_target(text: str) -> Target:
    event_id, _, revision = text.partition(":")
    if not all(part.isascii() and part.isdecimal() and len(part) < 17 for part in (event_id, revision)):
        raise errors.invalid("event", "must be the ID and the revision of an event.")
    return Target(int(event_id), int(revision))


def write_targets(targets: list[Target]) -> str:
    """Return the events as one field of a form."""
    return " ".join(f"{target.id}:{target.revision}" for target in targets)


async def make_values(action: Action, context: OperationContext, form: Mapping[str, Any]) -> MakeValues:
    """Return the function that makes the parameters of the write for an event. Raise ApiError if one is missing."""
    if action.group == "category":
        return _change_categories(action, _require_choice(form, "category"))
    if action.group == "venue":
        return _fixed({"venue": [await _find_venue(context, form)]})
    return _fixed(action.body or {})


def _fixed(body: Mapping[str, Any]) -> MakeValues:
    values = read_params(EVENTS.fields, body, update=True)
    return lambda _: values


def _change_categories(action: Action, choice: str) -> MakeValues:
    category = int(choice) if choice.isascii() and choice.isdecimal() and len(choice) < 17 else 0

    def make(row: Row) -> Mapping[str, Any]:
        others = [entry for entry in row["category_ids"] if entry != category]
        return {"categories": [*others, category] if action.name == "add_category" else others}

    def keep_order(row: Row) -> Mapping[str, Any]:
        return {"categories": row["category_ids"]} if category in row["category_ids"] else make(row)

    return keep_order if action.name == "add_category" else make


async def _find_venue(context: OperationContext, form: Mapping[str, Any]) -> int:
    name = _require_choice(form, "venue")
    ids = await event_table.find_named(context, VENUES, name)
    if len(ids) != 1:
        message = Message("“{name}” was not found.", name=name) if not ids else AMBIGUOUS
        raise errors.invalid_params({"venue": message})
    return ids[0]


AMBIGUOUS: Final = Message("Several venues match. Enter the full name or the number of the venue.")


def _require_choice(form: Mapping[str, Any], name: str) -> str:
    value = str(form.get(name, "")).strip()
    if not value:
        raise errors.missing_params([name])
    return value
