"""The actions for several events: their names, and the writes of the API that they stand for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kalends.console.event_table.bulk_run import MakeBody, Write
from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.core.event_states import CANCELLED
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.venues import VENUES
from kalends.operations import event_table
from kalends.operations.bulk_changes import MAX_EVENTS, SelectedEvent, Target
from kalends.operations.context import OperationContext

AMBIGUOUS: Final = Message("Several venues match. Enter the full name or the number of the venue.")


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its name on the button, and the request of the API that it sends for each event."""

    name: str
    label: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    method: str = "PATCH"
    suffix: str = ""
    min_role: str = "contributor"
    group: str = "status"  # the menu that offers it
    in_trash: bool = False  # whether it is offered for events in the trash
    confirms: bool = False  # whether it needs a confirmation even for a single event


ACTIONS: Final = {
    action.name: action
    for action in (
        Action("publish", N_("Publish"), {"status": "publish"}, min_role="author"),
        Action("pending", N_("Submit for review"), {"status": "pending"}),
        Action("draft", N_("Make a draft"), {"status": "draft"}),
        Action("private", N_("Make private"), {"status": "private"}, min_role="author"),
        Action("add_category", N_("Add category"), group="category"),
        Action("remove_category", N_("Remove category"), group="category"),
        Action("set_venue", N_("Set venue"), group="venue"),
        Action("feature", N_("Feature"), {"featured": True}, group="more"),
        Action("unfeature", N_("No longer feature"), {"featured": False}, group="more"),
        Action("cancel", N_("Mark as cancelled"), {"event_status": CANCELLED}, group="more"),
        Action("trash", N_("Move to the trash"), method="DELETE", group="more", confirms=True),
        Action("restore", N_("Restore"), method="POST", suffix="/restore", in_trash=True),
    )
}


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


async def make_write(action: Action, context: OperationContext, form: Mapping[str, Any]) -> Write:
    """Return the write of an action. Raise ApiError if the form lacks its category or venue."""
    if action.group == "category":
        return Write(_change_categories(action, _require_choice(form, "category")))
    if action.group == "venue":
        venue = await _find_venue(context, form)
        return Write(lambda _: {"venue": [venue]})
    return Write(lambda _: action.body, action.method, action.suffix)


def _change_categories(action: Action, choice: str) -> MakeBody:
    category = int(choice) if choice.isascii() and choice.isdecimal() and len(choice) < 17 else 0

    def add(event: SelectedEvent) -> Mapping[str, Any]:
        return {"categories": list(dict.fromkeys([*event.category_ids, category]))}

    def remove(event: SelectedEvent) -> Mapping[str, Any]:
        return {"categories": [entry for entry in event.category_ids if entry != category]}

    return add if action.name == "add_category" else remove


async def _find_venue(context: OperationContext, form: Mapping[str, Any]) -> int:
    name = _require_choice(form, "venue")
    ids = await event_table.find_named(context, VENUES, name)
    if len(ids) != 1:
        raise errors.invalid_params({"venue": AMBIGUOUS if ids else Message("“{name}” was not found.", name=name)})
    return ids[0]


def _require_choice(form: Mapping[str, Any], name: str) -> str:
    value = str(form.get(name, "")).strip()
    if not value:
        raise errors.invalid_params({name: CHOOSE[name]})
    return value


CHOOSE: Final = {"category": Message("Choose a category."), "venue": Message("Enter a venue.")}
